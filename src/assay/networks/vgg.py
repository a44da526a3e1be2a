"""Plain convolutional networks (Simonyan & Zisserman 2015)."""

from __future__ import annotations

from torch import Tensor, nn


class VGG(nn.Module):
    """3×3 convolutions with ReLU, max-pooling between the stages, one linear layer on the pooled map.

    Args:
        stages: Widths of the convolutions of each stage.
        classes: Outputs.
        batch_norm: Whether batch norm follows each convolution.
    """

    def __init__(
        self,
        stages: tuple[tuple[int, ...], ...] = ((64, 64), (128, 128), (256, 256, 256)),
        classes: int = 10,
        batch_norm: bool = True,
        channels: int = 3,
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
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits N×classes."""
        logits: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return logits


def small_vgg(classes: int = 10) -> VGG:
    """Three stages of narrow convolutions, for small pictures."""
    return VGG(((16,), (32,), (64,)), classes)
