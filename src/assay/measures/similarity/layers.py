"""RDMs of all layers of a network, and of all layers together, from one stream of stimuli.

An entry of an RDM depends on the responses to two stimuli only. So the stimuli are shown all at once where they fit
into a batch; where they do not, they are split into groups, and every two groups are shown together once. Of each layer
only running sums are kept (`RunningRdm`): memory grows with layers × m², not with the number of features.

All layers together are one response of Σ p_ℓ features. Its sums are those of the layers, G = Σ G_ℓ and s = Σ s_ℓ, so
that nothing is shown twice; each response is then centred by its mean over all layers, not layer by layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.similarity.rdm import RunningRdm, entries_with_ties
from assay.subject.layers import ALL, Layers
from assay.subject.stills import FRAMES, visit_stills
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
TOGETHER = "all"
"""What the row of all layers together is called."""
NOT_PER_STIMULUS = "not per image"


@dataclass(frozen=True)
class LayerRdm:
    """The RDM of one layer, or why it has none.

    Attributes:
        rdm: The upper triangle; NaN where the layer has no RDM.
        features: The number of features.
        status: ``ok``, or what is wrong: ``not per image``, ``not finite`` or ``constant for K of M images``.
    """

    rdm: Array
    features: int
    status: str


def layer_rdms(
    subject: Subject,
    images: Array,
    layers: Layers = ALL,
    *,
    metric: str = "correlation",
    frames: int = FRAMES,
    batch_size: int | None = None,
) -> dict[str, LayerRdm]:
    """The RDM of each layer of a network, and of all of them together under the name ``all``.

    Layers that return the very tensor of another have its RDM, and count once in that of all layers.

    Args:
        subject: The network.
        images: The stimuli, m×C×H×W.
        layers: Layers to record; all by default.
        metric: ``correlation``, ``euclidean`` or ``cosine``, as in `rdm`.
        frames: Number of time steps for which each image is shown to a network of videos; see `visit_stills`.
        batch_size: Number of images at once. By default all, up to 256 (1024 on a GPU).

    Example:
        >>> from torch import nn
        >>> images = np.random.default_rng(0).random((4, 1, 6, 6), dtype=np.float32)
        >>> network = Subject(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
        >>> found = layer_rdms(network, images)
        >>> [(name, layer.features, layer.status) for name, layer in found.items()]
        [('0', 32, 'ok'), ('1', 32, 'ok'), ('all', 64, 'ok')]
    """
    at_once = batch_size or (1024 if subject.device.type == "cuda" else 256)
    collected: dict[str, _Collected] = {}
    with subject.showing():
        for number, (places, total) in enumerate(_passes(len(images), at_once)):
            sums = _Sums(subject, metric, len(places))
            batch = torch.from_numpy(np.ascontiguousarray(images[places]))
            visit_stills(subject, batch, sums.add, layers, frames=frames, repeats=False)
            for layer, (running, status) in sums.with_all().items():
                into = collected.setdefault(layer, _Collected(len(images)))
                into.put(places, running, status)
            report(f"{subject.name}: groups of images", number + 1, total)
    results = {layer: collected[layer].result() for layer in collected}
    repeats = subject.repeats(layers)
    rdms = {layer: results[repeats.get(layer, layer)] for layer in subject.choose(layers)}
    return rdms | {TOGETHER: results[TOGETHER]}


def _passes(m: int, at_once: int) -> Iterator[tuple[Array, int]]:
    """The numbers of the stimuli of each pass, and the number of passes: every two stimuli are in one together."""
    if m <= at_once:
        yield np.arange(m), 1
        return
    groups = np.array_split(np.arange(m), -(-m // max(1, at_once // 2)))
    for first, second in combinations(groups, 2):
        yield np.concatenate([first, second]), len(groups) * (len(groups) - 1) // 2


class _Sums:
    """The running sums of all layers over the features of one pass."""

    def __init__(self, subject: Subject, metric: str, stimuli: int) -> None:
        self.subject, self.metric, self.stimuli = subject, metric, stimuli
        self.layers: dict[str, RunningRdm | None] = {}

    def add(self, layer: str, output: Tensor) -> None:
        """Add what a layer returned."""
        if layer == TOGETHER:
            raise AssayError(f"a layer of {self.subject.name!r} is called 'all', as all layers together are: rename it")
        if not self.subject.is_per_sample(layer) or len(output) != self.stimuli:
            self.layers[layer] = None
            return
        values = torch.view_as_real(output) if output.is_complex() else output
        running = RunningRdm(self.metric)
        running.add(values.reshape(self.stimuli, -1))
        self.layers[layer] = running

    def with_all(self) -> dict[str, tuple[RunningRdm | None, str]]:
        """The sums of each layer, and of all those that are per stimulus, with their statuses."""
        together = RunningRdm(self.metric)
        for running in self.layers.values():
            if running is not None:
                together.merge(running)
        sums = {**self.layers, TOGETHER: together if together.gram.features else None}
        return {layer: (running, _status(running)) for layer, running in sums.items()}


class _Collected:
    """The RDM of one layer, put together from passes."""

    def __init__(self, m: int) -> None:
        self.matrix = np.full((m, m), np.nan)
        self.errors = np.zeros(m)
        self.constant: set[int] = set()
        self.features = 0
        self.status = "ok"

    def put(self, places: Array, running: RunningRdm | None, status: str) -> None:
        """Put the entries of one pass into their places."""
        if running is not None:
            self.features = running.gram.features
        if running is None or status == "not finite":
            self.status = status
            return
        constant = running.undefined_stimuli()
        self.constant.update(places[constant].tolist())
        if not len(constant):
            entries = running.entries().cpu().numpy()
            self.errors[places] = np.maximum(self.errors[places], running.errors().cpu().numpy())
            above = np.triu_indices(len(places), 1)
            self.matrix[places[above[0]], places[above[1]]] = entries
            self.matrix[places[above[1]], places[above[0]]] = entries

    def result(self) -> LayerRdm:
        """The whole RDM; NaN where a stimulus has none."""
        m = len(self.matrix)
        status = self.status
        if status == "ok" and self.constant:
            status = f"constant for {len(self.constant)} of {m} images"
        triangle = self.matrix[np.triu_indices(m, 1)]
        if status != "ok":
            return LayerRdm(np.full_like(triangle, np.nan), self.features, status)
        # Only here, for equal entries may come from different passes.
        entries = entries_with_ties(torch.from_numpy(triangle), torch.from_numpy(self.errors))
        return LayerRdm(entries.numpy(), self.features, status)


def _status(running: RunningRdm | None) -> str:
    if running is None:
        return NOT_PER_STIMULUS
    return "ok" if running.gram.is_finite() else "not finite"
