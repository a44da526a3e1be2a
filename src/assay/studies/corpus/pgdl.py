"""Corpora in the format of the competition "Predicting generalization in deep learning" (Jiang et al. 2020).

A folder with ``model_configs.json`` (hyper-parameters and accuracies of each network), ``model_N/config.json`` and
``model_N/weights.hdf5`` (Keras), and the data, ``dataset_1/train/*.tfrecord`` and ``dataset_1/test/*.tfrecord``.
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.reading import is_file
from assay.networks.imported.keras import load_keras, read_json
from assay.stimuli.labelled import Labelled
from assay.stimuli.pictures import Array
from assay.stimuli.tfrecord import parse_example, parse_tensor, read_records
from assay.studies.corpus.corpus import RESULTS, Corpus
from assay.subject.subject import Subject


class PgdlCorpus(Corpus):
    """The networks of one task of the competition; its data are read when they are first needed.

    Args:
        folder: The task's folder.
        table: One row per network; see `Corpus`.
    """

    def __init__(self, folder: Path, table: pd.DataFrame) -> None:
        self.folder = folder
        self.table = table
        self.name = folder.name

    def subject(self, network: str) -> Subject:
        """Load a network by its name, ``"model_N"``, with its trained weights; its output is that of its last layer."""
        self.require(network)
        model_folder = self.folder / network
        module = load_keras(model_folder / "config.json", model_folder / "weights.hdf5")
        return Subject(module, name=network, example=module.input_shape)

    @cached_property
    def train(self) -> Labelled:
        """What the networks were trained on."""
        return _read_data(self.folder / "dataset_1" / "train", f"{self.name}: train")

    @cached_property
    def test(self) -> Labelled:
        """What the networks were tested on."""
        return _read_data(self.folder / "dataset_1" / "test", f"{self.name}: test")


def load_pgdl(folder: str | Path) -> PgdlCorpus:
    """Open a task of the competition, or any folder in its format.

    Networks are in the order of their numbers. Pictures are N×C×H×W with the values that the files hold, unscaled; the
    files of a data set are read in the order of their names.
    """
    folder = Path(folder)
    path = folder / "model_configs.json"
    if not is_file(path):
        raise AssayError(f"{folder} is no PGDL task: it has no model_configs.json")
    descriptions = read_json(path)
    if not descriptions:
        raise AssayError(f"{path} describes no network")
    for key in descriptions:
        if not key.isdecimal():
            raise AssayError(f"{path}: the network {key!r} has no number for a name")
    rows = [_row(key, descriptions[key], path) for key in sorted(descriptions, key=int)]
    for row in rows:
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())
            raise AssayError(f"{path}: {row['network']} and {rows[0]['network']} do not both have {', '.join(odd)}")
        for name in ("config.json", "weights.hdf5"):
            if not is_file(folder / row["network"] / name):
                raise AssayError(f"{folder / row['network'] / name} is missing, but {path.name} has the network")
    _shards(folder / "dataset_1" / "train")
    return PgdlCorpus(folder, pd.DataFrame(rows))


def _row(key: str, description: Any, path: Path) -> dict[str, Any]:
    """The row of the corpus for one network, from its checked description in ``model_configs.json``."""
    network = f"model_{key}"
    try:
        levels = {str(name): _level(value["current_value"]) for name, value in description["hparams"].items()}
        train, test = (description["metrics"][name] for name in ("train_acc", "test_acc"))
    except (KeyError, TypeError, AttributeError) as error:
        raise AssayError(
            f"{path}: {network} needs 'hparams', each with a 'current_value', and 'metrics' with 'train_acc' and "
            f"'test_acc' ({error!r})"
        ) from error
    for name, value in levels.items():
        if name in ("network", *RESULTS):
            raise AssayError(f"{path}: a hyper-parameter of {network} is called {name!r}, like a column of results")
        if not isinstance(value, str | int | float) or value != value:
            raise AssayError(f"{path}: {name}={value!r} of {network} is neither a number nor a word")
    for name, value in (("train_acc", train), ("test_acc", test)):
        if not isinstance(value, int | float) or not isfinite(value) or not 0 <= value <= 1:
            raise AssayError(f"{path}: {name}={value!r} of {network} is not between 0 and 1")
    return {"network": network, **levels, **dict(zip(RESULTS, (train, test, train - test), strict=True))}


def _level(value: Any) -> Any:
    """A level of a hyper-parameter; a list, such as the widths of the layers, becomes one word: 256-256."""
    return "-".join(map(str, value)) if isinstance(value, list) else value


def _shards(folder: Path) -> list[Path]:
    shards = sorted(folder.glob("*.tfrecord"))
    if not shards:
        raise AssayError(f"{folder} holds no .tfrecord files")
    return shards


def _read_data(folder: Path, source: str) -> Labelled:
    inputs: list[Array] = []
    labels: list[int] = []
    for path in _shards(folder):
        for offset, payload in read_records(path):
            try:
                example = parse_example(payload)
                picture, label = _tensor(example, "inputs"), _tensor(example, "output")
                if label.size != 1 or not np.issubdtype(label.dtype, np.integer):
                    raise AssayError(f"its output is {label.dtype} of shape {label.shape}, not one whole number")
                if inputs and picture.shape != inputs[0].shape:
                    raise AssayError(f"its inputs are {picture.shape}, those before are {inputs[0].shape}")
            except AssayError as error:
                raise AssayError(f"{path}, the record at byte {offset}: {error}") from error
            inputs.append(picture.astype(np.float32, copy=False))
            labels.append(int(label.item()))
    if not inputs:
        raise AssayError(f"{folder} holds no examples")
    stacked = np.stack(inputs)
    if stacked.ndim == 4:
        stacked = stacked.transpose(0, 3, 1, 2)
    return Labelled(stacked, np.array(labels), source)


def _tensor(example: dict[str, list[bytes] | Array], name: str) -> Array:
    feature = example.get(name)
    if not isinstance(feature, list) or len(feature) != 1:
        raise AssayError(f"it has no feature {name!r} that is one serialized tensor")
    return parse_tensor(feature[0])
