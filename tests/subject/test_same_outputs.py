"""Agreement: outputs of any size are told apart by the same share of them."""

from __future__ import annotations

import pytest
import torch

from assay.subject.agreement import agree, require_same


def same(ours, theirs, **how):
    try:
        require_same([ours], [theirs], **how)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("size", [2e-3, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_the_size_of_the_outputs_plays_no_part(size, dtype):
    outputs = (torch.linspace(-1, 1, 7, dtype=torch.float64) * size).to(dtype)
    for factor, recomputed, unchanged in ((1.00005, True, True), (1.0005, True, False), (1.01, False, False)):
        assert agree(lambda f=factor: outputs * f, lambda: outputs) == recomputed
        assert same(outputs * factor, outputs) == recomputed
        assert same(outputs * factor, outputs, recomputed=False) == unchanged


def test_the_softmax_of_a_thousand_classes_does_not_pass_for_another():
    torch.manual_seed(0)
    one, other = (torch.randn(2, 5, 1000) * 0.1).softmax(-1)
    assert not agree(lambda: one, lambda: other) and not same(one, other)
    assert agree(lambda: one * 1.0005, lambda: one) and same(one * 1.0005, one)


def test_what_rounding_leaves_of_numbers_that_cancel_out_passes():
    """1 − (1 − ε) and 0 are the same number, computed in two orders."""
    zeros = torch.zeros(3)
    assert same(zeros + torch.finfo(torch.float32).eps, zeros) and not same(zeros + 1e-6, zeros)
    assert agree(lambda: zeros + torch.finfo(torch.float32).eps, lambda: zeros)
    exact = zeros.double()
    assert same(exact + torch.finfo(torch.float64).eps, exact) and not same(exact + 1e-15, exact)


def test_short_types_and_whole_numbers():
    short = torch.tensor([1e-3, -2e-3], dtype=torch.bfloat16)
    assert same(short * 1.02, short) and not same(short * 1.2, short)
    assert same(torch.arange(3), torch.arange(3)) and not same(torch.arange(3) + 1, torch.arange(3))
    assert same(torch.tensor([True]), torch.tensor([True])) and not same(torch.tensor([True]), torch.tensor([False]))


def test_numbers_that_are_not_finite_are_the_same_in_both():
    odd = torch.tensor([float("nan"), float("inf"), 1e-4])
    assert same(odd, odd) and agree(lambda: odd, lambda: odd)
    for other in (odd.flip(0), torch.tensor([float("nan"), float("inf"), 2e-4])):
        assert not same(other, odd) and not agree(lambda other=other: other, lambda: odd)
