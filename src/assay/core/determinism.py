"""What results depend on besides their inputs: random numbers, and how this machine adds up.

On a CPU a sum depends on the number of threads and on the library, on a GPU on the bits that its products keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's random numbers, on the CPU and on ``device``, inside the block; afterwards they are as before it."""
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device is not None and device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@dataclass(frozen=True)
class Arithmetic:
    """How torch adds up on this CPU; two processes of equal arithmetic give the same bits.

    torch itself switches oneDNN off for good, in the whole process, when a product of bfloat16 meets a CPU that has no
    such arithmetic: without care, what a network gives would depend on what ran before it.

    Attributes:
        threads: Number of threads that share a sum.
        onednn: Whether products are computed by oneDNN, else by BLAS.
    """

    threads: int
    onednn: bool

    @classmethod
    def here(cls) -> Arithmetic:
        """The arithmetic of this process as it is now."""
        return cls(torch.get_num_threads(), bool(torch.backends.mkldnn.enabled))

    def set(self) -> None:
        """Switch this process to this arithmetic."""
        now = Arithmetic.here()
        if now.threads != self.threads:
            torch.set_num_threads(self.threads)
        if now.onednn != self.onednn:
            torch.backends.mkldnn.enabled = self.onednn  # type: ignore[assignment]  # torch gives it no type

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use this arithmetic inside the block; afterwards it is as before the block."""
        before = Arithmetic.here()
        self.set()
        try:
            yield
        finally:
            before.set()


@contextmanager
def reproducible(tf32: bool = False) -> Iterator[None]:
    """Make a GPU's convolutions and products come out the same every time inside the block, in float32 or in TF32.

    torch.export refuses to capture a network inside it (seen in torch 2.13: its old and new switches then differ).
    """
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    switches: list[tuple[Any, str, bool | str]] = [(cudnn, "deterministic", True), (cudnn, "benchmark", False)]
    if hasattr(cudnn, "conv"):  # since torch 2.9; the old names must not be mixed with these
        kinds = (cudnn.conv, cudnn.rnn, matmul)
        switches += [(where, "fp32_precision", "tf32" if tf32 else "ieee") for where in kinds]
    else:
        switches += [(where, "allow_tf32", tf32) for where in (cudnn, matmul)]
    before = [getattr(where, name) for where, name, _ in switches]
    try:
        for where, name, value in switches:
            setattr(where, name, value)
        yield
    finally:
        for (where, name, _), value in zip(switches, before, strict=True):
            setattr(where, name, value)
