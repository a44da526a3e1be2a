"""Names that the shell completes: kept as plain words, so that completing one need not load torch."""

from __future__ import annotations

MEASURES = (
    "augmentation",
    "clusters",
    "distance",
    "human-similarity",
    "invariance",
    "margin-bounds",
    "margins",
    "matching",
    "next-frame-error",
    "norms",
    "pac-bayes",
    "perturbation",
    "sharpness",
    "straightness",
    "training-speed",
)
NETWORKS = (
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
    "VGG",
    "VOne",
    "VOneNet",
    "resnet",
    "resnet18",
    "resnet20",
    "resnet56",
    "small_resnet",
    "small_vgg",
    "vgg",
)


def complete_name(incomplete: str) -> list[str]:
    """The measures and networks whose name begins with what is typed."""
    return [name for name in (*MEASURES, *source_names()) if name.startswith(incomplete)]


def complete_source(incomplete: str) -> list[str]:
    """The networks whose name begins with what is typed."""
    return [name for name in source_names() if name.startswith(incomplete)]


def source_names() -> list[str]:
    """assay's own networks as plans and commands name them."""
    return [f"assay.networks:{name}" for name in NETWORKS]
