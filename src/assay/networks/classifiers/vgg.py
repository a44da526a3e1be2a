"""Plain convolutional networks (Simonyan & Zisserman 2015)."""

from __future__ import annotations

from torch import Tensor, nn

from assay.networks.classifiers.blocks import he, require_sizes


class VGG(nn.Module):
    """A plain network: 3×3 convolutions with ReLU, max-pooling after each stage, one linear layer on the pooled map.

    Args:
        stages: Widths of the convolutions of each stage.
        classes: Number of classes.
        batch_norm: Whether batch norm follows each convolution.
        channels: Number of colour channels of the pictures.
        dropout: Share of units left out after each stage's pooling; 0 for no such layer.
    """

    def __init__(
        self,
        stages: tuple[tuple[int, ...], ...] = ((64, 64), (128, 128), (256, 256, 256)),
        classes: int = 10,
        batch_norm: bool = True,
        channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for stage in stages:
            for width in stage:
                layers.append(nn.Conv2d(channels, width, 3, padding=1))
                if batch_norm:
                    layers.append(nn.BatchNorm2d(width))
                layers.append(nn.ReLU(inplace=True))
                channels = width
            layers.append(nn.MaxPool2d(2))
            if dropout:
                layers.append(nn.Dropout(dropout))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits N×classes for pictures N×C×H×W."""
        logits: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return logits


def small_vgg(classes: int = 10) -> VGG:
    """Build a VGG of three stages of one narrow convolution each, for small pictures."""
    return VGG(((16,), (32,), (64,)), classes)


def vgg(
    depth: int = 1,
    width: int = 16,
    batch_norm: bool = True,
    dropout: float = 0.0,
    classes: int = 10,
    channels: int = 3,
) -> VGG:
    """Build a VGG for small pictures: three stages of ``depth`` convolutions.

    The stages have ``width``, 2·``width`` and 4·``width`` maps. Weights begin as `he` draws them, so that the network
    also learns without batch norm.

    Example:
        >>> sum(isinstance(m, nn.Conv2d) for m in vgg(depth=3, width=8, channels=1).modules())
        9
    """
    require_sizes(dropout, depth=depth, width=width, classes=classes, channels=channels)
    stages = tuple((maps,) * depth for maps in (width, 2 * width, 4 * width))
    network = VGG(stages, classes, batch_norm, channels, dropout)
    he(network)
    return network
