"""The networks of all three corpora: convolutional stages, plain or with skip connections."""

from __future__ import annotations

from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions with batch norm; with ``skip`` what comes in is added before the last rectification."""

    def __init__(self, before: int, width: int, stride: int, skip: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()
        same = stride == 1 and before == width
        self.shortcut = (nn.Identity() if same else nn.Conv2d(before, width, 1, stride, bias=False)) if skip else None

    def forward(self, x: Tensor) -> Tensor:
        """Pass pictures of the stage before, or of the block before, through the block."""
        out = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        return self.relu2(out if self.shortcut is None else out + self.shortcut(x))


def convnet(
    depth: int = 1, width: int = 16, skips: bool = False, dropout: float = 0.0, classes: int = 10, channels: int = 3
) -> nn.Module:
    """Three stages of ``depth`` blocks, each half as large as the one before, the first half as large as the pictures.

    Each stage is twice as wide as the one before.

    Args:
        depth: Number of blocks of a stage.
        width: Number of channels of the first stage.
        skips: Whether blocks have skip connections.
        dropout: Share of channels that are left out after each stage while the network learns.
        classes: Number of classes.
        channels: Number of channels of the pictures.
    """
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage in range(3):
        for block in range(depth):
            now = width * 2**stage
            layers.append(Block(before, now, 2 if stage and not block else 1, skips))
            before = now
        if dropout:
            layers.append(nn.Dropout2d(dropout))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
