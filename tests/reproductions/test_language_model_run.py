"""The reproduction on language models, run in small, and its page, which says what its table says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "reproductions/perceptual-straightness-2022"


@pytest.mark.hf
@pytest.mark.reproduction
def test_the_script_trains_measures_and_writes_its_tables(tmp_path, monkeypatch):
    words = [
        "the",
        "lounge",
        "was",
        "clean",
        "and",
        "quiet",
        "but",
        "small",
        "staff",
        "were",
        "friendly",
        "food",
        "poor",
    ]
    rng = np.random.default_rng(0)
    reviews = [" ".join(rng.choice(words, 60)) for _ in range(60)]
    pd.DataFrame({"content": reviews}).to_csv(tmp_path / "reviews.csv")
    spec = importlib.util.spec_from_file_location("language_reproduction", FOLDER / "language.py")
    language = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(language)
    monkeypatch.setattr(language, "HELD_OUT", 5)
    arguments = ["--reviews", tmp_path / "reviews.csv", "--epochs", 1, "--length", 8, "--out", tmp_path]
    monkeypatch.setattr(sys, "argv", ["language.py", *map(str, arguments)])
    language.main()
    table = pd.read_csv(tmp_path / "tables/language.csv")
    assert table["condition"].unique().tolist() == ["natural", "shuffled"] and (table["n"] == 5).all()
    assert table["layer"].tolist()[:3] == ["tokens", "embedding", "h.0"] and len(table) == 18
    assert (tmp_path / "runs/language/report.html").exists() and (tmp_path / "figures/language.png").exists()
    np.testing.assert_allclose(table["trained − untrained"], table["trained"] - table["untrained"], atol=2e-4)


def test_the_page_shows_the_table():
    page = (FOLDER / "README.md").read_text()
    natural = (FOLDER / "tables/language.md").read_text().split("shuffled")[0].strip()
    assert natural[natural.index("|") :].strip() in page
