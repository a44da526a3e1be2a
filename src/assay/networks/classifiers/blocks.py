"""What the convolutional networks share: named layers, initial weights, checks of sizes."""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

from assay.core.errors import AssayError

Named = dict[str, nn.Module]


def convolution(
    name: str, inputs: int, width: int, size: int = 3, stride: int = 1, batch_norm: bool = True, dropout: float = 0.0
) -> Named:
    """Return a convolution that keeps the size of its input (at stride 1), batch norm, ReLU and dropout, by name.

    Example:
        >>> list(convolution("1_2", 3, 8, dropout=0.5))
        ['conv1_2', 'bn1_2', 'relu1_2', 'drop1_2']
    """
    layers: Named = {f"conv{name}": nn.Conv2d(inputs, width, size, stride, size // 2)}
    if batch_norm:
        layers[f"bn{name}"] = nn.BatchNorm2d(width)
    layers[f"relu{name}"] = nn.ReLU(inplace=True)
    if dropout:
        layers[f"drop{name}"] = nn.Dropout(dropout)
    return layers


class ClassMaps(nn.Module):
    """Layers, then a 1×1 convolution that gives one map per class, whose mean is the logit; `he` draws the weights."""

    def __init__(self, layers: Named, width: int, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(OrderedDict(layers))
        self.classifier = nn.Conv2d(width, classes, 1)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        he(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits N×classes for pictures N×C×H×W."""
        logits: Tensor = self.avgpool(self.classifier(self.features(x))).flatten(1)
        return logits


def he(network: nn.Module) -> None:
    """Draw weights of convolutions and linear layers from N(0, 2/fan-in) and set biases to 0: signals keep their size.

    Without batch norm a deep network learns nothing from torch's smaller initial weights. He et al. 2015, Eq. 10.
    """
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def require_sizes(dropout: float, **sizes: int) -> None:
    """Raise an error unless all sizes are at least 1 and dropout is a share."""
    for name, value in sizes.items():
        if value < 1:
            raise AssayError(f"{name}={value} must be at least 1")
    if not 0 <= dropout < 1:
        raise AssayError(f"dropout={dropout} is the share of units left out: in [0, 1)")
