"""Shows a network its data perturbed in many ways, and computes once whatever these have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.core.arrays import copied_to, varied_input, with_varied_input
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.stimuli.labelled import Labelled
from assay.stimuli.perturbations import Magnitude, Perturbation
from assay.subject.agreement import agree
from assay.subject.anatomy import first_affine
from assay.subject.classifier import checked_scores
from assay.subject.split import Split
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
Points = Mapping[Perturbation, tuple[float, ...]]


def room(device: torch.device) -> int:
    """Number of bytes that may enter one pass where several magnitudes share it.

    One batch does not fill a GPU, and its passes cost the host more than the GPU. What follows a layer can be several
    times as large as its output, so it is a small part of the memory. On a CPU larger batches gain nothing.
    """
    return torch.cuda.get_device_properties(device).total_memory // 256 if device.type == "cuda" else 0


@dataclass(frozen=True)
class Curve:
    """Whether each input was classified rightly at each magnitude, and (in the last row) at random magnitudes.

    ``right`` and ``finite`` (whether the class scores were finite) are magnitudes × inputs; ``left_out`` is the number
    of inputs that could not be perturbed.
    """

    right: Array
    finite: Array
    left_out: int


def show_perturbed(
    subject: Subject,
    data: Labelled,
    points: Points,
    layers: Mapping[Any, str | None],
    size: int,
    seed: int,
    sample: Array | None = None,
) -> dict[tuple[Perturbation, Any], Curve]:
    """Show a network all data at all magnitudes of all perturbations, at all layers asked for.

    Args:
        subject: The network that is shown them.
        data: The inputs to show, in batches made by `batches`.
        points: The magnitudes of each perturbation; each is also shown once at random magnitudes.
        layers: Names of the layers whose outputs are perturbed, by key; None is the input.
        size: Number of inputs in a batch.
        seed: Seed of the random batches, partners, noise and magnitudes.
        sample: The numbers of the inputs to show; all if None.

    Returns:
        The curve of each perturbation and key of a layer.
    """
    rng = np.random.default_rng(seed)
    sample = np.arange(len(data)) if sample is None else sample
    labels = data.labels[sample]
    cuts = _Cuts(subject)
    right: dict[Any, list[Tensor]] = {(perturbation, key): [] for key in layers for perturbation in points}
    allowed: dict[Perturbation, list[Array]] = {perturbation: [] for perturbation in points}
    done = 0
    with subject.showing():
        for rows in batches(labels, size, rng):  # drawn and copied while a GPU is at work on the batch before
            draws = _Draws(labels[rows], points, rng, subject.device)
            batch = _Batch(cuts, data.shown(sample[rows], subject.device), draws, points)
            for key, name in layers.items():
                for perturbation, outcomes in batch.outcomes(name):
                    right[perturbation, key].append(outcomes)
            for perturbation in points:
                allowed[perturbation].append(draws.allowed[perturbation])
            done += len(rows)
            report(f"{subject.name}: perturbed", done, len(sample))
    return {pair: _curve(outcomes, np.concatenate(allowed[pair[0]])) for pair, outcomes in right.items()}


class _Draws:
    """All that is drawn for a batch: for each perturbation the partners or noise, and the magnitudes.

    ``alphas`` are the magnitudes asked for without the one that changes nothing, and last a random one for each input;
    ``allowed`` says which inputs can be perturbed.
    """

    def __init__(self, labels: Array, points: Points, rng: np.random.Generator, device: torch.device) -> None:
        self.labels = copied_to(device, labels)
        self.drawn: dict[Perturbation, Any] = {}
        self.allowed: dict[Perturbation, Array] = {}
        self.alphas: dict[Perturbation, list[Magnitude]] = {}
        for perturbation, magnitudes in points.items():
            drawn, self.allowed[perturbation] = perturbation.draw(labels, rng)
            self.drawn[perturbation] = copied_to(device, drawn) if isinstance(drawn, np.ndarray) else drawn
            random = rng.uniform(perturbation.low, perturbation.high, len(labels)).astype(np.float32)
            given = [float(np.float32(alpha)) for alpha in magnitudes if alpha != perturbation.identity]
            self.alphas[perturbation] = [*given, copied_to(device, random)]


def require_varied(subject: Subject, batch: Any) -> Tensor:
    """The input of a batch that is perturbed; refuse one that cannot be changed by degrees."""
    x = varied_input(batch)
    if x is None:
        raise AssayError(
            f"the inputs of {subject.name!r} are whole numbers, which cannot be changed by degrees: choose a layer, "
            "such as layer=1"
        )
    return x


class _Cuts:
    """Cuts a network at layers, each layer once, and remembers what was learned of each cut."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.first = first_affine(subject)
        self.commutes: bool | None = None
        self.stacks: dict[str | None, bool] = {}
        self.reached: set[str] = set()  # layers that were seen to have an influence on the class scores
        self._splits: dict[str, Split] = {}

    def split(self, layer: str) -> Split:
        """The network cut after a layer."""
        if layer not in self._splits:
            self._splits[layer] = self.subject.split(layer)
        return self._splits[layer]


