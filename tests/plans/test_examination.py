"""An examination: what is asked of whom, how much of it, and that it goes on where it stopped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from torch import Tensor, nn

from assay import AssayError, Measure, Run, Subject
from assay.core.determinism import seeded
from assay.core.progress import listening
from assay.plans.examination import Question, examine, questions
from assay.plans.examination_record import ExaminationRecord
from assay.report import document
from assay.report.document import Items
from assay.runs.evaluate import evaluate
from assay.stimuli import Images, Labelled

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
    subjects = [Subject(classifier(0), "a"), Subject(classifier(1), "b"), Subject(front_end(), "front end")]
    return examine(subjects, str(tmp_path_factory.mktemp("examined") / "run"), data=data, seconds=ENDLESS)


def test_everything_is_asked_of_those_that_can_answer(run):
    assert set(run.measures) >= ALL and not run.failures
    assert set(run.table("margins")["subject"]) == {"a", "b"}, "a front end has no classes"
    assert set(run.table("straightness")["subject"]) == {"a", "b", "front end"}


def test_bare_modules_and_a_pair_of_arrays_will_do(data, tmp_path):
    inputs, labels = data.inputs[:, 0, :8, :8].reshape(120, 64), data.labels
    networks = {name: nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)) for name in ("one", "two")}
    run = examine(networks, tmp_path / "run", data=(inputs, labels), seconds=ENDLESS)
    assert set(run.subjects) == {"one", "two"} and not run.failures
    assert set(run.measures) == {"norms", "clusters", "margins", "perturbation", "sharpness"}


def test_a_network_that_cannot_take_the_inputs_is_left_out_and_named(data, tmp_path):
    networks = {"fits": classifier(0), "another shape": nn.Linear(5, 3)}
    run = examine(networks, tmp_path / "run", data=data, seconds=ENDLESS)
    assert set(run.subjects) == {"fits"} and not run.failures
    assert any("another shape is left out" in line for line in ExaminationRecord.read(run.folder).notes.values())
    with pytest.raises(AssayError, match="none of the networks takes these inputs"):
        examine({"a": nn.Linear(5, 3), "b": nn.Linear(6, 3)}, tmp_path / "none", data=data, seconds=ENDLESS)


def test_cheaper_questions_come_first(data):
    costs = [q.passes * q.most for q in questions((1, 16, 16), data, None)]
    assert costs == sorted(costs)


def front_end() -> nn.Module:
    with seeded(2):
        return nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU())


def test_a_first_examination_says_that_all_was_measured(run):
    assert (run.outcome.kept, run.outcome.measured, run.outcome.failed) == (0, len(run.keys), 0)
    assert run.manifest.started <= min(cell.started for cell in run.cells)
    assert run.manifest.ended >= max(cell.started for cell in run.cells)


def test_progress_counts_the_cells_of_all_questions(data, tmp_path):
    heard = []
    with listening(lambda *step: heard.append(step)):
        done = examine(Subject(classifier(0), "a"), tmp_path, data=data, seconds=ENDLESS)
    cells = [(steps, total) for what, steps, total in heard if what == "cells"]
    assert {total for _, total in cells} == {len(done.keys)}
    assert [steps for steps, _ in cells] == sorted(steps for steps, _ in cells)


def test_other_networks_do_not_replace_those_that_were_examined(tmp_path):
    a, b = Subject(classifier(0), "a"), Subject(classifier(1), "b")
    examine(a, tmp_path, shape=(1, 16, 16), seconds=1e-6)
    sentence = r"holds what was measured of 'a', .* given \('b'\): give another folder .*--run"
    with pytest.raises(AssayError, match=sentence):
        examine(b, tmp_path, shape=(1, 16, 16), seconds=1e-6)
    assert Run(tmp_path).subjects == ["a"]
    both = examine([a, b], tmp_path, shape=(1, 16, 16), seconds=1e-6)
    assert both.subjects == ["a", "b"] and (both.outcome.kept, both.outcome.measured) == (1, 1)


class Reader(nn.Module):
    """A network of words, whose inputs are whole numbers by name."""

    def __init__(self) -> None:
        super().__init__()
        with seeded(0):
            self.words, self.classes = nn.Embedding(50, 8), nn.Linear(8, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        shown = attention_mask[..., None].float()
        return self.classes((self.words(input_ids) * shown).sum(1) / shown.sum(1))


def test_networks_of_words_are_examined(tmp_path):
    rng = np.random.default_rng(0)
    words = {"input_ids": rng.integers(0, 50, (120, 6)), "attention_mask": np.ones((120, 6), int)}
    done = examine({"reader": Reader()}, tmp_path, data=Labelled(words, np.arange(120) % 2), seconds=ENDLESS)
    assert {"norms", "clusters"} <= set(done.measures) and not done.failures
    ids = examine(
        {"ids": nn.Sequential(nn.Embedding(50, 4), nn.Flatten(), nn.Linear(24, 2))},
        tmp_path / "ids",
        data=(words["input_ids"], np.arange(120) % 2),
        seconds=ENDLESS,
    )
    assert {"norms", "clusters"} <= set(ids.measures) and not ids.failures


def test_examining_again_asks_the_same_and_measures_nothing(run, data, caplog):
    subjects = [Subject(classifier(0), "a"), Subject(classifier(1), "b"), Subject(front_end(), "front end")]
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
    for time in (0, "soon", "-3m", "10d", "0s", float("nan"), float("inf"), None, True):
        with pytest.raises(AssayError, match=r"seconds=.* is not a time above 0: give"):
            examine([subject], str(tmp_path), shape=(1, 16, 16), seconds=time)
    for shape in ("3x", "0x3", "axb", "", (1, -8, 8), 3, (1, "8"), (1.5, 8), (True, 8)):
        with pytest.raises(AssayError, match=r"shape=.* is not the shape of one input: give"):
            examine([subject], str(tmp_path), shape=shape)
    with pytest.raises(AssayError, match="there are no networks to examine: give at least one"):
        examine([], str(tmp_path), shape=(1, 16, 16))
    with pytest.raises(AssayError, match="run=None is no place for a run"):
        examine([subject], None, shape=(1, 16, 16))


def test_times_and_shapes_may_be_text(tmp_path):
    done = examine(Subject(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), "a"), tmp_path, shape="3x2x2", seconds="10m")
    assert done.measures == ["norms"]


def test_a_question_that_the_data_do_not_allow_is_left_out_with_the_reason(data, tmp_path):
    """There are no clusters of one class to tell apart; all else can be asked."""
    of_one_class = Labelled(data.inputs, np.zeros(len(data), int), "noise")
    with seeded(0):
        network = Subject(nn.Sequential(nn.Flatten(), nn.Linear(256, 3)), "a")
    done = examine([network], tmp_path, data=of_one_class, seconds=ENDLESS)
    assert {"norms", "straightness", "invariance to rotation"} <= set(done.measures)
    assert "clusters" not in done.measures and not done.failures
    assert "one class" in ExaminationRecord.read(done.folder).notes["clusters"]


# -- time, by a clock that only questions move ---------------------------------------------------------


@dataclass(frozen=True)
class Passes(Measure):
    """A measure that shows so many inputs, as it says."""

    inputs: int = 1
    name: ClassVar[str] = "passes"
    value: ClassVar[str] = "value"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        return pd.DataFrame({"value": [1.0], "n": [self.inputs]})


class Clock:
    """Time that passes only while questions are asked: a millisecond an input, later as much as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *asked: Question, later: float = 0.001) -> None:
        self.now, self.seconds_an_input, self.later = 0.0, 0.001, later
        place = "assay.plans.examination."
        monkeypatch.setattr(f"{place}questions", lambda *_: list(asked))
        monkeypatch.setattr(f"{place}_seconds_per_input", lambda *_: 0.001)
        monkeypatch.setattr(f"{place}evaluate", self.evaluate)

    def __call__(self) -> float:
        return self.now

    def evaluate(self, subjects, measures, run, **more):
        done = evaluate(subjects, measures, run, **more)
        if done.outcome.measured:
            self.now += list(measures.values())[-1].inputs * self.seconds_an_input
            self.seconds_an_input = self.later
        return done

    def examine(self, folder, seconds: float):
        subject = Subject(nn.Flatten(), "net")
        done = examine([subject], str(folder), shape=(1, 4, 4), seconds=seconds, clock=self)
        return done, ExaminationRecord.read(done.folder)


