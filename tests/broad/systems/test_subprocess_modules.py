"""Preprocessors and classifiers that are commands, by the protocol of learners that are commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from assay import AssayError
from assay.broad.data.dataset import Inputs
from assay.broad.data.features import unpacked
from assay.broad.systems.adapter import given_data
from assay.broad.systems.classifiers.estimator import EstimatorClassifier
from assay.broad.systems.features.words import BagOfWords
from assay.broad.systems.subprocess_classifier import SubprocessClassifier
from assay.broad.systems.subprocess_preprocessor import SubprocessPreprocessor, written
from assay.broad.systems.team import Module
from assay.core.fingerprint import state_fingerprint
from assay.stimuli.clips import ArrayClip

pytestmark = pytest.mark.slow
TEXTS = Inputs(["good food\nand more", "bad food", "good – good"], ("a", "b", "c"))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
SHOWN = X[:, 0] > 0
SERVED = """
from assay.broad.systems.adapter import serve
from {module} import {name}
serve({name})
"""
# A preprocessor and classifier that know nothing of assay, nor of any package: an awk script would do.
LENGTHS = """#!/bin/sh
verb=$1; shift
while [ $# -gt 0 ]; do case $1 in --data) data=$2;; --model) model=$2;; --out) out=$2;; esac; shift; done
if [ "$verb" = fit ]; then wc -l < "$data" > "$model/count"; exit; fi
exec {python} -c "
import numpy, sys
numpy.savez(sys.argv[2], matrix=[[len(line)] for line in open(sys.argv[1])])" "$data" "$out"
"""


def served(folder: Path, module: str, name: str) -> list[str]:
    (folder / "team.py").write_text(SERVED.format(module=module, name=name))
    return [sys.executable, str(folder / "team.py")]


@pytest.mark.requirement("F9")
def test_a_preprocessor_in_another_process_gives_what_this_one_gives(tmp_path):
    command = served(tmp_path, "assay.broad.systems.features.words", "BagOfWords")
    there = Module("subprocess_preprocessor", {"command": command, "parameters": {"terms": 4}}).build().fit(TEXTS)
    here = BagOfWords(terms=4).fit(TEXTS)
    assert (there.transform(TEXTS) != here.transform(TEXTS)).nnz == 0


def test_a_preprocessor_may_be_in_any_language(tmp_path):
    (tmp_path / "lengths.sh").write_text(LENGTHS.format(python=sys.executable))
    there = SubprocessPreprocessor(["sh", str(tmp_path / "lengths.sh")]).fit(TEXTS)
    assert there.model_["count"].split() == [b"3"]
    assert there.transform(TEXTS).ravel().tolist() == [len(json.dumps(t)) + 1 for t in TEXTS.items]


def test_clips_are_written_frame_by_frame_and_read_as_clips(tmp_path):
    frames = RNG.random((2, 1, 3, 4)).astype(np.float32)
    name, data = written(Inputs([ArrayClip("x", frames)], ("instance-000007",)))
    (tmp_path / name).write_bytes(data)
    np.testing.assert_array_equal(unpacked(data)[0], frames)
    (clip,) = given_data(tmp_path / name).items
    np.testing.assert_array_equal(np.stack(list(clip.frames())), frames)
    assert b"instance-000007" not in data


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(("estimator", "y"), [("LogisticRegression", SHOWN), ("Ridge", np.rint(3 + SHOWN * 1.0))])
def test_a_classifier_in_another_process_gives_what_this_one_gives(tmp_path, estimator, y):
    command = served(tmp_path, "sklearn.linear_model", estimator)
    setting = "C" if estimator == "LogisticRegression" else "alpha"
    given = {"command": command, "parameters": {"fit_intercept": True}, "grid": {setting: [0.5, 2.0]}}
    classifier = Module("subprocess_classifier", given).build()
    there = classifier.with_settings(**{setting: 0.5}).fit(X, y)
    here = Module(f"sklearn.linear_model:{estimator}").build().with_settings(**{setting: 0.5}).fit(X, y)
    assert isinstance(here, EstimatorClassifier) and classifier.grid == {setting: [0.5, 2.0]}
    known = state_fingerprint(there)
    np.testing.assert_allclose(there.margins(X), here.margins(X))
    np.testing.assert_allclose(there.predict(X), here.predict(X))
    assert state_fingerprint(there) == known and classifier.model_ == {}


def test_one_class_needs_no_command_and_wrong_answers_are_sentences(tmp_path):
    tied = SubprocessClassifier(["no-such-program"]).fit(X, np.zeros(30, dtype=bool))
    assert set(tied.predict(X)) == {0.0}
    with pytest.raises(AssayError, match="this classifier has not learned yet: fit first"):
        SubprocessClassifier(["true"]).margins(X)
    with pytest.raises(AssayError, match="'backbone' would choose an architecture"):
        SubprocessClassifier(["true"], grid={"backbone": ["a"]})
    with pytest.raises(AssayError, match="this preprocessor has not learned yet: fit first"):
        SubprocessPreprocessor(["true"]).transform(TEXTS)


def test_a_script_of_the_shell_answers_with_text(tmp_path):
    script = tmp_path / "lengths.sh"
    script.write_text(
        'if [ "$1" = fit ]; then echo nothing > "$5/learned"; exit; fi\n'
        'awk \'{ print length($0) "," NF }\' "$5" > "$7"\n'
    )
    preprocessor = SubprocessPreprocessor(["sh", str(script)]).fit(Inputs(["a"], ("1",)))
    assert preprocessor.transform(Inputs(["good food", "bad"], ("1", "2"))).tolist() == [[11, 2], [5, 1]]
    script.write_text(script.read_text().replace("length($0)", '"long"'))
    with pytest.raises(AssayError, match=r"could not convert string to float: 'long'.*or is text, the numbers of"):
        preprocessor.transform(Inputs(["good food"], ("1",)))
