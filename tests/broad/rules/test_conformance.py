from __future__ import annotations

import inspect
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse
from sklearn.decomposition import PCA

from assay import AssayError
from assay.broad.data.dataset import Inputs
from assay.broad.rules.bench import Check
from assay.broad.rules.conformance import check_system, format_checks
from assay.broad.rules.rules import DOCUMENTS
from assay.broad.systems.adapter import Learner, Preprocessor
from assay.broad.systems.classifiers.linear import LinearSVM
from assay.broad.systems.features.words import BagOfWords
from assay.broad.systems.learners.guinea_pig import RandomProjections
from assay.broad.systems.learners.text_learner import MatrixLearner, sparse_autoencoder_text
from assay.broad.systems.saved_learner import save_learner
from assay.broad.systems.team import Module, Parts
from assay.networks import LearnedStack, StackedAutoencoder
from assay.stimuli.clips import ArrayClip, FrameFolder
from team_script import ALONE

RNG = np.random.default_rng(0)
WORDS = ["fine", "food", "poor", "slow", "noise", "calm", "quick", "kind", "cold", "warm"]
TEXT = Inputs([" ".join(RNG.choice(WORDS, 8)) for _ in range(27)], tuple(f"review {i}" for i in range(27)))
VIDEO = Inputs(
    [ArrayClip(f"{i}", RNG.random((5, 6, 8)).astype(np.float32)) for i in range(24)], tuple("abcdefghijklmnopqrstuvwx")
)
HERE = "test_conformance"
SPY: dict[str, str] = {}


# -- an adapter for a deep system that knows nothing of the harness -----------------------------------------


class PCAStack:
    """Principal components of principal components, rectified in between."""

    algorithm = "PCA"

    def __init__(self, components=(6, 5, 4)):
        self.components = components
        self.weights_ = []

    @property
    def layers(self):
        return [f"pca.{i}" for i in range(len(self.components))]

    def shallow(self):
        return PCAStack(self.components[:1])

    def fit(self, X):
        self.weights_ = []
        for n in self.components:
            self.weights_.append(PCA(n, svd_solver="full").fit(self.dense(X)).components_)
            X = self.above(X, self.weights_[-1])
        return self

    def untrained(self, X):
        rng, below = np.random.default_rng(0), X.shape[1]
        self.weights_ = []
        for n in self.components:
            self.weights_.append(rng.normal(size=(n, below)))
            below = n

    def transform(self, X, layer=-1):
        for weights in self.weights_[: range(len(self.components))[layer] + 1]:
            X = self.above(X, weights)
        return X

    def above(self, X, weights):
        return np.maximum(self.dense(X) @ weights.T, 0)

    def dense(self, X):
        return X.toarray() if sparse.issparse(X) else X


# -- systems that break one rule each -------------------------------------------------------------------------


class TwoLayers(RandomProjections):
    def __init__(self, units=(5, 4)):
        super().__init__(units)


class Deep(RandomProjections):
    def __init__(self, units=(6, 5, 4)):
        super().__init__(units)

    def shallow(self):
        return type(self)(self.units[:1])


class Hides(Deep):
    @property
    def untrained(self):
        raise AttributeError("nobody may see the start")


class Mixed(Deep):
    @property
    def algorithm(self):
        return ["projection", "projection", "magic"][: len(self.units)]


class Nameless(Deep):
    algorithm = None


class Twins(Deep):
    @property
    def layers(self):
        return ["same"] * len(self.units)


class Grows(Deep):
    @property
    def layers(self):
        return super().layers if self.weights_ else []


class LosesRows(Deep):
    def transform(self, X, layer=-1):
        return super().transform(X, layer)[: 3 if layer == 1 else None]


class GivesNaN(Deep):
    def transform(self, X, layer=-1):
        return super().transform(X, layer) * (np.nan if layer == 0 else 1)


class IgnoresLayer(Deep):
    def transform(self, X, layer=-1):
        return super().transform(X, 0 if layer == -1 else layer)


