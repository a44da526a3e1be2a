"""Architectures: models of early vision, unsupervised learners and the networks the measures are used on."""

from assay.networks.classifiers.fully_convolutional import FullyConvolutional
from assay.networks.classifiers.nin import NetworkInNetwork
from assay.networks.classifiers.resnet import ResNet, resnet, resnet18, resnet20, resnet56, small_resnet
from assay.networks.classifiers.vgg import VGG, small_vgg, vgg
from assay.networks.front_ends.filters import SteerablePyramid
from assay.networks.front_ends.periphery import Periphery
from assay.networks.front_ends.retina_v1 import RetinaV1
from assay.networks.front_ends.vone import VOne, VOneNet
from assay.networks.learners.autoencoder import Autoencoder, StackedAutoencoder
from assay.networks.learners.cdbn import ConvolutionalDeepBeliefNetwork, ConvolutionalRBM
from assay.networks.learners.denoising import DenoisingAutoencoder, StackedDenoisingAutoencoder
from assay.networks.learners.isa import StackedISA, SubspaceAnalysis
from assay.networks.learners.stack import LearnedStack, Together
from assay.networks.prednet import PredNet

__all__ = [
    "VGG",
    "Autoencoder",
    "ConvolutionalDeepBeliefNetwork",
    "ConvolutionalRBM",
    "DenoisingAutoencoder",
    "FullyConvolutional",
    "LearnedStack",
    "NetworkInNetwork",
    "Periphery",
    "PredNet",
    "ResNet",
    "RetinaV1",
    "StackedAutoencoder",
    "StackedDenoisingAutoencoder",
    "StackedISA",
    "SteerablePyramid",
    "SubspaceAnalysis",
    "Together",
    "VOne",
    "VOneNet",
    "resnet",
    "resnet18",
    "resnet20",
    "resnet56",
    "small_resnet",
    "small_vgg",
    "vgg",
]


def __dir__() -> list[str]:
    return sorted(__all__)
