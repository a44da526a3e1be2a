"""Keras networks in torch: a JSON list of layers and an HDF5 file of weights, read without TensorFlow."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import AssayError
from assay.core.hdf5 import open_hdf5
from assay.core.reading import read_json as read_json_file
from assay.core.reading import reading
from assay.networks.imported.keras_layers import keras_layer, whole
from assay.networks.imported.keras_modules import Shape
from assay.stimuli.pictures import Array

Unfilled = dict[str, Mapping[str, Tensor]]  # tensors without their weights yet, by layer and by Keras' name
# Torch's order of the axes of Keras' bias, (in, out) and (height, width, in, out), by their number.
_AXES = {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}


class KerasNetwork(nn.Sequential):
    """A Keras network: its layers in order, named by kind and number, ``conv_1``, ``relu_1``, ``dense_1``, …

    It takes N×C×H×W where Keras takes N×H×W×C. The activation of a layer is a layer of its own.

    Args:
        layers: The modules by name.
        input_shape: Shape of one input: C×H×W, or D.
    """

    def __init__(self, layers: OrderedDict[str, nn.Module], input_shape: Shape) -> None:
        super().__init__(layers)
        self.input_shape = input_shape


def load_keras(config: str | Path, weights: str | Path) -> KerasNetwork:
    """Load a Keras network with its weights (needs h5py).

    Args:
        config: A JSON file with ``input_shape``, [height, width, channels] or [features], and ``model_config``, a list
            of layers, each a mapping of ``layer_name`` and Keras' arguments.
        weights: An HDF5 file written by Keras' ``save_weights``.
    """
    description = read_json(config)
    with reading(config, "a Keras network"):
        try:
            network, unfilled = _build(description.get("model_config"), description.get("input_shape"))
        except AssayError as error:
            raise AssayError(f"{config}: {error}") from error
    _fill(unfilled, weights)
    return network.eval()


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON file that holds a mapping."""
    content = read_json_file(path)
    if not isinstance(content, dict):
        raise AssayError(f"{path} holds a {type(content).__name__}, not a mapping")
    return content


def _build(layers: Any, input_shape: Any) -> tuple[KerasNetwork, Unfilled]:
    """Build the network, and return it with the tensors that still need weights."""
    if not isinstance(layers, list) or not layers:
        raise AssayError(f"model_config={layers!r} is not a list of layers")
    if not isinstance(input_shape, list) or len(input_shape) not in (1, 3):
        raise AssayError(f"input_shape={input_shape!r} is neither [height, width, channels] nor [features]")
    *size, channels = (whole("input_shape", side) for side in input_shape)
    shape: Shape = (channels, *size)
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    unfilled: Unfilled = {}
    numbers: Counter[str] = Counter()
    for i, entry in enumerate(layers, 1):
        try:
            layers_of_entry = keras_layer(entry, shape)
        except AssayError as error:
            raise AssayError(f"layer {i}: {error}") from error
        for layer in layers_of_entry:
            numbers[layer.kind] += 1
            name, shape = f"{layer.kind}_{numbers[layer.kind]}", layer.shape
            modules[name] = layer.module
            if layer.weights:
                unfilled[name] = layer.weights
    return KerasNetwork(modules, (channels, *size)), unfilled


def _fill(unfilled: Unfilled, path: str | Path) -> None:
    """Copy weights into the network; layers with weights correspond by their order, as in Keras."""
    stored = _read_weights(path)
    if len(stored) != len(unfilled):
        raise AssayError(f"{path} has weights of {len(stored)} layers, the network has {len(unfilled)}: {[*unfilled]}")
    for (layer, tensors), arrays in zip(unfilled.items(), stored, strict=True):
        if set(arrays) != set(tensors):
            raise AssayError(f"{path} has {sorted(arrays)} for {layer}, which needs {sorted(tensors)}")
        for name, tensor in tensors.items():
            array = arrays[name]
            axes = _AXES[tensor.dim()]
            expected = tuple(tensor.shape[axes.index(i)] for i in range(len(axes)))
            if array.shape != expected:
                raise AssayError(f"{path}: the {name} of {layer} is {array.shape}, the network needs {expected}")
            if not np.isfinite(array).all():
                raise AssayError(f"{path}: the {name} of {layer} has NaN or infinite values")
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(array.transpose(axes).copy()))


def _read_weights(path: str | Path) -> list[dict[str, Array]]:
    """Read the arrays of each layer that has weights, by short names (``kernel`` for ``dense_1/kernel:0``)."""
    with open_hdf5(path, "Keras weights", "reading Keras weights") as file:
        layers = [file[_text(name)] for name in file.attrs["layer_names"]]
        names = [[_text(name) for name in layer.attrs["weight_names"]] for layer in layers]
        return [
            {name.rsplit("/")[-1].split(":")[0]: np.asarray(layer[name], dtype=np.float32) for name in weights}
            for layer, weights in zip(layers, names, strict=True)
            if weights
        ]


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