class Chooses(Deep):
    def __init__(self, units=(6, 5, 4), backbone="vgg"):
        super().__init__(units)


class TakesAll(Deep):
    def __init__(self, **more):
        super().__init__()


class ChoosesByArch(Deep):
    def __init__(self, units=(6, 5, 4), arch="vgg"):
        super().__init__(units)


class ChoosesByModelName(Deep):
    def __init__(self, units=(6, 5, 4), model_name="vgg"):
        super().__init__(units)


class Asleep(PCAStack):
    """Learns in its first layer only: the others are as they would be without learning."""

    def fit(self, X):
        super().untrained(X)
        drawn = self.weights_[1:]
        super().fit(X)
        self.weights_[1:] = drawn
        return self


class DrawsBySeedOfData(Deep):
    """Fixed random projections whose seed is made of the data, so that other data give other ones."""

    def fit(self, X):
        self.seed = abs(hash(X.toarray().tobytes())) % 2**32
        return super().fit(X)

    def untrained(self, X):
        self.seed = 1
        return super().fit(X)


class TurnsByRounding(DrawsBySeedOfData):
    """Learns which directions are worth how much, and turns them by any change of the data, as an unstable one does."""

    def fit(self, X):
        super().fit(X)
        learned = np.linalg.svd(X.toarray(), compute_uv=False)
        for i, weights in enumerate(self.weights_):
            left, values, right = np.linalg.svd(weights, full_matrices=False)
            worth = np.interp(np.linspace(0, 1, len(values)), np.linspace(0, 1, len(learned)), learned)
            self.weights_[i] = left * (worth**4) @ right
        return self


class SwitchedByNumber(PCAStack):
    """Has another kind of layers by a setting that is called like any other."""

    def __init__(self, components=(6, 5, 4), depth_scale=1):
        super().__init__(components)
        self.depth_scale = depth_scale

    def fit(self, X):
        if self.depth_scale == 2:
            self.centres_ = np.zeros(3)
        return super().fit(X)


class HalfAsleep(MatrixLearner):
    def fit(self, X):
        super().fit(X)
        self.stack.stack[1].load_state_dict({k[2:]: v for k, v in self.stack.start.items() if k.startswith("1.")})
        return self


def half_asleep(inputs=10):
    return HalfAsleep(StackedAutoencoder(inputs, (6, 5, 4)), epochs=1)


class LearnsWhenShown(Deep):
    def transform(self, X, layer=-1):
        self.scales_[0] *= 1.01
        return super().transform(X, layer)


class Batched(Deep):
    def transform(self, X, layer=-1):
        found = super().transform(X, layer)
        return found - found.mean(0)


class Ordered(Deep):
    def transform(self, X, layer=-1):
        return super().transform(X, layer) + np.linspace(0, 1, X.shape[0])[:, None]


class ShallowOfTwo(Deep):
    def shallow(self):
        return type(self)(self.units[:2])


class ShallowFitted(Deep):
    def shallow(self):
        alone = super().shallow()
        alone.weights_, alone.scales_ = self.weights_[:1], self.scales_[:1]
        return alone


class Throws(Deep):
    def fit(self, X):
        raise RuntimeError("out of cheese\nredo from start")


class Exits(Deep):
    def fit(self, X):
        sys.exit("that was all")


class GivesNothing(Deep):
    def fit(self, X):
        super().fit(X)


class WantsLabels(Deep):
    def fit(self, X, y):
        return super().fit(X)


class Opens(Deep):
    def fit(self, X):
        Path(SPY["file"]).read_text()
        return super().fit(X)


class Dense(BagOfWords):
    def transform(self, inputs):
        return super().transform(inputs).toarray()


class Whitens(BagOfWords):
    """By the mean of whatever comes together."""

    def transform(self, inputs):
        found = super().transform(inputs).toarray()
        return found - found.mean(0)


