"""How many inputs fit in one pass on a GPU."""

import pytest
import torch
from torch import nn

from assay import Subject
from assay.subject.fitting import MOST, fitting_batch, room


def test_room_is_the_largest_power_of_two_that_fits():
    assert [room(free, 10, 1024) for free in (10, 19, 20, 39, 40, 79, 80)] == [1, 1, 2, 2, 4, 4, 8]


def test_room_is_bounded_on_both_sides():
    assert room(0, 10, 1024) == 1
    assert room(1e15, 1, 1024) == 1024
    assert room(1e15, 1, 1000) == 512


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_is_filled_by_half_at_most():
    subject = Subject(nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU()), device="cuda")
    assert fitting_batch(subject, torch.rand(1, 3, 32, 32)) == MOST
    size = fitting_batch(subject, torch.rand(1, 3, 1024, 1024))
    torch.cuda.reset_peak_memory_stats()
    subject.visit(torch.rand(1, 3, 1024, 1024).expand(size, -1, -1, -1), lambda layer, output: None)
    assert torch.cuda.max_memory_allocated() < 0.8 * torch.cuda.mem_get_info()[1]
