"""Residual networks (He et al. 2016), for ImageNet-size and CIFAR-size pictures."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from assay.networks.classifiers.blocks import require_sizes

Shortcut = Literal["projection", "padding"]


class PaddedShortcut(nn.Module):
    """The shortcut of option A of He et al. 2016: every ``stride``-th pixel, and zeros for the new channels.

    Half of the new channels come before the others, half after them.
    """

    def __init__(self, extra: int, stride: int) -> None:
        super().__init__()
        self.extra = extra
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Take every ``stride``-th pixel and pad the channels with zeros."""
        before = self.extra // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.extra - before))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch norm, and a shortcut around them."""

    def __init__(self, inputs: int, width: int, stride: int = 1, shortcut: Shortcut = "projection") -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != width:
            if shortcut == "padding":
                self.downsample = PaddedShortcut(width - inputs, stride)
            else:
                projection = nn.Conv2d(inputs, width, 1, stride, bias=False)
                self.downsample = nn.Sequential(projection, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(bn2(conv2(relu(bn1(conv1 x)))) + shortcut x)."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out)
        return result


class ResNet(nn.Module):
    """A residual network: stages of basic blocks, with twice the width and half the size at each stage after the first.

    Layer names follow the usual ones (``conv1``, ``bn1``, ``relu``, ``maxpool``, ``layer1`` …, ``avgpool``,
    ``fc``), so that released checkpoints of the same shape load.

    Args:
        blocks: Number of blocks in each stage; (2, 2, 2, 2) is ResNet-18.
        width: Number of channels of the first stage.
        classes: Number of classes.
        stem: The first layers: ``"imagenet"`` (7×7, stride 2, max-pool) or ``"cifar"`` (3×3, stride 1).
        channels: Number of colour channels of the pictures.
        shortcut: The shortcut where the width changes: ``"projection"`` (1×1 convolution, option B) or ``"padding"``
            (option A).
        head: Name of the last layer.
        dropout: Share of units left out before the last layer; 0 for no such layer.
    """

    def __init__(
        self,
        blocks: tuple[int, ...] = (2, 2, 2, 2),
        width: int = 64,
        classes: int = 1000,
        stem: str = "imagenet",
        channels: int = 3,
        shortcut: Shortcut = "projection",
        head: str = "fc",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        large = stem == "imagenet"
        self.conv1 = (
            nn.Conv2d(channels, width, 7, 2, 3, bias=False)
            if large
            else nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        )
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        inputs = width
        self.stages = [f"layer{i + 1}" for i in range(len(blocks))]
        for i, name in enumerate(self.stages):
            stage = []
            for j in range(blocks[i]):
                stage.append(BasicBlock(inputs, width << i, 2 if i > 0 and j == 0 else 1, shortcut))
                inputs = width << i
            self.add_module(name, nn.Sequential(*stage))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout) if dropout else None
        self.head = head
        self.add_module(head, nn.Linear(inputs, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits N×classes for pictures N×C×H×W."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in self.stages:
            x = self.get_submodule(name)(x)
        x = self.avgpool(x).flatten(1)
        if self.dropout is not None:
            x = self.dropout(x)
        logits: Tensor = self.get_submodule(self.head)(x)
        return logits


def resnet18(classes: int = 1000) -> ResNet:
    """Build ResNet-18 for ImageNet-size pictures: 11,689,512 parameters."""
    return ResNet((2, 2, 2, 2), 64, classes)


def small_resnet(classes: int = 10, width: int = 16) -> ResNet:
    """Build a three-stage ResNet for small pictures (ResNet-8 by its number of layers)."""
    return ResNet((1, 1, 1), width, classes, stem="cifar")


def resnet(depth: int = 1, width: int = 16, dropout: float = 0.0, classes: int = 10, channels: int = 3) -> ResNet:
    """Build a ResNet for small pictures: three stages of ``depth`` blocks, the first of ``width`` channels.

    Example:
        >>> sum(isinstance(m, BasicBlock) for m in resnet(depth=3, channels=1).modules())   # ResNet-20
        9
    """
    require_sizes(dropout, depth=depth, width=width, classes=classes, channels=channels)
    return ResNet((depth,) * 3, width, classes, stem="cifar", channels=channels, dropout=dropout)


def resnet20(classes: int = 10) -> ResNet:
    """Build ResNet-20 for CIFAR: 3 stages of 3 blocks, 16 to 64 channels, option A; released checkpoints load."""
    return ResNet((3, 3, 3), 16, classes, stem="cifar", shortcut="padding", head="linear")


def resnet56(classes: int = 10) -> ResNet:
    """Build ResNet-56 for CIFAR: 3 stages of 9 blocks, otherwise like ResNet-20."""
    return ResNet((9, 9, 9), 16, classes, stem="cifar", shortcut="padding", head="linear")
