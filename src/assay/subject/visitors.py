"""What is done with the outputs of layers as a network returns them: kept, passed on once, freed of history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from assay.core.arrays import version
from assay.core.errors import AssayError

Visitor: TypeAlias = Callable[[str, Tensor], None]


def shown_plain(visitor: Visitor) -> Visitor:
    """A visitor that is shown dense numbers without history, whatever a network returns and asks for by itself."""
    return lambda layer, output: visitor(layer, _plain(output))


def _plain(output: Tensor) -> Tensor:
    if output.requires_grad:
        output = output.detach()
    if output.is_quantized:
        return output.dequantize()
    return output if output.layout == torch.strided else output.to_dense()


class Recording:
    """Keeps what layers return, as copies where the network will write over it."""

    def __init__(self, copied: frozenset[str] | set[str], inputs: set[int]) -> None:
        self.copied = copied
        self.inputs = inputs
        self.kept: dict[str, Tensor] = {}
        self.versions: dict[str, int] = {}

    def keep(self, layer: str, output: Tensor) -> None:
        """Keep the output of a layer; a copy of it where it will not stay as it is."""
        is_input = output.untyped_storage().data_ptr() in self.inputs
        if layer in self.copied or output.is_inference() or is_input:
            self.kept[layer] = output.clone()
        else:
            self.kept[layer] = output
            self.versions[layer] = output._version

    def changed(self) -> set[str]:
        """Names of the layers whose output was written to although it was not copied."""
        return {layer for layer, before in self.versions.items() if self.kept[layer]._version != before}


class Distinct:
    """A visitor that passes each tensor on once: layers known to repeat another are checked to do so, and left out."""

    def __init__(self, subject: str, visitor: Visitor, repeats: dict[str, str]) -> None:
        self.subject = subject
        self.visitor = visitor
        self.repeats = repeats
        self.last: tuple[Tensor, int] | None = None

    def __call__(self, layer: str, output: Tensor) -> None:
        """Pass on the output of a layer, unless it is that of the one before."""
        if layer not in self.repeats:
            self.visitor(layer, output)
            self.last = (output, version(output))
        elif self.last is None or self.last[0] is not output or self.last[1] != version(output):
            raise AssayError(
                f"layer {layer!r} of {self.subject!r} returned what {self.repeats[layer]!r} returns in the dry run, "
                "and something else on this batch: choose one of them with layers="
            )