class _Cut(NamedTuple):
    """A layer's output for a batch, the rest of the network, and how many such outputs the rest may take at once."""

    output: Tensor
    rest: Callable[[Tensor], Any]
    at_once: int


class _Batch:
    """One batch of inputs, with all that was drawn for it."""

    def __init__(self, cuts: _Cuts, inputs: Any, draws: _Draws, points: Points) -> None:
        self.cuts = cuts
        self.subject = cuts.subject
        self.points = points
        self.inputs = inputs
        self.x = varied_input(self.inputs)  # of several inputs one is perturbed, and the others are held
        self.draws = draws
        self.labels = draws.labels
        self.plain: Tensor | None = None

    def outcomes(self, layer: str | None) -> Iterator[tuple[Perturbation, Tensor]]:
        """Outcomes of every perturbation of a layer, magnitudes × inputs: 1 if right, 0 if wrong, −1 if not finite."""
        cut = self._cut(layer)
        # Not an attribute: a cut refers to its batch, and in a circle both would stay in memory until it is swept.
        first: _Cut | None = None
        for perturbation in self.points:
            at_first = layer is None and perturbation.affine and self._commutes(perturbation)
            if at_first and first is None:
                first = self._cut(self.cuts.first)
            yield perturbation, self._curve(perturbation, first if at_first and first is not None else cut)

    def _cut(self, layer: str | None) -> _Cut:
        if layer is None:
            x = require_varied(self.subject, self.inputs)
            rest = partial(self._scores_of, self._with_varied)
            return self._stacked(layer, x, rest) if x is self.inputs else _Cut(x, rest, 1)
        split = self.cuts.split(layer)
        output, carried = split.prefix(self.inputs)
        rest = partial(self._scores_of, partial(split.rest, carried=carried))
        self._require_rows(layer, output)
        if layer not in self.cuts.reached:
            self.cuts.reached.add(layer)
            self._require_influence(layer, output, rest)
        return _Cut(output, rest, 1) if carried.values else self._stacked(layer, output, rest)

    def _with_varied(self, changed: Tensor) -> Any:
        return self.subject(with_varied_input(self.inputs, changed))

    def _scores_of(self, rest: Callable[[Tensor], Any], changed: Tensor) -> Tensor:
        """Class scores of what follows a cut, for a changed output of the layer."""
        return checked_scores(self.subject, rest(changed), len(changed))

    def _require_rows(self, layer: str, output: Tensor) -> None:
        if not output.is_floating_point() or not output.dim() or len(output) != len(self.labels):
            raise AssayError(
                f"layer {layer!r} of {self.subject.name!r} returns {tuple(output.shape)} of {output.dtype}, not a row "
                f"of numbers for each of {len(self.labels)} inputs: choose another layer"
            )

    def _require_influence(self, layer: str, output: Tensor, rest: Callable[[Tensor], Tensor]) -> None:
        """Check that the network uses what is perturbed, where a layer returns more than that."""
        if self.subject.returns_several(layer) and torch.equal(rest(output), rest(output * 0.5)):
            raise AssayError(
                f"the first tensor that layer {layer!r} of {self.subject.name!r} returns has no influence on the class "
                "scores: choose another layer"
            )

    def _stacked(self, layer: str | None, output: Tensor, rest: Callable[[Tensor], Any]) -> _Cut:
        """A cut that nothing else crosses: as many outputs at once as fit, if the rest treats each by itself."""
        at_once = room(output.device) // max(1, output.nbytes)
        if at_once < 2:
            return _Cut(output, rest, 1)
        if layer not in self.cuts.stacks:
            two = output, output * 0.5
            try:
                self.cuts.stacks[layer] = agree(
                    lambda: rest(torch.cat(two)), lambda: torch.cat([rest(one) for one in two])
                )
            except AssayError:  # it has the size of its batch built in
                self.cuts.stacks[layer] = False
        return _Cut(output, rest, at_once if self.cuts.stacks[layer] else 1)

    def _commutes(self, perturbation: Perturbation) -> bool:
        """Whether perturbing the output of the first affine layer is perturbing the input; tried on the first batch.

        It is not where something else came before that layer, or goes around it.
        """
        if self.cuts.first is None or self.x is None:
            return False
        x = self.x
        if self.cuts.commutes is None:
            partner, alpha = self.draws.drawn[perturbation], torch.full((len(x),), 0.37).to(x)
            split = self.cuts.split(self.cuts.first)
            split.prefix(self.inputs)  # captures: torch.export refuses to inside `agree`

            def ours() -> Tensor:
                output, carried = split.prefix(self.inputs)
                self._require_rows(self.cuts.first or "", output)
                return self._scores_of(partial(split.rest, carried=carried), perturbation.on(output, partner)(alpha))

            theirs = partial(self._scores_of, self._with_varied, perturbation.on(x, partner)(alpha))
            try:
                self.cuts.commutes = agree(ours, theirs) and split.captured
            except AssayError:  # that layer does not return a row for each input
                self.cuts.commutes = False
        return self.cuts.commutes

    def _curve(self, perturbation: Perturbation, cut: _Cut) -> Tensor:
        """Outcomes at all magnitudes and, in the last row, at random ones."""
        change = perturbation.on_stack(cut.output, self.draws.drawn[perturbation])
        points, identity = self.points[perturbation], perturbation.identity
        alphas = self.draws.alphas[perturbation]
        passes = [alphas[i : i + cut.at_once] for i in range(0, len(alphas), cut.at_once)]
        parts = []
        for number, few in enumerate(passes):
            if number % 64 == 63:  # so many magnitudes that a batch takes long
                report(f"{self.subject.name}: magnitudes", number, len(passes))
            parts.append(self._right(cut.rest(change(few))))
        outcomes = torch.cat(parts)
        if identity not in points:
            return outcomes
        if self.plain is None:
            self.plain = self._right(cut.rest(cut.output))
        at = points.index(identity)
        return torch.cat([outcomes[:at], self.plain, outcomes[at:]])

    def _right(self, outputs: Tensor) -> Tensor:
        """Outcomes (magnitudes × inputs) from class scores: 1 if right, 0 if wrong, −1 if not finite."""
        right = (outputs.argmax(1).view(-1, len(self.labels)) == self.labels).to(torch.int8)
        return torch.where(outputs.isfinite().all(1).view_as(right), right, -1)


