from __future__ import annotations

import pytest
import torch
from torch import nn

from assay import AssayError
from assay.networks import FullyConvolutional


def test_it_has_the_parameters_of_all_cnn_c_but_for_the_third_stage():
    # Springenberg et al.'s All-CNN-C: 3×96 (3×3), 3×192 (3×3), then 192 (3×3), 192 (1×1), 10 (1×1): 1,369,738.
    network = FullyConvolutional(depth=3, width=96, batch_norm=False)
    three, one = 9 * 192 * 192 + 192, 192 * 192 + 192
    assert sum(p.numel() for p in network.parameters()) == 1_369_738 - one + 2 * three


def test_strides_halve_the_picture_twice_and_classes_have_maps():
    network = FullyConvolutional(depth=2, width=4, dropout=0.3, classes=5, channels=1).eval()
    x = torch.rand(2, 1, 28, 28)
    maps = network.classifier(network.features(x))
    assert maps.shape == (2, 5, 7, 7)
    torch.testing.assert_close(network(x), maps.mean((2, 3)))
    strides = {name: m.stride for name, m in network.features.named_children() if isinstance(m, nn.Conv2d)}
    assert [name for name, stride in strides.items() if stride == (2, 2)] == ["conv1_2", "conv2_2"]


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_it_is_convolutions_and_nothing_else(depth, batch_norm):
    network = FullyConvolutional(depth, 4, batch_norm, dropout=0.2)
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, 10)
    kinds = [type(m) for m in network.modules()]
    assert kinds.count(nn.Conv2d) == 3 * depth + 1 and kinds.count(nn.ReLU) == 3 * depth
    assert kinds.count(nn.BatchNorm2d) == (3 * depth if batch_norm else 0) and kinds.count(nn.Dropout) == 2
    assert nn.Linear not in kinds and nn.MaxPool2d not in kinds


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(AssayError, match="channels=0"):
        FullyConvolutional(channels=0)
