"""What a subject carries of its training: its weights before, and the loss of every epoch."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import nn

import assay
import zoo
from assay import AssayError, Measure, Subject
from assay.core.determinism import seeded
from assay.plans.check import check_plan
from assay.runs.evaluate import cell_fingerprint
from assay.subject.past import initial_subject, past_fingerprint, training_history

HISTORY = pd.DataFrame({"loss": [1.0, 0.05]})


def state(seed: int = 1) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in zoo.build("vgg", seed=seed).state_dict().items()}


def test_the_network_before_training_is_the_one_whose_weights_they_were():
    before, net = zoo.build("vgg", seed=1), zoo.build("vgg", seed=0)
    kept = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    subject = Subject(net, "net", preprocess=torch.neg, initial_weights=state(), example=zoo.SHAPE)
    x = torch.rand(3, *zoo.SHAPE, generator=torch.Generator().manual_seed(0))
    start = initial_subject(subject)
    assert torch.equal(start(x), Subject(before, preprocess=torch.neg)(x)) and start.example == zoo.SHAPE
    assert all(torch.equal(tensor, kept[name]) for name, tensor in net.state_dict().items())
    half = Subject(zoo.build("vgg"), dtype=torch.bfloat16, initial_weights=state())
    assert initial_subject(half).dtype == torch.bfloat16


def test_a_subject_without_its_past_is_told_what_to_give():
    subject = Subject(nn.Linear(2, 2), "bare")
    with pytest.raises(AssayError, match=r"^'bare' does not say what its weights were before training: give Subject"):
        initial_subject(subject)
    with pytest.raises(AssayError, match=r"^'bare' does not say how its training went: give Subject\(history=…\)"):
        training_history(subject)


@pytest.mark.parametrize(
    ("initial", "said"),
    [
        ({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}, r"'weight' is \(2, 3\) among them and \(2, 2\) in the"),
        ({"weight": torch.zeros(2, 2)}, "of 'net' do not fit Linear: they lack 'bias'"),
        (
            {"weight": torch.zeros(2, 3), "odd": torch.zeros(1)},
            r"do not fit Linear: they lack 'bias', have 'odd' that the network lacks, 'weight' is \(2, 3\) among them "
            r"and \(2, 2\) in the network",
        ),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(3)},
            r"'bias' is \(3,\) among them and \(2,\) in the network, and 1 more of another shape",
        ),
        ({"weight": torch.full((2, 2), torch.nan), "bias": torch.zeros(2)}, "of 'net': 'weight' is not finite"),
    ],
)
def test_initial_weights_that_do_not_fit_or_are_not_finite_are_one_sentence(initial, said):
    subject = Subject(nn.Linear(2, 2), "net", initial_weights=initial)
    for ask in (initial_subject, assay.InitialDistance(shape=(2,)).check, assay.InitialDistance(shape=(2,))):
        with pytest.raises(AssayError, match=said):
            ask(subject)


def test_what_is_no_past_is_refused():
    for wrong in (3, {"weight": 1.0}, [torch.zeros(1)]):
        with pytest.raises(AssayError, match=r"^initial_weights=.* are no tensors by name"):
            Subject(nn.Linear(1, 1), initial_weights=wrong)  # type: ignore[arg-type]
    with pytest.raises(AssayError, match=r"^history=\[1.0\] .*is no table"):
        Subject(nn.Linear(1, 1), history=[1.0])  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Backwards(Measure):
    """Looks at the initial weights alone."""

    name: ClassVar[str] = ""
    looks_back: ClassVar[tuple[str, ...]] = ("initial_weights",)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        return pd.DataFrame({"value": [1.0]})


def test_the_past_is_part_of_the_key_of_cells_that_look_at_it_and_of_no_others():
    subjects = [
        Subject(zoo.build("vgg"), "net", initial_weights=initial, history=history, example=zoo.SHAPE)
        for initial, history in ((None, None), (state(1), None), (state(2), None), (state(1), HISTORY))
    ]
    assert len({subject.fingerprint for subject in subjects}) == 1
    assert len({cell_fingerprint(subject, assay.Norms(), 0) for subject in subjects}) == 1
    none, one, other, both = (cell_fingerprint(subject, _Backwards(), 0) for subject in subjects)
    assert len({none, one, other}) == 3 and both == one
    sent = pickle.loads(pickle.dumps(subjects[3]))
    assert past_fingerprint(sent, ("history",)) == past_fingerprint(subjects[3], ("history",))
    assert past_fingerprint(subjects[1], ("history",)) == ""


def test_a_run_measures_again_only_what_looks_at_a_past_that_is_another(tmp_path):
    measures = {"norms": assay.Norms(), "distance": assay.InitialDistance()}
    found = []
    for seed in (1, 1, 2):
        subject = Subject(zoo.build("vgg"), "net", initial_weights=state(seed), example=zoo.SHAPE)
        run = assay.evaluate([subject], measures, tmp_path)
        found.append((run.outcome.kept, run.outcome.measured))
    assert found == [(0, 2), (2, 0), (1, 1)]


def test_plans_name_the_files_of_the_past_and_check_says_where_one_is_missing(tmp_path):
    (tmp_path / "pastnets.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(2, 2)\n")
    with seeded(0):
        save_file(nn.Linear(2, 2).state_dict(), tmp_path / "start.safetensors")
    HISTORY.to_csv(tmp_path / "history.csv", index=False)
    past = {"initial_weights": "start.safetensors", "history": "history.csv"}
    plan = {
        "subjects": [{"source": "pastnets:make", "name": "kept", **past}, {"source": "pastnets:make", "name": "bare"}],
        "measures": [{"measure": "distance", "shape": [2]}, "training-speed"],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(AssayError) as raised:
        check_plan(tmp_path / "plan.yaml", str(tmp_path / "run"))
    said = str(raised.value)
    assert "bare × distance: 'bare' does not say what its weights were before training" in said
    assert "bare × training-speed: 'bare' does not say how its training went" in said and "kept ×" not in said
    plan["subjects"].pop()
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    checked = check_plan(tmp_path / "plan.yaml", str(tmp_path / "run"))
    run = checked.plan.execute(subjects=checked.subjects)
    assert not run.failures and set(run.measures) == {"distance", "training-speed"}
