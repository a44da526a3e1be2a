from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import AssayError
from assay.training import Recipe


def scheduled(scheduler_of, losses: list[float]) -> list[float]:
    """The rates torch's own schedule gives after each loss."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = scheduler_of(optimizer)
    rates = [0.1]
    for loss in losses:
        optimizer.step()
        scheduler.step(loss) if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) else scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


@settings(max_examples=40)
@given(st.lists(st.floats(0.01, 0.02) | st.floats(0.01, 3.0), max_size=40))
def test_plateau_is_torchs_own(losses):
    recipe = Recipe(learning_rate=0.1, schedule="plateau")
    torchs = scheduled(
        lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=5, eps=0), losses
    )
    ours = [recipe.rate(losses[:t]) for t in range(len(losses) + 1)]
    assert ours == pytest.approx(torchs, rel=1e-9)  # 0.1ᵏ and k times 0.1 differ in rounding


def test_a_plateau_is_six_epochs_without_a_lower_loss():
    recipe = Recipe(learning_rate=0.1, schedule="plateau")
    assert recipe.rate([1.0] + [1.0] * 5) == 0.1
    assert recipe.rate([1.0] + [1.0] * 6) == pytest.approx(0.01)
    assert recipe.rate([1.0] + [1.0] * 5 + [0.9]) == 0.1


def test_cosine_is_torchs_own():
    recipe = Recipe(learning_rate=0.1, schedule="cosine", epochs=7)
    torchs = scheduled(lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7), [1.0] * 6)
    # Torch multiplies from epoch to epoch, we use the closed form.
    assert [recipe.rate([1.0] * t) for t in range(7)] == pytest.approx(torchs, rel=1e-9)
    assert Recipe(learning_rate=0.1).rate([1.0] * 50) == 0.1


def test_either_criterion_suffices_and_without_one_none_is_reached():
    both = Recipe(stop_loss=0.1, stop_accuracy=0.9)
    assert both.reached(0.1, 0.5) and both.reached(0.2, 0.9) and not both.reached(0.2, 0.8)
    assert not both.reached(math.nan, math.nan)
    assert not Recipe().reached(0.0, 1.0)


def test_every_epoch_and_purpose_has_a_seed_of_its_own():
    numbers = [Recipe(seed=s).number(p, e) for s in (0, 1) for p in ("order", "dropout") for e in (0, 1)]
    assert len(set(numbers)) == 8


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"optimizer": "sdg"}, "did you mean 'sgd'"),
        ({"schedule": "linear"}, "unknown schedule 'linear'"),
        ({"precision": "float16"}, "did you mean 'bfloat16'"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"check_every": 0}, "check_every=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"learning_rate": math.nan}, "learning_rate=nan"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0"),
        ({"stop_loss": 0.0}, "stop_loss=0.0"),
        ({"stop_accuracy": 99.0}, "stop_accuracy=99.0 is a share"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(wrong, sentence):
    with pytest.raises(AssayError, match=sentence):
        Recipe(**wrong)
