from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assay.measures.invariance import top_responses
from assay.measures.invariance.top_responses import TopResponses, count_true, extremes, largest


@pytest.mark.slow
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 60), st.integers(1, 4)),
        elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-9, 9, width=16), st.just(float("nan"))),
    ),
    st.integers(1, 5),
    st.integers(1, 20),
    st.sampled_from([0, 8]),  # picked out at once, and after sorting at first
)
def test_the_largest_are_those_of_a_full_sort_however_they_are_batched(responses, count, batch, merged):
    with patch.object(top_responses, "_SORTED", merged):
        top = TopResponses(count, (1, -1))
        for start in range(0, len(responses), batch):
            top.extend(torch.from_numpy(responses[start : start + batch]))
        found = {sign: top.sorted(sign) for sign in top.signs}
    assert top.shown == len(responses)
    for sign, (values, stimuli) in found.items():
        for unit, column in enumerate(sign * responses.T):
            known = np.flatnonzero(~np.isnan(column))
            order = known[np.argsort(-column[known], kind="stable")][:count]
            n = len(order)
            assert values[:n, unit].tolist() == column[order].tolist()
            assert (stimuli[n:, unit] == -1).all() and (values[n:, unit] == -torch.inf).all()
            numbers = stimuli[:n, unit].numpy()
            assert len(set(numbers)) == n and column[numbers].tolist() == column[order].tolist()
            above = column[order] > column[order][-1] if n else []  # of those equal to the smallest any may be kept
            assert numbers[above].tolist() == order[above].tolist()


def test_keys_order_values_of_all_sizes_and_then_the_earlier_stimulus():
    values = [-np.inf, -3e38, -1.5, -1e-45, 0.0, 1e-45, 1.5, 1.5, 3e38, np.inf]
    found, stimuli = largest(torch.tensor([values]), torch.arange(10)[None], 10)
    assert found[0].tolist() == torch.tensor(values).flip(0).tolist()
    assert stimuli[0].tolist() == [9, 8, 6, 7, 5, 4, 3, 2, 1, 0]
    zeros, earlier = largest(torch.tensor([[0.0, -0.0, 0.0]]), torch.tensor([[5, 3, 4]]), 2)
    assert zeros.tolist() == [[0, 0]] and earlier.tolist() == [[3, 4]], "−0 is 0"
    double, same = largest(torch.tensor([values], dtype=torch.float64), torch.arange(10)[None], 10)
    assert double[0].tolist() == sorted(values, reverse=True) and same[0].tolist() == stimuli[0].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_one_large_batch_gives_what_a_full_sort_does_in_any_type(dtype):
    responses = torch.randn(700, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    responses[3, 1] = torch.nan
    top = TopResponses(4)
    top.extend(responses)
    values, _ = top.sorted(1)
    expected = responses.nan_to_num(-torch.inf).sort(dim=0, descending=True).values[:4]
    assert torch.equal(values, expected.to(values.dtype))


def test_truth_is_counted_beyond_a_byte_and_extremes_keep_nan():
    which = torch.rand(700, 6, generator=torch.Generator().manual_seed(0)) < torch.tensor([0, 0.3, 0.5, 0.9, 1, 1])
    assert torch.equal(count_true(which), which.sum(0, dtype=torch.int32)) and count_true(which)[-1] == 700
    responses = torch.tensor([[1.0, 2.0], [torch.nan, -torch.inf], [0.0, 5.0]])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        low, high = extremes(responses.to(dtype))
        assert low.isnan().tolist() == high.isnan().tolist() == [True, False]
        assert low[1] == -torch.inf and high[1] == 5 and low.dtype == dtype
