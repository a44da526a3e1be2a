"""All problems of a plan are found at once, before anything is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from assay import AssayError, load_plan
from assay.core.folder import Folder
from assay.plans.check import check_plan, require_writable
from assay.plans.problems import Problems

CAMERA = {"camera": {"size": 16, "length": 4, "pictures": 1}}


def write(folder: Path, **plan: object) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    return path


def test_all_problems_are_named_each_with_its_line_and_key(tmp_path):
    path = write(
        tmp_path,
        runn="x",
        seed=-1,
        subjects=[
            {"source": "assay.networks:small_vgg", "name": "good"},
            {"source": "assay.networks:small_vg", "name": "misspelt"},
            {"source": "assay.networks:small_vgg", "nam": "x", "seed": "one"},
            {"source": "assay.networks:small_vgg", "name": "bad steps", "preprocess": ["grey", {"resiz": 3}]},
        ],
        measures=[
            {"measure": "straightness", "sequences": CAMERA, "layers": "features.99"},
            {"measure": "strightness"},
            {"measure": "norms", "convolution": "round", "shap": [3]},
            {"measure": "margins", "data": "nowhere.npz", "samples": "many"},
        ],
    )
    with pytest.raises(Problems) as error:
        check_plan(path)
    expected = [
        ":1: runn: unknown key; did you mean 'run'?",
        ":2: seed: is -1, expected a whole number from 0",
        ":9: subjects[2].nam: unknown key",
        ":10: subjects[2].seed: is 'one', expected a whole number",
        ":13: subjects[3].preprocess: unknown transform 'resiz'",
        ":6: subjects[1]: source='assay.networks:small_vg': 'assay.networks' has no 'small_vg'; did you mean",
        "measures[1].measure: unknown measure 'strightness'; did you mean 'straightness'",
        "measures[2].convolution: is 'round', expected one of 'reshaped', 'circular'",
        "measures[2].shap: unknown key; did you mean 'shape'?",
        "measures[3].data: ",
        "measures[3].samples: is 'many', expected a whole number",
        "measures[0]: good × straightness: unknown layer 'features.99'",
    ]
    said = error.value.sentences
    for sentence in expected:
        assert any(sentence in one and "plan.yaml:" in one for one in said), (sentence, said)
    assert len(said) == len(expected)
    assert not (tmp_path / "runs").exists()


def test_a_plan_without_problems_comes_with_its_networks(tmp_path):
    checked = check_plan(write(tmp_path, subjects=["assay.networks:small_vgg"], measures=["norms"]), pairs=False)
    assert [subject.name for subject in checked.subjects] == ["small_vgg"] and list(checked.plan.measures) == ["norms"]


def test_what_a_network_raises_is_one_of_the_problems(tmp_path):
    (tmp_path / "raises_beside.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return {}['gone']\n"
    )
    path = write(tmp_path, subjects=["raises_beside:Net"], measures=[{"measure": "straightness", "sequences": CAMERA}])
    with pytest.raises(AssayError, match=r"Net × straightness: .*gone"):
        check_plan(path)


@pytest.mark.parametrize("run", ["file/run", "nosuch://run"])
def test_a_run_that_cannot_be_written_is_refused_unless_another_is_given(tmp_path, run):
    (tmp_path / "file").write_text("")
    path = write(tmp_path, run=run, subjects=["assay.networks:small_vgg"], measures=["norms"])
    with pytest.raises(AssayError, match=r"plan\.yaml: run: .*(is a file|is not a place)"):
        check_plan(path, pairs=False)
    assert check_plan(path, run=str(tmp_path / "other"), pairs=False).plan.run == str(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(AssayError, match="is not yours to write to"):
        require_writable(Folder(str(tmp_path / "run")))


def test_data_for_all_measures_are_given_once_and_their_absence_is_one_problem(tmp_path):
    path = write(
        tmp_path,
        subjects=["assay.networks:small_vgg"],
        data="nowhere.npz",
        measures=["margins", {"measure": "clusters"}],
    )
    with pytest.raises(AssayError) as error:
        load_plan(path)
    assert str(error.value).endswith("nowhere.npz does not exist") and "plan.yaml:3: data: " in str(error.value)


def test_the_home_folder_is_expanded_in_the_run_and_in_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = write(tmp_path, run="~/x", subjects=["assay.networks:small_vgg"], measures=["norms"])
    assert load_plan(path).run == str(tmp_path / "home" / "x")
    path = write(tmp_path, subjects=["assay.networks:small_vgg"], measures=["margins"], data="~/nowhere.npz")
    with pytest.raises(AssayError, match=str(tmp_path / "home" / "nowhere.npz")):
        load_plan(path)


def test_data_that_cannot_be_loaded_are_the_only_problem_of_measures_of_pictures(tmp_path):
    path = write(
        tmp_path, subjects=["assay.networks:small_vgg"], data="nowhere.npz", measures=["augmentation", "sharpness"]
    )
    with pytest.raises(AssayError, match=r"nowhere\.npz does not exist") as error:
        load_plan(path)
    assert not isinstance(error.value, Problems)
