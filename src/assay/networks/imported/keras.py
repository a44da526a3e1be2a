"""Keras networks in torch: a JSON list of layers and an HDF5 file of weights, read without TensorFlow."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, first_line, optional
from assay.networks.imported.keras_layers import keras_layer, whole
from assay.networks.imported.keras_modules import Shape
from assay.stimuli.pictures import Array

Waiting = dict[str, Mapping[str, Tensor]]
_AXES = {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}  # of Keras' bias, (in, out) and (height, width, in, out), as in torch


class KerasNetwork(nn.Sequential):
    """Layers in order, named by kind and number: ``conv_1``, ``relu_1``, ``max_pool_1``, ``dense_1``, …

    It takes N×C×H×W where Keras takes N×H×W×C. The activation of a layer is a layer of its own.

    Args:
        layers: The modules by name.
        input_shape: Of one input: C×H×W, or D.
    """

    def __init__(self, layers: OrderedDict[str, nn.Module], input_shape: Shape) -> None:
        super().__init__(layers)
        self.input_shape = input_shape


def load_keras(config: str | Path, weights: str | Path) -> KerasNetwork:
    """A network with its weights (needs h5py).

    Args:
        config: A JSON file: ``input_shape``, [height, width, channels] or [features], and ``model_config``, a list of
            layers, each a mapping of ``layer_name`` and Keras' arguments.
        weights: What Keras' ``save_weights`` writes as HDF5.
    """
    described = read_json(config)
    try:
        network, waiting = _build(described.get("model_config"), described.get("input_shape"))
    except AssayError as error:
        raise AssayError(f"{config}: {error}") from error
    _fill(waiting, weights)
    return network.eval()


def read_json(path: str | Path) -> dict[str, Any]:
    """A JSON file that holds a mapping."""
    try:
        content = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise AssayError(f"{path} cannot be read as JSON ({first_line(error)})") from error
    if not isinstance(content, dict):
        raise AssayError(f"{path} holds a {type(content).__name__}, not a mapping")
    return content


def _build(layers: Any, input_shape: Any) -> tuple[KerasNetwork, Waiting]:
    """The network, and the tensors that wait for weights: by layer, then by Keras' name for them."""
    if not isinstance(layers, list) or not layers:
        raise AssayError(f"model_config={layers!r} is not a list of layers")
    if not isinstance(input_shape, list) or len(input_shape) not in (1, 3):
        raise AssayError(f"input_shape={input_shape!r} is neither [height, width, channels] nor [features]")
    *size, channels = (whole("input_shape", side) for side in input_shape)
    shape: Shape = (channels, *size)
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    waiting: Waiting = {}
    numbers: Counter[str] = Counter()
    for i, entry in enumerate(layers, 1):
        try:
            found = keras_layer(entry, shape)
        except AssayError as error:
            raise AssayError(f"layer {i}: {error}") from error
        for layer in found:
            numbers[layer.kind] += 1
            name, shape = f"{layer.kind}_{numbers[layer.kind]}", layer.shape
            modules[name] = layer.module
            if layer.weights:
                waiting[name] = layer.weights
    return KerasNetwork(modules, (channels, *size)), waiting


def _fill(waiting: Waiting, path: str | Path) -> None:
    """Give each layer the weights of the file's layer of the same rank among those that have any, as Keras does."""
    stored = _read_weights(path)
    if len(stored) != len(waiting):
        raise AssayError(f"{path} has weights of {len(stored)} layers, the network has {len(waiting)}: {[*waiting]}")
    for (layer, tensors), arrays in zip(waiting.items(), stored, strict=True):
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
    """The arrays of each layer that has any, by the last part of their names (``kernel`` of ``dense_1/kernel:0``)."""
    h5py = optional("h5py", "keras", "reading Keras weights")
    try:
        with h5py.File(path, "r") as file:
            layers = [file[_text(name)] for name in file.attrs["layer_names"]]
            names = [[_text(name) for name in layer.attrs["weight_names"]] for layer in layers]
            return [
                {name.rsplit("/")[-1].split(":")[0]: np.asarray(layer[name], dtype=np.float32) for name in weights}
                for layer, weights in zip(layers, names, strict=True)
                if weights
            ]
    except Exception as error:  # h5py's errors share no base class
        raise AssayError(f"{path} cannot be read as Keras weights ({first_line(error)})") from error


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
