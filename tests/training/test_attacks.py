from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay import AssayError
from assay.core.determinism import seeded
from assay.training.attacks import climb, direction, fgsm, loss_gradient, pgd, random_change, step_sizes

WEIGHT = torch.tensor([3.0, -4.0, 0.5, 1.0])
LABELS = torch.tensor([0, 1, 0])
X = torch.tensor([[0.5, 0.4, 0.6, 0.5], [0.3, 0.5, 0.5, 0.7], [0.5, 0.5, 0.5, 0.5]])


def linear(x: Tensor) -> Tensor:
    """Two classes; the score of the first is w·x, of the second 0."""
    return torch.stack([x @ WEIGHT, torch.zeros(len(x))], 1)


def network(seed: int = 0) -> nn.Module:
    with seeded(seed):
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))


def pictures(count: int = 12) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x = torch.rand(count, 1, 8, 8, generator=random)
    x[0] = 0.0  # at a bound
    return x, torch.randint(10, (count,), generator=random)


# ------------------------------------------------------------------------------------------ known answers


@pytest.mark.parametrize("steps", [1, 3])
def test_a_linear_network_is_attacked_straight_across_its_boundary(steps):
    towards = torch.where(LABELS == 0, -1.0, 1.0)[:, None]  # the loss falls with the score of the true class
    by_norm = {"linf": WEIGHT.sign(), "l2": WEIGHT / WEIGHT.norm()}
    for norm, unit in by_norm.items():
        found = pgd(linear, X, LABELS, norm, 0.1, steps=steps, random_start=False)
        # Nothing is clipped here; rounding of a few operations in single precision.
        torch.testing.assert_close(found, X + 0.1 * towards * unit, atol=1e-6, rtol=0)


def test_fgsm_is_one_step_of_the_formula():
    module, (x, labels) = network(), pictures()
    at = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(module(at), labels), at)  # of the mean: another length only
    expected = (x + 0.03 * gradient.sign()).clamp(0, 1)
    # x + ε − x is not ε to the last bit, and is clipped to ε.
    torch.testing.assert_close(fgsm(module, x, labels, "linf", 0.03), expected, atol=1e-7, rtol=0)
    unit = gradient / gradient.flatten(1).norm(dim=1)[:, None, None, None]
    torch.testing.assert_close(fgsm(module, x, labels, "l2", 0.5), (x + 0.5 * unit).clamp(0, 1), atol=1e-6, rtol=0)


def test_steps_have_the_sizes_of_the_schedule():
    module, (x, labels) = network(), pictures()
    found = pgd(module, x, labels, "linf", 0.1, steps=2, step_size=(0.07, 0.02), random_start=False)
    first = (x + 0.07 * loss_gradient(module, x, labels).sign()).clamp(0, 1)
    second = (first + 0.02 * loss_gradient(module, first, labels).sign()).clamp(0, 1)
    torch.testing.assert_close(found, second, atol=1e-7, rtol=0)


# ------------------------------------------------------------------------------------------ what always holds


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 0.7, 100.0])
@pytest.mark.parametrize("random_start", [False, True])
def test_examples_stay_in_the_ball_and_within_the_bounds(norm, epsilon, random_start):
    module, (x, labels) = network(), pictures()
    generator = torch.Generator().manual_seed(0)
    found = pgd(module, x, labels, norm, epsilon, steps=3, random_start=random_start, generator=generator)
    change = (found - x).flatten(1)
    size = change.abs().amax(1) if norm == "linf" else change.norm(dim=1)
    # Pixels near 1 have a rounding of 6e-8; clipping to [0, 1], a convex set that holds x, makes changes only smaller.
    assert (size <= epsilon * (1 + 1e-6) + 2e-7 * (1 if norm == "linf" else 8)).all()
    assert found.min() >= 0 and found.max() <= 1 and not torch.equal(found, x)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_more_steps_raise_the_loss(norm):
    module, (x, labels) = network(), pictures()

    def loss(at: Tensor) -> float:
        return F.cross_entropy(module(at), labels).item()

    examples = [fgsm(module, x, labels, norm, 0.1), pgd(module, x, labels, norm, 0.1, steps=20, random_start=False)]
    assert loss(x) < loss(examples[0]) <= loss(examples[1])


def test_epsilon_0_returns_the_input_itself_even_of_a_network_that_cannot_be_attacked():
    x = torch.full((1, 2), 7.0)  # out of bounds, too
    assert fgsm(lambda x: x.detach(), x, torch.tensor([0]), "linf", 0.0) is x
    assert pgd(lambda x: x / 0, x, torch.tensor([0]), "l2", 0.0) is x


def test_the_length_of_a_gradient_does_not_count_however_small():
    with seeded(0):
        gradient = torch.randn(5, 3, 4)
    for norm in ("linf", "l2"):
        for factor in (2.0**-60, 2.0**-110, 2.0**40):
            assert torch.equal(direction(gradient * factor, norm), direction(gradient, norm))
        assert not direction(torch.zeros(2, 3), norm).any()
    # Of the smallest number there is, no digits are left to lose.
    assert direction(torch.tensor([[1e-45, 0.0]]), "l2")[0, 0] == pytest.approx(1.0)


