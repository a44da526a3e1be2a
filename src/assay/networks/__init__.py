"""Architectures: models of early vision and the networks the measures are used on."""

from assay.networks.resnet import ResNet, resnet18, small_resnet
from assay.networks.retina_v1 import RetinaV1
from assay.networks.steerable import SteerablePyramid
from assay.networks.vgg import VGG, small_vgg

__all__ = ["VGG", "ResNet", "RetinaV1", "SteerablePyramid", "resnet18", "small_resnet", "small_vgg"]
