"""Architectures: models of early vision, unsupervised learners and the networks the measures are used on."""

from assay.networks.autoencoder import Autoencoder, StackedAutoencoder
from assay.networks.cdbn import ConvolutionalDeepBeliefNetwork, ConvolutionalRBM
from assay.networks.denoising import DenoisingAutoencoder, StackedDenoisingAutoencoder
from assay.networks.fully_convolutional import FullyConvolutional
from assay.networks.isa import StackedISA, SubspaceAnalysis
from assay.networks.nin import NetworkInNetwork
from assay.networks.resnet import ResNet, resnet, resnet18, resnet20, resnet56, small_resnet
from assay.networks.retina_v1 import RetinaV1
from assay.networks.stack import LearnedStack, Together
from assay.networks.steerable import SteerablePyramid
from assay.networks.vgg import VGG, small_vgg, vgg

__all__ = [
    "VGG",
    "Autoencoder",
    "ConvolutionalDeepBeliefNetwork",
    "ConvolutionalRBM",
    "DenoisingAutoencoder",
    "FullyConvolutional",
    "LearnedStack",
    "NetworkInNetwork",
    "ResNet",
    "RetinaV1",
    "StackedAutoencoder",
    "StackedDenoisingAutoencoder",
    "StackedISA",
    "SteerablePyramid",
    "SubspaceAnalysis",
    "Together",
    "resnet",
    "resnet18",
    "resnet20",
    "resnet56",
    "small_resnet",
    "small_vgg",
    "vgg",
]
