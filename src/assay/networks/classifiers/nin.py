"""Network in Network (Lin, Chen, Yan 2014)."""

from __future__ import annotations

from torch import nn

from assay.networks.classifiers.blocks import ClassMaps, Named, convolution, require_sizes

POOLED = 2  # number of blocks that are followed by max-pooling


class NetworkInNetwork(ClassMaps):
    """Blocks of a convolution and two 1×1 convolutions, a small network that slides over the picture; no linear layer.

    The first two blocks see 5×5 and are followed by 2×2 max-pooling and dropout, the others see 3×3. The last 1×1
    convolution of the last block gives one map per class, whose mean is the logit. ReLU follows every convolution
    but that one (in the paper it follows that one too, and pooling windows overlap).

    Args:
        depth: Number of blocks; three in the paper.
        width: Number of maps of every convolution; up to 192 in the paper.
        batch_norm: Whether batch norm follows each convolution before its ReLU.
        dropout: Share of units left out after pooling; 0.5 in the paper.
        classes: Number of classes.
        channels: Number of colour channels of the pictures.

    Example:
        >>> network = NetworkInNetwork(depth=2, width=8, batch_norm=False, classes=3, channels=1)
        >>> list(dict(network.features.named_children()))[:7]
        ['conv1_1', 'relu1_1', 'conv1_2', 'relu1_2', 'conv1_3', 'relu1_3', 'pool1']
    """

    def __init__(
        self,
        depth: int = 3,
        width: int = 64,
        batch_norm: bool = True,
        dropout: float = 0.0,
        classes: int = 10,
        channels: int = 3,
    ) -> None:
        require_sizes(dropout, depth=depth, width=width, classes=classes, channels=channels)
        layers: Named = {}
        for block in range(1, depth + 1):
            pooled = block <= POOLED
            layers |= convolution(f"{block}_1", channels, width, 5 if pooled else 3, batch_norm=batch_norm)
            layers |= convolution(f"{block}_2", width, width, 1, batch_norm=batch_norm)
            if block < depth:
                layers |= convolution(f"{block}_3", width, width, 1, batch_norm=batch_norm)
                if pooled:
                    layers[f"pool{block}"] = nn.MaxPool2d(2)
                    if dropout:
                        layers[f"drop{block}"] = nn.Dropout(dropout)
            channels = width
        super().__init__(layers, width, classes)
