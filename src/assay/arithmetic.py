"""What a CPU's sums depend on besides their terms: how many threads share them, and which library does them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Arithmetic:
    """How torch adds up on this CPU; two processes of equal arithmetic give the same bits.

    torch itself switches oneDNN off for good, in the whole process, when a product of bfloat16 meets a CPU that has no
    such arithmetic: without care, what a network gives would depend on what ran before it.

    Attributes:
        threads: How many share a sum.
        onednn: Whether products go to oneDNN, else to BLAS.
    """

    threads: int
    onednn: bool

    @classmethod
    def here(cls) -> Arithmetic:
        """As it is now."""
        return cls(torch.get_num_threads(), bool(torch.backends.mkldnn.enabled))

    def set(self) -> None:
        """From now on."""
        now = Arithmetic.here()
        if now.threads != self.threads:
            torch.set_num_threads(self.threads)
        if now.onednn != self.onednn:
            torch.backends.mkldnn.enabled = self.onednn  # type: ignore[assignment]  # torch gives it no type

    @contextmanager
    def used(self) -> Iterator[None]:
        """Inside the block; afterwards as before it."""
        before = Arithmetic.here()
        self.set()
        try:
            yield
        finally:
            before.set()
