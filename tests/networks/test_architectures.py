from __future__ import annotations

import torch

from assay import Subject
from assay.networks import resnet18, small_resnet, small_vgg


def test_resnet18_has_the_published_number_of_parameters():
    assert sum(p.numel() for p in resnet18().parameters()) == 11_689_512


def test_small_networks_run_on_small_pictures():
    for make in (small_resnet, small_vgg):
        assert make()(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_resnet_layers_follow_the_usual_names():
    layers = Subject(resnet18(), example=(3, 64, 64)).choose("depth=1")
    assert layers == ["conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc"]
