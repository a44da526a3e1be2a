"""Attacks and robust accuracy are those of foolbox, an attack library of other people."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from assay import AssayError, Subject, robust_accuracy
from assay.core.determinism import seeded
from assay.stimuli import Labelled, Normalize, load_labelled
from assay.training import Recipe, fgsm, pgd, train

foolbox = pytest.importorskip("foolbox", reason="foolbox is not installed")

DIGITS = load_digits()
X = torch.from_numpy(DIGITS.images[:, None] / 16).float()
Y = torch.from_numpy(DIGITS.target)
MEAN, STD = (0.3,), (0.4,)


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    """A small network that takes normalised pictures, and knows most digits."""
    with seeded(0):
        layers = [nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)]
        network = nn.Sequential(*layers)
    train(network, Normalize(MEAN, STD)(X[:600]), Y[:600], Recipe("adam", 0.01, 50, epochs=3))
    return network.eval()


@pytest.fixture(scope="module")
def model(trained):
    preprocessing = {"mean": list(MEAN), "std": list(STD), "axis": -3}
    return foolbox.PyTorchModel(trained, bounds=(0, 1), preprocessing=preprocessing, device="cpu")


ATTACKED, LABELS = X[600:720], Y[600:720]
FGSM = {"linf": "LinfFastGradientAttack", "l2": "L2FastGradientAttack"}
PGD = {"linf": "LinfProjectedGradientDescentAttack", "l2": "L2ProjectedGradientDescentAttack"}
EPSILONS = [("linf", 0.03), ("linf", 0.2), ("l2", 0.3), ("l2", 2.0)]


@pytest.mark.parametrize(("norm", "epsilon"), EPSILONS)
def test_fast_gradient_examples_are_equal_to_the_last_bit(trained, model, norm, epsilon):
    attack = getattr(foolbox.attacks, FGSM[norm])(random_start=False)
    _, (examples,), _ = attack(model, ATTACKED, LABELS, epsilons=[epsilon])
    assert torch.equal(fgsm(scores_of(trained), ATTACKED, LABELS, norm, epsilon), examples)


@pytest.mark.parametrize(("norm", "epsilon"), EPSILONS)
@pytest.mark.parametrize("steps", [2, 7])
def test_projected_gradient_examples_are_equal_to_the_last_bit(trained, model, norm, epsilon, steps):
    size = 2.5 * epsilon / steps  # assay's default
    attack = getattr(foolbox.attacks, PGD[norm])(abs_stepsize=size, steps=steps, random_start=False)
    _, (examples,), _ = attack(model, ATTACKED, LABELS, epsilons=[epsilon])
    assert torch.equal(
        pgd(scores_of(trained), ATTACKED, LABELS, norm, epsilon, steps=steps, random_start=False), examples
    )


@pytest.mark.parametrize(("norm", "epsilon"), EPSILONS)
def test_robust_accuracy_is_that_of_foolbox_on_the_same_inputs(trained, model, norm, epsilon):
    subject = Subject(trained, preprocess=Normalize(MEAN, STD))
    data, steps = Labelled(ATTACKED.numpy(), LABELS.numpy()), 7
    attack = getattr(foolbox.attacks, PGD[norm])(abs_stepsize=2.5 * epsilon / steps, steps=steps, random_start=False)
    _, _, (fooled,) = attack(model, ATTACKED, LABELS, epsilons=[epsilon])
    trained.zero_grad(set_to_none=True)  # foolbox leaves gradients
    wrong = trained(Normalize(MEAN, STD)(ATTACKED)).argmax(1) != LABELS  # foolbox looks at the examples only
    expected = 1 - (fooled | wrong).double().mean().item()
    for library in ("assay", "foolbox"):
        table = robust_accuracy(subject, data, norm, epsilon, steps=steps, random_start=False, library=library)
        assert table["accuracy"][0] == pytest.approx(expected, abs=1e-12), library
        assert all(p.grad is None and p.requires_grad for p in trained.parameters())
    assert expected < 1 - wrong.double().mean().item()  # the attack has an effect


@pytest.mark.slow
def test_a_published_network_is_as_robust_by_either_library(shared_data):
    subject = Subject.from_onnx(shared_data / "cifar10_networks" / "resnet_4b_pgd.onnx")
    data = load_labelled(shared_data / "cifar10_subset" / "cifar10_subset.npz", split="test").each(3)
    settings = {"steps": 3, "random_start": False}
    ours, theirs = (
        robust_accuracy(subject, data, "linf", [0.0, 8 / 255], library=library, **settings)
        for library in ("assay", "foolbox")
    )
    assert ours.equals(theirs) and 0 < ours["accuracy"][1] < ours["accuracy"][0] < 1


def test_attacks_with_random_starts_find_about_as_many_examples(trained):
    subject, data = Subject(trained, preprocess=Normalize(MEAN, STD)), Labelled(ATTACKED.numpy(), LABELS.numpy())
    shares = [
        robust_accuracy(subject, data, "l2", 0.5, library=library).accuracy[0] for library in ("assay", "foolbox")
    ]
    # Starts differ; of 120 inputs at most a few are near enough to the boundary for that to count.
    assert shares[0] == pytest.approx(shares[1], abs=5 / 120)


def test_foolbox_takes_steps_of_one_size_only(trained):
    data = Labelled(ATTACKED.numpy(), LABELS.numpy())
    with pytest.raises(AssayError, match="foolbox takes steps of one size"):
        robust_accuracy(trained, data, "l2", 0.5, steps=2, step_size=(0.3, 0.2), library="foolbox")


def scores_of(network: nn.Module):
    normalize = Normalize(MEAN, STD)

    def scores(x: Tensor) -> Tensor:
        return network(normalize(x))

    return scores
