"""Networks, measures and transforms whose code lies beside the plan."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from assay import AssayError, load_plan
from assay.core.user_code import code_in, import_named
from assay.stimuli import Labelled, Sequences

NETWORK = """
from torch import nn

from {helper} import WIDTH

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x):
        return self.layer(x.flatten(1)[:, :4])

def make():
    return Net(WIDTH)
"""
MEASURE = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

import assay

@dataclass(frozen=True)
class Weights(assay.Measure):
    factor: float
    array: np.ndarray
    name: ClassVar[str] = "weights beside"

    def __call__(self, subject):
        from {helper} import WIDTH    # found only while the folder is searched

        assert isinstance(subject.module.layer.out_features, int)
        return pd.DataFrame([{{"value": self.factor * float(self.array.sum()) + WIDTH}}])
"""


def write_code(folder: Path, prefix: str, width: int = 3) -> Path:
    """A plan with its network and measure, in modules whose names no other test uses."""
    folder.mkdir(exist_ok=True)
    (folder / f"{prefix}_helper.py").write_text(f"WIDTH = {width}\n")
    (folder / f"{prefix}_net.py").write_text(NETWORK.format(helper=f"{prefix}_helper"))
    (folder / f"{prefix}_measure.py").write_text(MEASURE.format(helper=f"{prefix}_helper"))
    np.save(folder / "array.npy", np.arange(4.0))
    plan = {
        "run": "run",
        "subjects": [{"source": f"{prefix}_net:make", "name": "net"}],
        "measures": [{"measure": f"{prefix}_measure:Weights", "factor": 1e-3, "array": "array.npy"}],
    }
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    return folder / "plan.yaml"


def test_a_plan_finds_code_beside_it_and_leaves_the_search_path_as_it_was(tmp_path):
    before = list(sys.path)
    run = load_plan(write_code(tmp_path, "beside")).execute()
    assert run.table("weights beside")["value"].tolist() == [pytest.approx(3.006)]
    assert sys.path == before


def test_modules_of_one_name_beside_several_plans_do_not_meet(tmp_path):
    first, second, third = (load_plan(write_code(tmp_path / str(w), "twin", w)) for w in (3, 5, 7))
    for plan, width in ((first, 3), (second, 5), (third, 7), (first, 3)):
        assert plan.load_subjects()[0].module.layer.out_features == width
    values = [plan.execute().table("weights beside")["value"][0] for plan in (first, second)]
    assert values == [pytest.approx(3.006), pytest.approx(5.006)]
    assert first.load_subjects()[0].fingerprint != second.load_subjects()[0].fingerprint


def test_a_module_that_changed_is_loaded_anew_with_the_plan(tmp_path):
    load_plan(write_code(tmp_path, "edited"))
    plan = load_plan(write_code(tmp_path, "edited", 11))
    assert plan.load_subjects()[0].module.layer.out_features == 11


@pytest.mark.slow
def test_code_beside_the_plan_reaches_other_processes(tmp_path):
    run = load_plan(write_code(tmp_path, "sent")).execute(processes=1)
    assert not run.failures and run.table("weights beside")["value"].tolist() == [pytest.approx(3.006)]


@pytest.mark.ray
def test_code_beside_the_plan_reaches_workers_of_a_cluster_that_do_not_have_it(tmp_path, cluster):
    run = load_plan(write_code(tmp_path, "clustered")).execute(ray=True)
    assert not run.failures and run.table("weights beside")["value"].tolist() == [pytest.approx(3.006)]


def test_a_module_with_the_name_of_another_that_is_loaded_is_refused(tmp_path):
    (tmp_path / "yaml.py").write_text("x = 1\n")
    with (
        code_in(tmp_path),
        pytest.raises(AssayError, match=r"'yaml' in .* has the name of a module loaded from .*yaml"),
    ):
        import_named("yaml:x", "source='yaml:x'")