def test_random_starts_are_uniform_in_the_ball_and_come_from_the_generator():
    x = torch.zeros(20_000, 2)
    for norm in ("linf", "l2"):
        change = random_change(x, norm, 0.5, torch.Generator().manual_seed(3))
        assert torch.equal(change, random_change(x, norm, 0.5, torch.Generator().manual_seed(3)))
        # The share inside a ball of half the radius is a quarter in two dimensions: 0.25 ± 4 standard errors.
        size = change.abs().amax(1) if norm == "linf" else change.norm(dim=1)
        assert size.max() <= 0.5 * (1 + 1e-6)
        assert (size < 0.25).double().mean().item() == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / 20_000))
        # The mean of 20,000 values of standard deviation below 0.3.
        assert change.mean(0).abs().max() < 0.01


def test_without_a_generator_torchs_own_random_numbers_are_drawn():
    module, (x, labels) = network(), pictures()
    examples = []
    for seed in (0, 0, 1):
        with seeded(seed):
            examples.append(pgd(module, x, labels, "l2", 0.5, steps=1))
    assert torch.equal(examples[0], examples[1]) and not torch.equal(examples[0], examples[2])


def test_an_attack_leaves_no_gradients_and_attacks_each_input_alone():
    module, (x, labels) = network(), pictures()
    together = pgd(module, x, labels, "l2", 0.3, random_start=False)
    assert all(p.grad is None for p in module.parameters()) and not together.requires_grad and not x.requires_grad
    alone = torch.cat([pgd(module, x[[i]], labels[[i]], "l2", 0.3, random_start=False) for i in range(len(x))])
    # Sums of a batch are taken in another order than those of one input.
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


# ------------------------------------------------------------------------------------------ clear sentences


def test_gradients_that_are_not_finite_are_named():
    def rooted(x: Tensor) -> Tensor:
        return linear((x - 0.5).square().sum(1, keepdim=True).sqrt() * x)  # the root of zero at the third input

    with pytest.raises(AssayError, match=r"NaN or infinite at step 1 for 1 of 3 inputs \(2\)"):
        pgd(rooted, X, LABELS, "linf", 0.1, random_start=False)
    with pytest.raises(AssayError, match=r"for 3 of 3 inputs \(0, 1, 2\)"):
        fgsm(lambda x: linear(x) * math.nan, X, LABELS, "l2", 0.1)


def test_unchecked_steps_show_a_gradient_that_is_not_a_number():
    for norm in ("linf", "l2"):
        found = climb(lambda x: x * math.nan, X, X, norm, 0.1, (0.1,), (0.0, 1.0))
        assert found.isnan().all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fgsm(linear, X, LABELS, "linf", -0.1), r"epsilon=-0.1 is a distance"),
        (lambda: pgd(linear, X, LABELS, "l2", math.nan), r"epsilon=nan is a distance"),
        (lambda: pgd(linear, X, LABELS, "l2", math.inf), r"epsilon=inf is a distance"),
        (lambda: pgd(linear, X, LABELS, "l_2", 0.1), "unknown norm 'l_2'; did you mean 'l2'"),
        (lambda: pgd(linear, X, LABELS, "l2", 0.1, steps=0), "steps=0 must be at least 1"),
        (lambda: pgd(linear, X, LABELS, "l2", 0.1, step_size=0.0), "step_size=0.0 must be positive"),
        (lambda: step_sizes("l2", 0.1, 3, (0.1, 0.2)), "has 2 sizes for steps=3"),
        (lambda: fgsm(linear, X - 1, LABELS, "l2", 0.1), r"inputs reach from -0.7 to -0.3, .* clipped to \[0, 1\]"),
        (lambda: fgsm(linear, X, LABELS, "l2", 0.1, bounds=(1.0, 0.0)), "must be a smaller and a larger"),
        (lambda: fgsm(lambda x: linear(x).detach(), X, LABELS, "l2", 0.1), "no gradient with respect to the inputs"),
    ],
)
def test_bad_settings_are_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": None}, "epsilon=None"),
        ({"epsilon": "0.1"}, "epsilon='0.1'"),
        ({"steps": 1.5}, "steps=1.5 must be at least 1, a whole number"),
        ({"steps": "3"}, "steps='3' must be at least 1, a whole number"),
        ({"step_size": "a"}, "step_size='a' is no number"),
        ({"steps": 2, "step_size": (0.1, None)}, "is no number"),
    ],
)
def test_settings_of_another_kind_are_errors_in_words(settings, words):
    given = {"norm": "l2", "epsilon": 0.1, "steps": 2} | settings
    with pytest.raises(AssayError, match=re.escape(words)):
        step_sizes(**given)


def test_a_radius_beyond_all_inputs_is_an_error_and_not_an_attack_that_stays_where_it_is():
    x, labels = torch.rand(3, 12), torch.zeros(3, dtype=torch.long)
    with pytest.raises(AssayError, match="up to 1e"):  # its square is infinite in float32
        pgd(lambda at: at[:, :2], x, labels, "l2", 1e20)
    moved = pgd(lambda at: at[:, :2], x, labels, "l2", 1e9, steps=2, random_start=False)
    assert (moved != x)[:, :2].all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.uint8])
def test_inputs_too_coarse_for_a_small_change_are_refused(dtype):
    x = torch.ones(2, 100_000, dtype=dtype)
    with pytest.raises(AssayError, match="give one or more in float32"):
        pgd(lambda at: at[:, :2].float(), x, torch.zeros(2, dtype=torch.long), "l2", 0.5)


def test_no_inputs_are_an_error_in_words():
    with pytest.raises(AssayError, match="one or more"):
        pgd(lambda at: at, torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "l2", 0.5)