class Noisy(BagOfWords):
    def transform(self, inputs):
        self._rng = getattr(self, "_rng", np.random.default_rng(0))
        return super().transform(inputs).toarray() + self._rng.normal()


class NeverFitsAlike(BagOfWords):
    fits = 0

    def fit(self, inputs):
        NeverFitsAlike.fits += 1
        self.scale_ = NeverFitsAlike.fits
        return super().fit(inputs)

    def transform(self, inputs):
        return super().transform(inputs) * self.scale_


class Collects(BagOfWords):
    def transform(self, inputs):
        self.seen_ = getattr(self, "seen_", 0) + len(inputs)
        return super().transform(inputs)


class Reads(BagOfWords):
    def transform(self, inputs):
        Path(SPY["file"]).read_text()
        return super().transform(inputs)


class Connects(BagOfWords):
    def transform(self, inputs):
        with socket.socket(type=socket.SOCK_DGRAM) as packets:
            packets.sendto(b"?", ("127.0.0.1", 9))
        return super().transform(inputs)


class Runs(BagOfWords):
    def transform(self, inputs):
        os.system("true")
        return super().transform(inputs)


class Boasts(LinearSVM):
    def predict(self, X):
        return 2 + super().predict(X)


class Adapts(LinearSVM):
    def predict(self, X):
        self.offset_ += 0.1
        return super().predict(X)


def found(checks: list[Check], requirement: str) -> Check:
    """The one line of a requirement that did not pass, or the first."""
    mine = [c for c in checks if c.requirement == requirement]
    return next((c for c in mine if c.status != "pass"), mine[0])


def with_learner(name: str, **parameters) -> Parts:
    return Parts(Module("bag_of_words"), Module(f"{HERE}:{name}", parameters), Module("linear_svr"))


def with_preprocessor(name: str) -> Parts:
    return Parts(Module(f"{HERE}:{name}"), Module("random_projections", {"units": [6, 5, 4]}), Module("linear_svr"))


# -- systems that keep to the rules ---------------------------------------------------------------------------


@pytest.mark.requirement("A1")
def test_a1_an_adapter_has_less_than_50_lines_and_passes(tmp_path):
    assert len(inspect.getsource(PCAStack).splitlines()) < 50
    assert isinstance(PCAStack(), Learner) and isinstance(BagOfWords(), Preprocessor)
    (tmp_path / "paper.pdf").write_text("")
    documents = dict.fromkeys(DOCUMENTS, str(tmp_path / "paper.pdf"))
    checks = check_system(with_learner("PCAStack"), TEXT, documents)
    assert {c.status for c in checks} == {"pass"}, format_checks(checks)
    assert found(checks, "J1").sentence == "3 layers of one algorithm (PCA)"
    assert found(checks, "G1").sentence == "predictions lie in [1, 5]"
    assert {"J1", "J2", "J3", "J4", "J5", "J6", "D8", "D9", "F5", "G1"} <= {c.requirement for c in checks}


@pytest.mark.slow
@pytest.mark.requirement("J5")
def test_a_stack_on_text_passes_and_shows_how_much_each_layer_learned():
    parts = Parts(
        Module("bag_of_words"), Module("sparse_autoencoder", {"inputs": 10, "hidden": [6, 5, 4], "epochs": 2}),
        Module("logistic"),
    )  # fmt: skip
    checks = check_system(parts, TEXT)
    assert {c.status for c in checks if c.requirement != "J4"} == {"pass"}, format_checks(checks)
    assert found(checks, "J1").sentence == "3 layers of one algorithm (Autoencoder)"
    training = TEXT.take(np.arange(18))
    learner = sparse_autoencoder_text(10, (6, 5, 4), epochs=2).fit(BagOfWords().fit(training).transform(training))
    stack: LearnedStack = learner.stack
    after = np.concatenate([v.numpy().ravel() for v in stack.stack[0].state_dict().values()]).astype(float)
    before = np.concatenate([v.numpy().ravel() for k, v in stack.start.items() if k.startswith("0.")]).astype(float)
    change = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert f"weights change by {change:.2g}, " in found(checks, "J5").sentence


