"""Robust accuracy: how much of its accuracy a network keeps when an adversary may change every input a little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

import pandas as pd
import torch
from torch import Tensor, nn

from assay.core.arrays import cloned, varied_input, with_varied_input
from assay.core.determinism import seeded
from assay.core.errors import AssayError, nearest, optional, shown
from assay.core.progress import report
from assay.measures.base import batch_size as default_batch_size
from assay.measures.base import require_batch_size
from assay.measures.table import require_sample
from assay.stats.proportions import wilson
from assay.stimuli.datasets import as_labelled
from assay.stimuli.labelled import Labelled
from assay.subject.as_subject import as_subject
from assay.subject.classifier import batches, class_scores, require_classes
from assay.subject.subject import Subject
from assay.training.attacks import (
    PIXELS,
    Bounds,
    Norm,
    Scores,
    StepSize,
    loss_gradient,
    pgd,
    require_finite,
    require_radius,
    require_within,
    step_sizes,
)

Library = Literal["assay", "foolbox"]
Attack = Callable[[Scores, Tensor, Tensor, float], Tensor]
"""A function from scores, inputs, labels and ε to adversarial examples."""


def robust_accuracy(
    subject: Subject | nn.Module,
    data: Labelled | Any,
    norm: Norm,
    epsilon: float | Sequence[float],
    *,
    steps: int = 20,
    step_size: StepSize = None,
    random_start: bool = True,
    restarts: int = 1,
    library: Library = "assay",
    bounds: Bounds = PIXELS,
    samples: int | None = None,
    seed: int = 0,
    batch_size: int | None = None,
) -> pd.DataFrame:
    """The share of inputs that are classified rightly as they are, and still after an attack by PGD.

    A(ε) = Σ_{(x, y)} [argmax f(x) = y and argmax f(x') = y for every x' that was found] / N, with ‖x' − x‖ ≤ ε. The
    attack changes inputs before the subject's preprocessing, so ε is in pixels. An attack finds some adversarial
    examples, not all: A is an upper bound of the accuracy that no adversary can lower.

    Args:
        subject: The network, with its normalisation as ``preprocess``.
        data: Inputs within the bounds and their labels, or what `assay.stimuli.as_labelled` makes them of. Of several
            inputs by name, the first floating-point one is attacked.
        norm: ``"linf"`` or ``"l2"``, the distance of which ε is the largest.
        epsilon: ε, or several of them; 0 gives the plain accuracy.
        steps: Number of steps of the attack; 1 without a random start is FGSM.
        step_size: Size of the steps, or of each; see `assay.training.attacks.step_sizes`.
        random_start: Whether each attack starts at a random place in the ball.
        restarts: Number of attacks on each input, of which one that succeeds is enough.
        library: Whose attack: ``"assay"``, or ``"foolbox"``, an independent one (``pip install 'assay[attacks]'``).
        bounds: Smallest and largest value of an input.
        samples: Number of inputs, drawn at random; None for all.
        seed: Seed of the sample and of the random starts.
        batch_size: Number of inputs per pass; by default 32 on a CPU and 256 on a GPU.

    Returns:
        One row for each ε: ``norm``, ``epsilon``, ``accuracy`` with its 95 % interval ``low``, ``high`` (Wilson's) over
        the ``n`` inputs, and ``status``: ``ok``, or how many inputs could not be attacked because their gradient is 0.

    Example:
        >>> network = nn.Linear(2, 2, bias=False)
        >>> with torch.no_grad():   # the larger of two values
        ...     _ = network.weight.copy_(torch.eye(2))
        >>> data = (torch.tensor([[0.6, 0.4], [0.3, 0.7]]), [0, 1])
        >>> robust_accuracy(network, data, "linf", [0.0, 0.15, 0.25]).accuracy.tolist()
        [1.0, 0.5, 0.0]

    Madry et al. 2018; Athalye, Carlini & Wagner 2018 on gradients that hide.
    """
    subject, data = as_subject(subject), as_labelled(data)
    epsilons = list(epsilon) if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    for value in epsilons:
        step_sizes(norm, value, steps, step_size)
        require_radius(norm, value, bounds)
    epsilons = [float(value) for value in epsilons]
    require_sample(samples, 0)
    require_batch_size(batch_size)
    if restarts < 1 or not epsilons:
        raise AssayError(f"restarts={restarts} and epsilon={shown(epsilon)}: give at least one of each")
    if restarts > 1 and not random_start:
        raise AssayError(f"restarts={restarts} without a random start are the same attack: give restarts=1")
    if library not in get_args(Library):
        raise AssayError(f"unknown library {shown(library)}{nearest(library, get_args(Library))}")
    require_classes(subject, data)
    data = data if samples is None else data.sample(samples, seed)
    generator = torch.Generator(subject.device).manual_seed(seed)

    def with_assay(scores: Scores, x: Tensor, labels: Tensor, radius: float) -> Tensor:
        settings: dict[str, Any] = {"steps": steps, "step_size": step_size, "random_start": random_start}
        return pgd(scores, x, labels, norm, radius, **settings, generator=generator, bounds=bounds)

    attack: Attack = with_assay
    if library == "foolbox":
        attack = _foolbox_attack(subject.module, norm, steps, step_size, random_start, bounds)
    right = [0] * len(epsilons)
    hidden = done = 0
    with subject.showing(), seeded(seed, subject.device):
        for x, labels in batches(data, default_batch_size(subject, batch_size), subject.device):
            attacked = _Attacked(subject, x, labels, bounds)
            require_radius(norm, max(epsilons), bounds, attacked.values)
            hidden += attacked.hidden if any(epsilons) else 0
            for number, value in enumerate(epsilons):
                right[number] += attacked.still_right(attack, value, restarts)
            done += len(labels)
            report(f"{subject.name}: attacked", done, len(data))
    return pd.DataFrame([_row(norm, e, r / len(data), len(data), hidden) for e, r in zip(epsilons, right, strict=True)])


class _Attacked:
    """The inputs of a batch that a network classifies rightly.

    Args:
        subject: The network.
        batch: The inputs, before any preprocessing.
        labels: The true class of each input.
        bounds: Smallest and largest value of an input.
    """

    def __init__(self, subject: Subject, batch: Any, labels: Tensor, bounds: Bounds) -> None:
        self.subject = subject
        pixels = varied_input(batch)
        if pixels is None:
            raise AssayError("data are whole numbers, such as those of words, which an attack cannot change a little")
        require_within(pixels, bounds)
        self.values = pixels[0].numel()
        self.batch, self.pixels, self.labels = batch, pixels, labels
        self.keep(self.scores(pixels).argmax(1) == labels)

    def keep(self, chosen: Tensor) -> None:
        """Leave out all inputs but the chosen ones."""
        named = isinstance(self.batch, Mapping)
        self.batch = {key: value[chosen] for key, value in self.batch.items()} if named else self.batch[chosen]
        self.pixels, self.labels = self.pixels[chosen], self.labels[chosen]

    @property
    def hidden(self) -> int:
        """How many of the inputs have a gradient of 0, which shows an attack no way."""
        if not len(self.labels):
            return 0
        gradient = require_finite(loss_gradient(self.scores, self.pixels, self.labels))
        return int((gradient == 0).flatten(1).all(1).sum())

    def scores(self, pixels: Tensor) -> Tensor:
        """Class scores of changed inputs."""
        network = self.subject.network
        batch = cloned(with_varied_input(self.batch, pixels))
        return class_scores(self.subject, batch, lambda x: network.forward(network.prepare(x))).float()

    def still_right(self, attack: Attack, epsilon: float, restarts: int) -> int:
        """How many of the inputs are classified rightly after each of the attacks."""
        survivors = torch.ones(len(self.labels), dtype=torch.bool, device=self.labels.device)
        for _ in range(restarts if epsilon > 0 and len(self.labels) else 0):
            examples = attack(self.scores, self.pixels, self.labels, epsilon)
            survivors &= self.scores(examples).argmax(1) == self.labels
        return int(survivors.sum())


def _foolbox_attack(
    network: nn.Module, norm: Norm, steps: int, step_size: StepSize, random_start: bool, bounds: Bounds
) -> Attack:
    """PGD as foolbox has it; its random starts come from torch's own random numbers."""
    foolbox = optional("foolbox", "attacks", "robust_accuracy(library='foolbox')")
    kinds = {"linf": "LinfProjectedGradientDescentAttack", "l2": "L2ProjectedGradientDescentAttack"}

    def attack(scores: Scores, x: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        sizes = set(step_sizes(norm, epsilon, steps, step_size))
        if len(sizes) > 1:
            raise AssayError(
                f"step_size={shown(step_size)}: foolbox takes steps of one size; give one, or another library"
            )
        kind = getattr(foolbox.attacks, kinds[norm])
        model = foolbox.PyTorchModel(_AsModule(scores).eval(), bounds=bounds, device=x.device)
        misclassified = foolbox.criteria.Misclassification(labels)
        made = kind(abs_stepsize=sizes.pop(), steps=steps, random_start=random_start)
        with torch.enable_grad(), _without_gradients(network):
            examples: Tensor = made.run(model, x, misclassified, epsilon=epsilon)
        return examples

    return attack


@contextmanager
def _without_gradients(network: nn.Module) -> Iterator[None]:
    """Compute no gradients of weights inside the block: foolbox would add them to those that the weights have."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    try:
        for parameter in trained:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


class _AsModule(nn.Module):
    """A function as a module, which is what foolbox takes."""

    def __init__(self, function: Scores) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """The value of the function."""
        return self.function(x)


def _row(norm: Norm, epsilon: float, accuracy: float, n: int, hidden: int) -> dict[str, Any]:
    low, high = wilson(accuracy, n)
    status = "ok"
    if hidden and epsilon:
        status = f"{hidden} inputs have a gradient of 0 and could not be attacked: the accuracy may be too high"
    return {"norm": norm, "epsilon": epsilon, "accuracy": accuracy, "low": low, "high": high, "n": n, "status": status}
