"""Residual networks (He et al. 2016), for ImageNet-size and CIFAR-size pictures."""

from __future__ import annotations

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch norm, and a shortcut around them."""

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != width:
            shortcut = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """relu(bn2(conv2(relu(bn1(conv1 x)))) + shortcut x)."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out)
        return result


class ResNet(nn.Module):
    """Stages of basic blocks, the width doubling and the size halving at each stage after the first.

    Layer names follow the usual ones (``conv1``, ``bn1``, ``relu``, ``maxpool``, ``layer1`` …, ``avgpool``,
    ``fc``), so that released checkpoints of the same shape load.

    Args:
        blocks: Blocks per stage; (2, 2, 2, 2) is ResNet-18.
        width: Channels of the first stage.
        classes: Outputs.
        stem: ``"imagenet"`` (7×7, stride 2, max-pool) or ``"cifar"`` (3×3, stride 1).
    """

    def __init__(
        self,
        blocks: tuple[int, ...] = (2, 2, 2, 2),
        width: int = 64,
        classes: int = 1000,
        stem: str = "imagenet",
        channels: int = 3,
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
                stage.append(BasicBlock(inputs, width << i, 2 if i > 0 and j == 0 else 1))
                inputs = width << i
            self.add_module(name, nn.Sequential(*stage))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits N×classes."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in self.stages:
            x = self.get_submodule(name)(x)
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


def resnet18(classes: int = 1000) -> ResNet:
    """ResNet-18 for ImageNet-size pictures: 11,689,512 parameters."""
    return ResNet((2, 2, 2, 2), 64, classes)


def small_resnet(classes: int = 10, width: int = 16) -> ResNet:
    """A three-stage ResNet for small pictures (ResNet-8 by count of layers)."""
    return ResNet((1, 1, 1), width, classes, stem="cifar")
