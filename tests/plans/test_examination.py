"""An examination: what is asked of whom, how much of it, and that it goes on where it stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest
from torch import nn

from assay import AssayError, Subject
from assay.cli.examine import seconds_of, shape_of
from assay.core.determinism import seeded
from assay.plans.examination import examine, questions
from assay.stimuli import Labelled

ALL = {"norms", "clusters", "straightness", "margins", "augmentation", "perturbation", "invariance to gratings"}
ENDLESS = 1e9


def classifier(seed: int) -> nn.Module:
    with seeded(seed):
        return nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 7 * 7, 3))


@pytest.fixture(scope="module")
def data() -> Labelled:
    rng = np.random.default_rng(0)
    return Labelled(rng.random((120, 1, 16, 16)).astype(np.float32), np.arange(120) % 3, "noise")


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    front_end = nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU())
    subjects = [Subject(classifier(0), "a"), Subject(classifier(1), "b"), Subject(front_end, "front end")]
    return examine(subjects, str(tmp_path_factory.mktemp("examined") / "run"), data=data, seconds=ENDLESS)


def test_everything_is_asked_of_those_that_can_answer(run):
    assert set(run.measures) >= ALL and not run.failures
    assert set(run.table("margins")["subject"]) == {"a", "b"}, "a front end tells no classes"
    assert set(run.table("straightness")["subject"]) == {"a", "b", "front end"}


def test_cheaper_questions_come_first(data):
    costs = [q.passes * q.most for q in questions((1, 16, 16), data, None)]
    assert costs == sorted(costs)


def test_examining_again_asks_the_same_and_measures_nothing(run, data, caplog):
    subjects = [Subject(classifier(0), "a"), Subject(classifier(1), "b")]
    chosen = json.loads(run.folder.read("examination.json"))
    with caplog.at_level("INFO", logger="assay"):
        again = examine(subjects, run.path, data=data, seconds=ENDLESS)
    assert json.loads(again.folder.read("examination.json")) == chosen
    assert "0 measured" in caplog.text and again.outcome.measured == 0


def test_without_time_for_more_only_the_cheap_is_asked(data, tmp_path, caplog):
    with caplog.at_level("INFO", logger="assay"):
        done = examine([Subject(classifier(0), "a")], str(tmp_path), data=data, seconds=1e-6)
    assert done.measures == ["norms"] and "perturbation is not asked: it would take longer" in caplog.text
    more = examine([Subject(classifier(0), "a")], str(tmp_path), data=data, seconds=ENDLESS)
    assert set(more.measures) >= ALL, "with more time the rest is asked"


def test_what_cannot_be_is_said(tmp_path):
    subject = Subject(classifier(0), "a")
    with pytest.raises(AssayError, match="give the shape of one input"):
        examine([subject], str(tmp_path))
    with pytest.raises(AssayError, match="seconds=0 must be above 0"):
        examine([subject], str(tmp_path), shape=(1, 16, 16), seconds=0)
    for text in ("soon", "-3m", "10d", "0s"):
        with pytest.raises(AssayError, match="is not a time such as"):
            seconds_of(text)
    for text in ("3x", "0x3", "axb", ""):
        with pytest.raises(AssayError, match="is not a shape such as"):
            shape_of(text)