@pytest.mark.requirement("J7")
def test_video_passes_and_has_confidences():
    parts = Parts(Module("grey_clips", {"width": None}), Module(f"{HERE}:Deep"), Module("linear_svm"))
    checks = check_system(parts, VIDEO)
    assert {c.status for c in checks if c.requirement not in ("J4", "J5")} == {"pass"}, format_checks(checks)
    assert found(checks, "G1").sentence == "predictions lie in [0, 1]"


def test_clips_that_are_files_may_be_read_and_other_files_may_not(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    clips = []
    for i in range(24):
        Image.fromarray(RNG.integers(0, 255, (6, 8), dtype=np.uint8)).save(tmp_path / f"{i}.png")
        clips.append(FrameFolder(f"{i}", (tmp_path / f"{i}.png",) * 2))
    parts = Parts(Module("grey_clips", {"width": None}), Module(f"{HERE}:Deep"), Module("linear_svm"))
    checks = check_system(parts, Inputs(clips, tuple(map(str, range(24)))))
    assert [c.status for c in checks if c.requirement == "J6"] == ["pass"] * 4, format_checks(checks)


def test_k1_a_trained_learner_is_checked_as_it_is(tmp_path):
    save_learner(Deep((9, 9, 9)).fit(np.eye(10)), tmp_path / "learner")
    parts = with_learner("Deep")
    trained = Parts(parts.preprocessor, parts.learner, parts.classifier, tmp_path / "learner", "learned by us")
    assert found(check_system(trained, TEXT), "F6").status == "pass"
    (tmp_path / "learner").write_bytes(b"?")
    assert "learner is damaged" in found(check_system(trained, TEXT), "F6").sentence


@pytest.mark.slow
def test_a_command_is_checked_and_what_cannot_be_seen_is_not_claimed(tmp_path):
    usual = {"J4": "non-conforming", "J5": "not checked", "D9": "not checked"}
    (tmp_path / "team.py").write_text(ALONE)
    learner = Module("subprocess", {"command": [sys.executable, str(tmp_path / "team.py")]})
    parts = Parts(Module(f"{HERE}:Dense"), learner, Module("linear_svr"))
    checks = check_system(parts, TEXT)
    assert {c.requirement: c.status for c in checks if c.status != "pass"} == usual, format_checks(checks)
    sly = "np.save(model / 'sub' / 'mean.npy', Y.mean(0)); Y[0] = np.nan"
    (tmp_path / "team.py").write_text(ALONE.replace("#HERE", sly))
    checks = check_system(parts, TEXT)
    assert "NaN" in found(checks, "F6").sentence and "NaN" in found(checks, "J2").sentence
    assert "the learner changes" in found(checks, "D8").sentence


# -- one rule broken at a time ----------------------------------------------------------------------------------

LEARNERS = {
    "TwoLayers": ("J1", "non-conforming", "2 layers, at least 3 are asked for"),
    "Mixed": ("J1", "non-conforming", "more than one algorithm: projection, projection, magic"),
    "Nameless": ("J1", "not checked", "no attribute 'algorithm'"),
    "Twins": ("J1", "fail", "have one name"),
    "Grows": ("J1", "fail", "the layers are [] before learning"),
    "LosesRows": ("J2", "fail", "layer projection.1 gives 3 rows for 27 instances"),
    "GivesNaN": ("J2", "fail", "layer projection.0 gives NaN"),
    "IgnoresLayer": ("J2", "fail", "transform without a layer does not give the last one"),
    "Chooses": ("J3", "fail", "the parameter 'backbone' would choose an architecture"),
    "ChoosesByArch": ("J3", "fail", "the parameter 'arch' would choose an architecture"),
    "ChoosesByModelName": ("J3", "fail", "the parameter 'model_name' would choose an architecture"),
    "TakesAll": ("J3", "fail", "takes any parameters (*more)"),
    "Hides": ("J5", "not checked", "it shows no weights by layer"),
    "Asleep": ("J5", "non-conforming", "no weight changes while it learns in pca.1, pca.2"),
    "Deep": ("J5", "non-conforming", "no weight changes while it learns in projection.0, projection.1, projection.2"),
    "DrawsBySeedOfData": ("J5", "not checked", "drawn at random"),
    "half_asleep": ("J5", "non-conforming", "no weight changes while it learns in stack.1"),
    "LearnsWhenShown": ("D8", "fail", "the learner changes when it is shown instances"),
    "Batched": ("D8", "fail", "the learner answers otherwise when instances come in another number"),
    "Ordered": ("D8", "fail", "the learner answers otherwise when instances come in another order"),
    "ShallowOfTwo": ("F5", "fail", "shallow() has 2 layers"),
    "ShallowFitted": ("F5", "fail", "shallow() keeps what the deep learner has learned"),
    "Throws": ("F6", "fail", "RuntimeError: out of cheese"),
    "Exits": ("F6", "fail", "SystemExit: that was all"),
    "GivesNothing": ("F6", "fail", "fit of the learner gives None"),
    "WantsLabels": ("F6", "fail", "missing 1 required positional argument: 'y'"),
    "Opens": ("D9", "fail", "the learner opens"),
}
PREPROCESSORS = {
    "Whitens": "alone than among the others",
    "Noisy": "",
    "NeverFitsAlike": "fitted again on the same instances, transforms otherwise",
    "Collects": "the preprocessor changes when it transforms",
    "Reads": "secret.txt, which it was not given",
    "Connects": "goes to the network (('127.0.0.1', 9))",
    "Runs": "the preprocessor runs true",
}


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A file that no system was given, in no place for temporary files."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "secret.txt").write_text("labels")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    monkeypatch.setitem(SPY, "file", str(tmp_path / "secret.txt"))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.requirement("F5", "J2")
def test_learners_that_break_a_rule(name, secret):
    requirement, status, sentence = LEARNERS[name]
    line = found(check_system(with_learner(name), TEXT), requirement)
    assert line.status == status and sentence in line.sentence, line


@pytest.mark.requirement("J5")
def test_an_unstable_learner_is_told_from_weights_drawn_at_random_by_its_spectrum():
    line = found(check_system(with_learner("TurnsByRounding"), TEXT), "J5")
    assert line.status == "pass", line


def test_a_setting_that_changes_what_the_network_is_made_of_is_named_whatever_it_is_called():
    line = found(check_system(with_learner("SwitchedByNumber", depth_scale=2), TEXT), "J3")
    assert line.status == "fail" and "parameter 'depth_scale' chooses an architecture" in line.sentence, line
    sizes = found(check_system(with_learner("SwitchedByNumber", components=[5, 4, 3]), TEXT), "J3")
    assert sizes.status == "pass", sizes


@pytest.mark.parametrize("name", PREPROCESSORS)
@pytest.mark.requirement("F8", "J6")
def test_preprocessors_that_break_a_rule(name, secret):
    line = found(check_system(with_preprocessor(name), TEXT), "J6")
    assert line.status == "fail" and PREPROCESSORS[name] in line.sentence, line


@pytest.mark.parametrize(
    ("name", "requirement", "sentence"),
    [("Boasts", "G1", "predictions outside of [0, 1], or NaN"), ("Adapts", "D8", "the classifier changes when")],
)
def test_classifiers_that_break_a_rule(name, requirement, sentence):
    parts = Parts(Module("grey_clips", {"width": None}), Module(f"{HERE}:Deep"), Module(f"{HERE}:{name}"))
    line = found(check_system(parts, VIDEO), requirement)
    assert line.status == "fail" and sentence in line.sentence, line


def test_what_a_failure_makes_impossible_is_not_checked():
    checks = check_system(with_learner("Throws"), TEXT)
    assert [c.requirement for c in checks if c.status == "fail"] == ["F6"]
    assert found(checks, "J1") == Check("J1", "not checked", "the learner failed")
    assert found(checks, "J6").status == "pass"
    nowhere = Parts(Module("nowhere:Nothing"), Module("random_projections"), Module("linear_svr"))
    assert found(check_system(nowhere, TEXT), "F8").status == "fail"


@pytest.mark.requirement("J4")
def test_j4_missing_artifacts_are_listed(tmp_path):
    given = {"architecture": "https://example.org/figure", "pseudocode": str(tmp_path / "gone.txt"), "example": ""}
    line = found(check_system(with_learner("Deep"), TEXT, given), "J4")
    assert line.status == "non-conforming" and "figure" not in line.sentence
    assert "gone.txt" in line.sentence and "a detailed example" in line.sentence


def test_too_few_instances_are_refused():
    with pytest.raises(AssayError, match="23 instances are too few to check a system with, give at least 24"):
        check_system(with_learner("Deep"), TEXT.take(np.arange(23)))


class Framed(PCAStack):
    """Answers with a table of pandas."""

    def transform(self, X, layer=-1):
        return pd.DataFrame(super().transform(X, layer))


class OneNumber(PCAStack):
    """Answers with one number for each instance, in no column."""

    def transform(self, X, layer=-1):
        return super().transform(X, layer)[:, 0]


class MadeForTen(PCAStack):
    """Takes ten columns, as a network of a fixed size does."""

    def fit(self, X):
        if X.shape[1] != len(WORDS):
            raise AssayError(f"features have {X.shape[1]} columns, not {len(WORDS)}")
        return super().fit(X)


def text_checks(learner: str, inputs: Inputs, learned_from: Inputs | None = None) -> dict[str, Check]:
    parts = Parts(Module("bag_of_words", {"terms": 10}), Module(f"{HERE}:{learner}"), Module("linear_svr"))
    return {check.requirement: check for check in check_system(parts, inputs, learned_from=learned_from)}


def test_a_table_of_pandas_is_taken_as_the_matrix_that_a_run_makes_of_it():
    checks = text_checks("Framed", TEXT)
    assert {checks[name].status for name in ("F6", "J2", "G1", "D8", "F5")} == {"pass"}


@pytest.mark.parametrize(
    "name, sentence", [("OneNumber", "the learner gives an array of shape (27,)"), ("GivesNothing", "fit of the lea")]
)
def test_one_mistake_is_named_once_and_what_follows_from_it_is_not_checked(name, sentence):
    checks = text_checks(name, TEXT)
    assert checks["F6"].status == "fail" and sentence in checks["F6"].sentence
    assert checks["G1"].status == "not checked"


def test_a_learner_made_for_the_vocabulary_of_all_reviews_is_not_checked_with_that_of_a_few():
    few = Inputs([" ".join(np.roll(WORDS[:4], i)[: 1 + i % 4]) for i in range(24)], tuple(map(str, range(24))))
    assert text_checks("MadeForTen", few)["F6"].sentence == "features have 4 columns, not 10"
    assert text_checks("MadeForTen", TEXT)["F6"].status == "pass"
    assert text_checks("MadeForTen", few, learned_from=TEXT)["J1"].status == "pass"


def test_a_preprocessor_that_is_a_command_is_not_blamed_for_being_one(tmp_path):
    script = tmp_path / "lengths.sh"
    script.write_text(
        'if [ "$1" = fit ]; then echo nothing > "$5/learned"; exit; fi\n'
        'awk \'{ for (i = 1; i < 7; i++) printf "%s ", length($0) % i; print NF }\' "$5" > "$7"\n'
    )
    command = Module("subprocess_preprocessor", {"command": ["sh", str(script)]})
    checks = check_system(Parts(command, Module("random_projections"), Module("linear_svr")), TEXT)
    assert not [check for check in checks if check.status == "fail"]
    assert any(check.status == "not checked" and "nobody sees" in check.sentence for check in checks)