def test_what_a_lazy_module_would_import_is_not_imported_to_name_its_like(tmp_path):
    """transformers and others list hundreds of names that are imported when they are asked for, where they can be."""
    lazy = """
def __dir__():
    return ["make_net", "heavy"]

def __getattr__(name):
    if name in __dir__():
        raise ImportError(f"{name} needs a package that is not here")
    raise AttributeError(name)
"""
    (tmp_path / "lazy_nets.py").write_text(lazy)
    with code_in(tmp_path), pytest.raises(AssayError, match=r"'lazy_nets' has no 'make_nets'; did you mean 'make_net'"):
        import_named("lazy_nets:make_nets", "source='lazy_nets:make_nets'")


def test_the_ending_of_a_module_is_not_written():
    with pytest.raises(AssayError, match=r"give the module without \.py: 'net:make'"):
        import_named("net.py:make", "source='net.py:make'")


SETTINGS = """
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

import assay

@dataclass(frozen=True)
class Options:
    depth: int = 2

@dataclass(frozen=True)
class Everything(assay.Measure):
    text: str
    count: int
    share: float
    flag: bool
    pair: tuple[int, float]
    several: list[str]
    table: dict[str, float]
    where: Path
    array: np.ndarray
    data: assay.stimuli.Labelled
    clips: assay.stimuli.Sequences
    options: Options = Options()
    bare: tuple = ()
    name: ClassVar[str] = "everything beside"

    def __call__(self, subject):
        return pd.DataFrame()

@dataclass(frozen=True)
class Unwritable(assay.Measure):
    function: Callable[[int], int]

    def __call__(self, subject):
        return pd.DataFrame()

@dataclass(frozen=True)
class Fails(assay.Measure):
    count: int = 1

    def __post_init__(self):
        raise KeyError("nothing")

    def __call__(self, subject):
        return pd.DataFrame()
"""


def with_measure(folder: Path, **measure: object) -> Path:
    (folder / "settings_beside.py").write_text(SETTINGS)
    np.savez(folder / "data.npz", train_images=np.zeros((4, 8, 8), np.uint8), train_labels=np.arange(4) % 2)
    plan = {"subjects": ["assay.networks:small_vgg"], "measures": [measure]}
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    return folder / "plan.yaml"


def test_settings_of_a_measure_of_the_users_are_written_like_those_of_others(tmp_path):
    path = with_measure(
        tmp_path, measure="settings_beside:Everything", text="a", count=2, share="1e-3", flag=True, pair=[1, 2],
        several=["x"], table={"a": 1}, where="there", array=[[1, 2], [3, 4]], data={"path": "data.npz"},
        clips={"camera": {"size": 8, "motions": ["zoom"], "pictures": 1}}, options={"depth": 3}, bare=[1, "b"],
    )  # fmt: skip
    measure = load_plan(path).measures["everything beside"]
    assert (measure.text, measure.count, measure.share, measure.flag) == ("a", 2, 0.001, True)
    assert measure.pair == (1, 2.0) and measure.several == ["x"] and measure.table == {"a": 1.0}
    assert measure.where == tmp_path / "there" and measure.array.tolist() == [[1, 2], [3, 4]]
    assert isinstance(measure.data, Labelled) and isinstance(measure.clips, Sequences)
    assert measure.options.depth == 3 and measure.bare == (1, "b")


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        ({"measure": "settings_beside:Unwritable"}, "the setting 'function' is of the type collections.abc.Callable"),
        ({"measure": "settings_beside:Unwritable", "function": "f"}, "which no plan can write; a plan can write text,"),
        ({"measure": "settings_beside:Fails"}, "Fails cannot be made with these settings (KeyError: 'nothing')"),
        ({"measure": "settings_beside:Everythin"}, "did you mean 'Everything'"),
        ({"measure": "not_beside:It"}, "No module named 'not_beside', nor is it in"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path, measure, sentence):
    with pytest.raises(AssayError) as error:
        load_plan(with_measure(tmp_path, **measure))
    assert sentence in str(error.value) and "\n" not in str(error.value) and "plan.yaml:" in str(error.value)
