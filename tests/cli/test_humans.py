"""`assay humans` prints how alike people are and how well any model could do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from assay import AssayError
from assay.cli.main import app
from assay.measures.similarity.scores import score_rdms
from assay.stimuli import as_human_stimuli, load_brain92


def humans(*words: object) -> str:
    shown = CliRunner().invoke(app, ["humans", *map(str, words)], catch_exceptions=False)
    assert shown.exit_code == 0
    return shown.stdout


def test_the_published_numbers_are_printed_by_one_command(shared_data):
    text = humans(shared_data / "kriegeskorte92")
    assert "0.1901 (0.0896)" in text and "0.1810 (0.0862)" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["spearman", "ranks", "0.37231", "0.66572"] in lines
    assert ["spearman", "raw", "values", "0.37856", "0.66068"] in lines
    scores = {" ".join(words[:-2]): words[-2] for words in lines if len(words) > 2}
    published = {
        "animacy": "0.58819",
        "monkey IT": "0.43892",
        "HMAX": "0.22173",
        "Silhouette": "0.12468",
        "V1": "0.03926",
    }
    assert published.items() <= scores.items()


def test_any_folder_of_rdms_will_do(tmp_path):
    draw = np.random.default_rng(0)
    for name in ("anna-1", "anna-2", "ben-1"):
        np.save(tmp_path / f"{name}.npy", draw.random(15))
    found = json.loads(humans(tmp_path, "--subjects", "anna,anna,ben", "--method", "spearman", "--json"))
    assert [row["pairs"] for row in found["human-human similarity"]] == [3]
    assert [row["pooled on"] for row in found["noise ceiling"]] == ["ranks", "raw values"] and found["models"] == []
    (tmp_path / "ben-1.npy").unlink()
    (pair,) = json.loads(humans(tmp_path, "--method", "pearson", "--json"), parse_constant=pytest.fail)[
        "human-human similarity"
    ]
    assert (pair["pairs"], pair["sd"]) == (1, None), "a NaN, which JSON does not have"


def test_ceiling_and_models_have_the_intervals_of_the_measure(tmp_path, shared_data):
    found = json.loads(humans(shared_data / "kriegeskorte92", "--method", "spearman", "--bootstrap", 20, "--json"))
    ceiling, animacy = found["noise ceiling"][0], found["models"][0]
    brain = load_brain92(shared_data / "kriegeskorte92")
    human = as_human_stimuli(brain)
    scores = score_rdms([brain.models["animacy"]], human, "spearman", 20, 0)
    ends = [ceiling[key] for key in ("lower_low", "lower_high", "upper_low", "upper_high")]
    assert ends == pytest.approx([end for bound in scores.ceiling for end in (bound.low, bound.high)])
    assert animacy["model"] == "animacy"
    assert [animacy["hms_low"], animacy["hms_high"]] == pytest.approx([scores.to_mean[0].low, scores.to_mean[0].high])
    assert animacy["subject_mean_low"] == pytest.approx(scores.to_people[0].low)
    for name in ("anna", "ben", "carl"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(len(name)).random(45))
    text = humans(tmp_path, "--bootstrap", 20)
    assert "lower bound" in text and "95 % intervals over other stimuli and other people (20 resamples)" in text
    assert "95 %" not in humans(tmp_path, "--bootstrap", 0)


def test_bad_calls_are_named(tmp_path):
    for name in ("anna-1", "anna-2", "ben-1"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).random(15))
    with pytest.raises(AssayError, match="--subjects names 2 people for 3 RDMs"):
        humans(tmp_path, "--subjects", "anna,ben")
    with pytest.raises(AssayError, match="does not exist"):
        humans(tmp_path / "elsewhere")