def batches(labels: Array, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Put all inputs into random batches in which, as far as possible, none is alone in its class.

    The inputs of a class are paired at random, pairs are shuffled, and batches are cut from them; what is odd comes
    last. A last batch of less than half the size joins the one before.

    Example:
        >>> rows = list(batches(np.array([0, 0, 1, 1, 1, 2]), 2, np.random.default_rng(0)))
        >>> [sorted(r.tolist()) for r in rows]
        [[0, 1], [2, 3, 4], [5]]
    """
    pairs: list[Array] = []
    odd: list[Array] = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        runs = np.split(members, range(2, len(members) - 1, 2))
        pairs += [run for run in runs if len(run) == 2]
        odd += [run for run in runs if len(run) != 2]
    groups: list[list[Array]] = [[]]
    for run in [*(pairs[i] for i in rng.permutation(len(pairs))), *odd]:
        if sum(map(len, groups[-1])) >= size:
            groups.append([])
        groups[-1].append(run)
    if len(groups) > 1 and 2 * sum(map(len, groups[-1])) < size:
        last = groups.pop()
        groups[-1] += last
    for group in groups:
        yield np.concatenate(group)


def _curve(right: list[Tensor], allowed: Array) -> Curve:
    """Join the outcomes of all batches to a curve, without the inputs that could not be perturbed."""
    outcomes = torch.cat(right, 1).cpu().numpy()[:, allowed]
    return Curve((outcomes == 1).astype(np.float32), outcomes >= 0, int((~allowed).sum()))
