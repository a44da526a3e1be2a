from __future__ import annotations

import pytest
import torch
from torch import nn

from assay import AssayError
from assay.core.determinism import seeded
from assay.networks import VGG, resnet, resnet20, small_resnet, small_vgg, vgg


def kinds(network: nn.Module) -> list[type]:
    return [type(m) for m in network.modules()]


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_depth_is_convolutions_per_stage_and_width_doubles(depth, batch_norm):
    network = vgg(depth, 4, batch_norm, dropout=0.2, classes=7, channels=1)
    widths = [m.out_channels for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert widths == [4] * depth + [8] * depth + [16] * depth
    assert kinds(network).count(nn.BatchNorm2d) == (3 * depth if batch_norm else 0)
    assert kinds(network).count(nn.Dropout) == kinds(network).count(nn.MaxPool2d) == 3
    assert network(torch.rand(2, 1, 28, 28)).shape == (2, 7)


def test_what_there_was_before_is_as_it_was():
    with seeded(0):
        small = small_vgg()
    with seeded(0):
        plain = VGG(((16,), (32,), (64,)))
    names = [f"features.{i}.{j}" for i in (0, 4, 8) for j in ("weight", "bias")]
    assert [n for n in small.state_dict() if n in names] == names and "classifier.weight" in small.state_dict()
    assert nn.Dropout not in kinds(small)
    # torch's own initial weights: uniform in ±1/√fan-in.
    assert small.features[4].weight.abs().max() <= (16 * 9) ** -0.5
    torch.testing.assert_close(small.state_dict(), plain.state_dict(), atol=0, rtol=0)


def test_he_weights_carry_a_signal_through_a_deep_network_without_batch_norm():
    with seeded(0):
        network = vgg(depth=4, width=32, batch_norm=False)
        x = torch.randn(8, 3, 32, 32)
    *below, _, _ = network.features  # ReLU and pooling come last
    assert isinstance(below[-1], nn.Conv2d) and sum(isinstance(m, nn.Conv2d) for m in below) == 12
    z = nn.Sequential(*below)(x)
    # E[z²] is kept from layer to layer but for what padding loses; torch's own start would leave 6⁻¹² of it.
    assert 0.05 < z.square().mean().sqrt() / x.square().mean().sqrt() < 5
    weight = network.features[2].weight
    # 9,216 draws: their standard deviation has a relative standard error of 1/√(2·9216) = 0.7 %.
    assert weight.std().item() == pytest.approx((2 / (32 * 9)) ** 0.5, rel=0.03)


def test_resnet_of_any_depth_and_width_sees_small_pictures():
    network = resnet(depth=2, width=4, dropout=0.5, classes=7, channels=1)
    assert network(torch.rand(2, 1, 28, 28)).shape == (2, 7)
    assert kinds(network).count(nn.Dropout) == 1
    count = sum(p.numel() for p in resnet(depth=3, width=16).parameters())
    # Option B: two 1×1 convolutions with batch norm where option A (ResNet-20: 269,722) has no parameters.
    extra = 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64
    assert sum(p.numel() for p in resnet20().parameters()) == 269_722 and count == 269_722 + extra


def test_resnet_of_one_block_is_the_small_resnet():
    with seeded(0):
        one = resnet()
    with seeded(0):
        other = small_resnet()
    torch.testing.assert_close(one.state_dict(), other.state_dict(), atol=0, rtol=0)


@pytest.mark.parametrize("make", [vgg, resnet])
def test_sizes_that_make_no_sense_are_refused(make):
    with pytest.raises(AssayError, match="depth=0"):
        make(depth=0)
    with pytest.raises(AssayError, match=r"dropout=-0.1"):
        make(dropout=-0.1)
