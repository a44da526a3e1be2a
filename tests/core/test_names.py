"""Names of any kind end up safe in files, tables, plots and pages, and odd ones stop nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from assay import AssayError, Straightness, Subject, evaluate
from assay.core.csv_files import read_csv, to_csv
from assay.core.names import all_showable, file_name, showable, writable
from assay.stimuli import Sequences

ODD = {
    "mathematics": r"$\bad$",
    "control": "a\x00\x1b[31m\nb",
    "right to left": "a\u202egnp.exe",
    "long": "x" * 500,
    "device": "CON",
    "formula": "=cmd|' /C calc'!A0",
    "path": "../../etc/passwd",
    "script": "<script>alert(1)</script>",
    "no character": "\ufffe\uffff",
    "markup": "[red]a[/red][/bold]",
    "accents": "a" + "\u0301" * 300,
    "format": "%s%d{0}",
}
ANY = st.text(st.characters(exclude_categories=()), max_size=40)


@given(ANY)
def test_file_names_are_short_plain_and_no_device(name):
    made = file_name(name)
    assert 0 < len(made.encode()) <= 101
    assert not set(made) & set('/\\:*?"<>|\x00\n') and not made.startswith(".")
    assert made.partition(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


@given(ANY)
def test_what_is_shown_can_be_written_and_steers_nothing(text):
    shown = showable(text)
    shown.encode()
    assert not any(ord(c) < 32 and c not in "\t\n" for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200f")
    assert showable(shown) == shown


def test_texts_are_made_showable_wherever_they_are():
    table = pd.DataFrame({"a\x00": ["b\x1b", None], "n": [1, 2]})
    shown = all_showable({"x": (table, ["\u202e"])})
    assert shown["x"][0].columns.tolist() == ["a\ufffd", "n"]
    assert shown["x"][0].iloc[0, 0] == "b\ufffd" and shown["x"][1] == ["\ufffd"]
    assert table.iloc[0, 0] == "b\x1b"  # what was given stays as it was


@given(st.lists(ANY.filter(lambda t: "\r" not in t), min_size=1, max_size=5))
def test_csv_files_run_no_formula_and_are_read_back_as_written(names):
    table = pd.DataFrame({"name": list(map(writable, names)), "value": np.arange(len(names)) - 1.5})
    data = to_csv(table)
    back = read_csv(data, dtype={"name": str}, keep_default_na=False)
    assert back["name"].tolist() == table["name"].tolist()
    assert back["value"].tolist() == table["value"].tolist()
    plain = pd.read_csv(pd.io.common.BytesIO(data), dtype=str, keep_default_na=False)
    assert not plain["name"].str.match(r"[=+\-@\t\r]").any()


def test_columns_run_no_formula_either():
    assert to_csv(pd.DataFrame({"=1+1": [1]})).startswith(b"'=1+1")
    assert read_csv(to_csv(pd.DataFrame({"=1+1": [1]}))).columns.tolist() == ["=1+1"]


def test_networks_layers_measures_and_clips_of_any_name_are_measured_and_reported(tmp_path):
    frames = np.random.default_rng(0).random((len(ODD), 4, 1, 8, 8), dtype=np.float32)
    subjects = []
    for name in ODD.values():
        network = nn.Sequential(nn.Conv2d(1, 2, 3))
        network.add_module(name.replace(".", "_"), nn.ReLU())
        subjects.append(Subject(network, name))
    clips = Sequences.of(**dict(zip(ODD.values(), frames, strict=True)))
    label = " ".join(ODD.values())
    run = evaluate(subjects, {label: Straightness(clips)}, tmp_path / "run")
    assert not run.failures
    assert set(run.table(label)["subject"]) == set(ODD.values())
    run.plot().save(tmp_path / "plot.png")
    page = Path(run.report().path).read_text(encoding="utf-8")
    assert "<script>alert" not in page and "\x1b" not in page and "\u202e" not in page
    assert all(path.resolve().is_relative_to(tmp_path) for path in tmp_path.rglob("*"))


def test_half_a_character_is_refused_at_the_door():
    half = "a\udc80b"
    frames = np.zeros((4, 1, 8, 8), np.float32)
    layered = nn.Sequential()
    layered.add_module(half, nn.ReLU())
    for make in (
        lambda: Subject(nn.ReLU(), half),
        lambda: Subject(layered),
        lambda: Sequences.of(**{half: frames}),
        lambda: evaluate(nn.ReLU(), {half: Straightness(Sequences.of(a=frames))}, "nowhere"),
    ):
        with pytest.raises(AssayError, match="half of a character"):
            make()