def asked(label: str, most: int, passes: float = 1) -> Question:
    return Question(label, passes, Passes, most, 100)


def test_a_machine_that_becomes_busy_shows_less_and_says_so(tmp_path, monkeypatch, caplog):
    """Passes take four times as long after the first of five questions, which would take three times the time."""
    counts = {"a": 10_000, "b": 20_000, "c": 20_000, "d": 20_000, "e": 20_000}
    clock = Clock(monkeypatch, *(asked(label, most) for label, most in counts.items()), later=0.004)
    with caplog.at_level("INFO", logger="assay"):
        done, record = clock.examine(tmp_path, seconds=100)
    assert 70 <= clock.now <= 105
    assert list(record.sizes) == list(counts) and record.sizes["a"] == 10_000
    assert all(100 <= record.sizes[label] < 5000 for label in "cde")
    assert "times as long as was estimated" in record.notes["e"] and record.notes["e"] in caplog.text
    (section,) = [s for s in document(done).sections if s.title == "Left out or shown with less, for want of time"]
    assert isinstance(section.blocks[0], Items) and section.blocks[0].items == tuple(record.notes.values())


def test_what_no_longer_fits_is_left_out_and_asked_when_there_is_time(tmp_path, monkeypatch):
    questions_asked = [asked("a", 2000), asked("b", 2000), asked("c", 20_000)]
    clock = Clock(monkeypatch, *questions_asked, later=0.02)
    done, record = clock.examine(tmp_path, seconds=40)
    assert done.measures == ["a", "b"] and record.notes["c"].startswith("c is not asked: it would take longer")
    clock = Clock(monkeypatch, *questions_asked)
    done, record = clock.examine(tmp_path, seconds=40)
    assert done.measures == ["a", "b", "c"] and record.sentences == []
    assert done.outcome.kept == 2 and done.outcome.measured == 1


