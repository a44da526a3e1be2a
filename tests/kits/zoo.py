"""Small networks of every kind the project meets, built on the spot from a seed."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """A block whose one in-place ReLU is called twice and whose skip crosses every cut inside it."""

    def __init__(self, width: int, stride: int = 1, inplace: bool = True) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width // stride, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=inplace)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None if stride == 1 else nn.Conv2d(width // stride, width, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(8), Residual(8))
        self.layer2 = nn.Sequential(Residual(16, 2), Residual(16))
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3 + 4 * i, 4, 3, padding=1) for i in range(4))
        self.head = nn.Linear(19, 10)

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for conv in self.convs:
            features.append(F.relu(conv(torch.cat(features, 1))))
        return self.head(torch.cat(features, 1).mean((2, 3)))


class Transformer(nn.Module):
    """Patches, torch's own encoder (attention returns a tuple), class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        return self.head(self.encoder(x)[:, 0])


class DataDependent(nn.Module):
    """Branches on the values of its input, so no graph can hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(48, 12)
        self.second = nn.Linear(12, 12)
        self.head = nn.Linear(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x.flatten(1)[:, :48])
        return self.head(F.relu(self.second(x)) if x.sum().item() > -1e9 else x)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))


def vgg() -> nn.Module:
    layers: list[nn.Module] = []
    for i, o in ((3, 8), (8, 16), (16, 16)):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(nn.Sequential(*layers), nn.Flatten(), nn.Dropout(), nn.Linear(64, 10))


BUILDERS = {
    "mlp": mlp,
    "vgg": vgg,
    "resnet": ResNet,
    "densenet": DenseNet,
    "transformer": Transformer,
    "data-dependent": DataDependent,
}
SHAPE = (3, 16, 16)


def build(kind: str, seed: int = 0) -> nn.Module:
    """A network of that kind with random weights and batch statistics, in training mode as built."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: nn.Module = BUILDERS[kind]()
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                assert module.running_mean is not None and module.running_var is not None
                module.running_mean.normal_(0, 0.2, generator=generator)
                module.running_var.uniform_(0.5, 1.5, generator=generator)
    return network


def images(n: int = 5, seed: int = 0) -> Tensor:
    return torch.rand(n, *SHAPE, generator=torch.Generator().manual_seed(seed))
