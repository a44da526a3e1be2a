"""Plans name any function as a transformation of an invariance test."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
import yaml

from assay import AssayError, load_plan
from assay.plans.check import check_plan

HELPER = "STEP = {step}\n"
CODE = """
import torch

def ramp(pictures, amounts):
    from {name}_helper import STEP          # found only while the folder of the plan is searched

    return pictures + STEP * amounts[:, None, None, None] * torch.linspace(0, 1, 6)

def roll(picture, pixels):
    return picture.roll(round(pixels), -1)

def noisy(pictures, amounts):
    return pictures + torch.rand_like(pictures)

class Ramp:
    def __call__(self, pictures, amounts):
        return pictures

ramp_object = Ramp()
"""


def write(folder: Path, name: str, *families: dict[str, object], step: float = 1.0) -> Path:
    """A plan of a test with functions from a module whose name no other test uses."""
    (folder / f"{name}_helper.py").write_text(HELPER.format(step=step))
    (folder / f"{name}.py").write_text(textwrap.dedent(CODE.format(name=name)))
    np.save(folder / "pictures.npy", np.random.default_rng(0).random((60, 1, 6, 6)))
    plan = {
        "run": "run",
        "subjects": [
            {"source": "assay.networks:StackedAutoencoder", "args": {"inputs": 36, "hidden": [8]}, "name": "stack"}
        ],
        "measures": [
            {
                "measure": "invariance",
                "firing_rate": 0.1,
                "bootstrap": 0,
                "test": {"parametric": {"images": "pictures.npy", "families": list(families)}},
            }
        ],
    }
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    return folder / "plan.yaml"


def of(name: str, function: str = "ramp", **more: object) -> dict[str, object]:
    return {"transformation": f"{name}:{function}", "magnitudes": [0, 1, 2], **more}


def test_functions_beside_the_plan_are_transformations(tmp_path):
    plan = check_plan(write(tmp_path, "moved_a", of("moved_a"), of("moved_a", "roll", each=True))).plan
    table = plan.execute().table("invariance")
    assert table["transformation"].unique().tolist() == ["ramp", "roll"] and (table["status"] == "ok").all()


@pytest.mark.slow
def test_functions_beside_the_plan_reach_other_processes(tmp_path):
    run = load_plan(write(tmp_path, "moved_b", of("moved_b"))).execute(processes=1)
    assert not run.failures and len(run.table("invariance"))


def test_a_cell_is_measured_anew_when_the_source_of_its_transformation_has_changed(tmp_path):
    def fingerprint(step: float, *families: dict[str, object]) -> str:
        plan = load_plan(write(tmp_path, "moved_c", *families, step=step))
        return str(plan.measures["invariance"].test.fingerprint)

    first = fingerprint(1.0, of("moved_c"))
    assert fingerprint(1.0, of("moved_c")) == first
    assert fingerprint(2.0, of("moved_c")) != first  # only what the function imports when it is called differs
    assert fingerprint(1.0, of("moved_c", magnitudes=[0, 1])) != first


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (of("moved_d", "rampp"), "'moved_d' has no 'rampp'; did you mean"),
        (of("moved_dd"), "cannot import 'moved_dd'"),
        (of("moved_d.py"), "give the module without .py"),
        (of("moved_d", "noisy"), "transformation 'noisy' gives two results"),
        (of("moved_d", "roll"), "set each: true for a function of one picture"),
        (of("moved_d", "ramp_object"), "cannot fingerprint"),
        (of("moved_d", "ramp") | {"magnitudes": []}, "must be finite numbers"),
    ],
)
def test_what_is_wrong_with_a_function_is_one_sentence_of_the_check(tmp_path, family, sentence):
    with pytest.raises(AssayError) as error:
        check_plan(write(tmp_path, "moved_d", family))
    (said,) = str(error.value).splitlines()
    assert "plan.yaml:" in said and "measures[0].test.parametric" in said and sentence in said
