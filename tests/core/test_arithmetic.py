"""A CPU's sums are done one way inside a block or a cell, and as before after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest
import torch

from assay import Measure, Subject, evaluate
from assay.core.determinism import Arithmetic, reproducible
from measure_kit import Slow, subjects


def test_inside_the_block_and_as_before_after_it():
    before = Arithmetic.here()
    other = Arithmetic(before.threads + 1, not before.onednn)
    with pytest.raises(ZeroDivisionError), other.used():
        assert Arithmetic.here() == other
        _ = 1 / 0
    assert Arithmetic.here() == before


@dataclass(frozen=True)
class Switches(Measure):
    """Changes what torch does on this CPU, as a product of bfloat16 does where there is no such arithmetic."""

    name: ClassVar[str] = "switches"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        torch.backends.mkldnn.enabled = not torch.backends.mkldnn.enabled
        torch.set_num_threads(torch.get_num_threads() + 1)
        return pd.DataFrame({"value": [0.0]})


def test_a_cell_does_not_change_how_the_next_one_adds_up(tmp_path):
    before = Arithmetic.here()
    alone = evaluate(subjects(1), Slow(), tmp_path / "alone")
    after = evaluate(subjects(1), [Switches(), Slow()], tmp_path / "after")
    assert Arithmetic.here() == before
    assert alone.table("slow").equals(after.table("slow"))


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="an older torch has other switches")
def test_switches_of_the_gpu_are_put_back():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul

    def switches() -> tuple[bool | str, ...]:
        kinds = (cudnn.conv, cudnn.rnn, matmul)
        return cudnn.deterministic, cudnn.benchmark, *(kind.fp32_precision for kind in kinds)

    before = switches()
    with pytest.raises(ZeroDivisionError), reproducible(tf32=True):
        assert switches() == (True, False, "tf32", "tf32", "tf32")
        _ = 1 / 0
    assert switches() == before
    with reproducible():
        assert switches() == (True, False, "ieee", "ieee", "ieee")
    assert switches() == before
