"""Follows the path that texts take, token by token, through the space of every layer of a language model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.straightness.streaming import angles_from_sums
from assay.measures.straightness.triples import as_rows, triple_sums
from assay.stimuli.texts import Texts
from assay.subject.layers import ALL, Layers
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
TOKENS = "tokens"
_PROBED = 7  # tokens of the text by which layers with an entry per token are found


def token_angles(ids: Array) -> Array:
    """Turning angles, in degrees, of a text whose tokens are all equally far apart, as one-hot vectors are.

    Three different tokens in a row turn by 120°, a return to the token before the last by 180°; where a token is
    repeated at once, there is no step and the angle is NaN.

    Example:
        >>> token_angles(np.array([4, 7, 9, 7, 7])).tolist()
        [120.0, 180.0, nan]
    """
    first, second, third = ids[:-2], ids[1:-1], ids[2:]
    angles = np.where(first == third, 180.0, 120.0)
    angles[(first == second) | (second == third)] = np.nan
    return angles


def follow_texts(
    subject: Subject, texts: Texts, layers: Layers = ALL, size: int = 32
) -> tuple[Array, dict[str, Array | None]]:
    """Show texts and follow the path of every layer, and of the tokens themselves (``tokens``, see `token_angles`).

    Texts of equal length are shown together; nothing is padded.

    Args:
        subject: The language model: it takes token ids N×T, and its layers return N×T×….
        texts: The texts, each of three tokens or more.
        layers: Layers to follow; all by default.
        size: The largest number of texts at a time.

    Returns:
        For each of n tokens, in the order in which they were shown, the index of its text; and, by layer, the n−2
        turning angles in degrees. An angle whose three tokens are not of one text means nothing. NaN where the angle is
        undefined; infinity where the layer was not finite; None for a layer that has no entry for each token.
    """
    paths = _TokenPaths(subject, layers)
    owners, angles_of_tokens = [], []
    with subject.showing():
        paths.probe(texts.texts[0].ids)
        for ids, indices in texts.by_length(size):
            paths.show(torch.from_numpy(ids))
            owners.append(np.repeat(indices, ids.shape[1]))
            angles_of_tokens.append(_apart(token_angles(ids.ravel())))
    count = sum(map(len, owners)) - 2
    angles = paths.angles(count)
    repeats = subject.repeats(layers)
    by_layer = {layer: angles[repeats.get(layer, layer)] for layer in subject.choose(layers)}
    return np.concatenate(owners), {TOKENS: np.concatenate(angles_of_tokens)[:count], **by_layer}


class _TokenPaths:
    """The paths of all layers that are followed: the sums of every triple of tokens, batch by batch."""

    def __init__(self, subject: Subject, layers: Layers) -> None:
        self.subject = subject
        self.layers = layers
        self.sums: dict[str, list[Tensor]] = {}
        self.not_per_token: set[str] = set()
        self.shape = (0, 0)  # texts and tokens of the batch at hand
        self.shown = 0

    def probe(self, ids: Array) -> None:
        """Find the layers that have no entry per token, by two short texts of different lengths.

        Where all texts have one length, another axis of a layer may have it by chance: heads, for instance.
        """
        for length in (min(len(ids), _PROBED), min(len(ids), _PROBED) - 1):
            self._visit_all(torch.from_numpy(np.stack([ids[:length]] * 2)), self._check)

    def show(self, ids: Tensor) -> None:
        """Show texts N×T, and extend the path of every layer."""
        self._visit_all(ids, self._extend)
        self.shown += len(ids)
        report(f"{self.subject.name}: texts", self.shown)

    def _visit_all(self, ids: Tensor, visitor: Any) -> None:
        self.shape = (ids.shape[0], ids.shape[1])
        self.subject.visit(ids.to(self.subject.device), visitor, self.layers, repeats=False)

    def _check(self, layer: str, output: Tensor) -> None:
        if layer == TOKENS:
            raise AssayError(f"a layer of {self.subject.name!r} is called {TOKENS!r}, as is the input: rename it")
        if output.dim() < 2 or tuple(output.shape[:2]) != self.shape:
            self.not_per_token.add(layer)

    def _extend(self, layer: str, output: Tensor) -> None:
        self._check(layer, output)
        if layer not in self.not_per_token:
            self.sums.setdefault(layer, []).append(triple_sums(as_rows(output.flatten(0, 1))))

    def angles(self, count: int) -> dict[str, Array | None]:
        """The turning angles of each layer, one for each triple of tokens; None where it has no entry per token."""
        angles: dict[str, Array | None] = dict.fromkeys(self.not_per_token)
        for layer, sums in self.sums.items():
            if layer not in self.not_per_token:
                by_batch = [_apart(angles_from_sums(part).cpu().numpy()) for part in sums]
                angles[layer] = np.concatenate(by_batch)[:count]
        return angles


def _apart(angles: Array) -> Array:
    """The angles of a batch, and two more that would span it and the next."""
    return np.append(angles, [np.nan, np.nan])
