"""Networks of nothing but convolutions (Springenberg, Dosovitskiy, Brox, Riedmiller 2015)."""

from __future__ import annotations

from assay.networks.classifiers.blocks import ClassMaps, Named, convolution, require_sizes


class FullyConvolutional(ClassMaps):
    """3×3 convolutions with ReLU, strides instead of pooling, no linear layer.

    Three stages of ``depth`` convolutions, the first of ``width`` maps and the others of twice as many. The last
    convolution of the first two stages has stride 2 and is followed by dropout. A 1×1 convolution gives one map per
    class, whose mean is the logit. With ``depth=3, width=96`` the first two stages are those of the paper's
    All-CNN-C; its third has one 3×3 and one 1×1 convolution.

    Args:
        depth: Number of convolutions per stage.
        width: Number of maps of the first stage.
        batch_norm: Whether batch norm follows each convolution before its ReLU.
        dropout: Share of units left out after each convolution with a stride; 0.5 in the paper.
        classes: Number of classes.
        channels: Number of colour channels of the pictures.

    Example:
        >>> network = FullyConvolutional(depth=2, width=8, dropout=0.5, classes=3, channels=1)
        >>> list(dict(network.features.named_children()))[:7]
        ['conv1_1', 'bn1_1', 'relu1_1', 'conv1_2', 'bn1_2', 'relu1_2', 'drop1_2']
    """

    def __init__(
        self,
        depth: int = 2,
        width: int = 32,
        batch_norm: bool = True,
        dropout: float = 0.0,
        classes: int = 10,
        channels: int = 3,
    ) -> None:
        require_sizes(dropout, depth=depth, width=width, classes=classes, channels=channels)
        layers: Named = {}
        for stage, maps in ((1, width), (2, 2 * width), (3, 2 * width)):
            for i in range(1, depth + 1):
                halved = i == depth and stage < 3
                stride, left_out = (2, dropout) if halved else (1, 0.0)
                layers |= convolution(f"{stage}_{i}", channels, maps, 3, stride, batch_norm, left_out)
                channels = maps
        super().__init__(layers, channels, classes)
