from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay import AssayError, Subject
from assay.core.determinism import seeded
from assay.networks import NetworkInNetwork


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def test_it_has_the_parameters_of_the_published_network_but_for_its_narrower_layers():
    # Lin et al.'s CIFAR-10 network is 192-160-96, 192-192-192, 192-192-10: 966,986 parameters. Here all are of one
    # width: 192-192-192 in the first block, so that the second one's 5×5 convolution sees 192 maps instead of 96.
    narrow = 192 * 160 + 160 + 160 * 96 + 96 + 25 * 96 * 192 + 192
    wide = 2 * (192 * 192 + 192) + 25 * 192 * 192 + 192
    network = NetworkInNetwork(depth=3, width=192, batch_norm=False)
    assert parameters(network) == 966_986 - narrow + wide


def test_its_logits_are_the_means_of_its_class_maps():
    with seeded(0):
        network = NetworkInNetwork(depth=3, width=6, batch_norm=False, dropout=0.5, classes=4, channels=1).eval()
        x = torch.rand(3, 1, 28, 28)

    def conv(x: Tensor, name: str) -> Tensor:
        layer = network.get_submodule(name)
        weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
        return F.conv2d(x, weight, bias, padding=weight.shape[-1] // 2)

    h = x
    for block in (1, 2, 3):
        for i in (1, 2, 3) if block < 3 else (1, 2):
            h = conv(h, f"features.conv{block}_{i}").clamp_min(0)
        if block < 3:
            h = F.max_pool2d(h, 2)
    assert h.shape == (3, 6, 7, 7)
    torch.testing.assert_close(network(x), conv(h, "classifier").mean((2, 3)))
    assert [network.get_parameter(f"features.conv{i}_1.weight").shape[-1] for i in (1, 2, 3)] == [5, 5, 3]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32)])
def test_any_depth_sees_small_pictures(depth, channels, size):
    network = NetworkInNetwork(depth, 4, dropout=0.1, classes=7, channels=channels)
    assert network(torch.rand(2, channels, size, size)).shape == (2, 7)
    kinds = [type(m) for m in network.modules()]
    assert kinds.count(nn.ReLU) == kinds.count(nn.BatchNorm2d) == 3 * depth - 1
    assert kinds.count(nn.Dropout) == kinds.count(nn.MaxPool2d) == min(depth - 1, 2)
    assert nn.Linear not in kinds


def test_its_layers_can_be_recorded_and_dropout_is_silent_in_eval_mode():
    subject = Subject(NetworkInNetwork(2, 4, dropout=0.5, channels=1), example=(1, 28, 28))
    assert "features.relu1_1" in subject.layers and "features.drop1" in subject.layers
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(subject(x), subject(x))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"depth": 0}, "depth=0"), ({"width": 0}, "width=0"), ({"dropout": 1.0}, "dropout=1.0"), ({"classes": 0}, "=0")],
)
def test_sizes_that_make_no_sense_are_refused(settings, sentence):
    with pytest.raises(AssayError, match=sentence):
        NetworkInNetwork(**settings)