def test_a_question_that_its_share_is_too_short_for_is_asked_with_what_the_others_leave(tmp_path, monkeypatch):
    """It needs 60 of 100 s; the others, which are asked before it comes to its turn again, need 2."""
    clock = Clock(monkeypatch, Question("long", 1, Passes, 60_000, 60_000), asked("b", 1000), asked("c", 1000))
    done, record = clock.examine(tmp_path, seconds=100)
    assert record.sizes == {"b": 1000, "c": 1000, "long": 60_000} and record.notes == {}
    assert set(done.measures) == {"b", "c", "long"}


def test_an_examination_goes_on_with_the_sizes_that_it_kept(tmp_path, monkeypatch):
    clock = Clock(monkeypatch, asked("a", 1000), asked("b", 2000))
    (tmp_path / "examination.json").write_text(json.dumps({"b": 700}))  # as older runs have it
    _, record = clock.examine(tmp_path, seconds=60)
    assert record.sizes == {"a": 1000, "b": 700}


def test_more_time_than_was_given_is_said(tmp_path, monkeypatch):
    clock = Clock(monkeypatch, asked("slow", 5000, passes=0.1))  # it takes ten times as long as it says
    _, record = clock.examine(tmp_path, seconds=2)
    assert record.time == "The examination took 5 s; 2 s were given."


def test_pictures_that_are_turned_are_called_by_the_file_they_are_from():
    pictures = Images(np.zeros((400, 1, 8, 8), np.float32), source="digits_test.npz")
    (turned,) = [q for q in questions((1, 8, 8), None, pictures) if q.label == "invariance to rotation"]
    assert "300 images of 1×8×8 from digits_test.npz" in turned.make(300).test.description
