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
from assay.networks.imported.keras import load_keras, read_json
from assay.stimuli.labelled import Labelled
from assay.stimuli.pictures import Array
from assay.stimuli.tfrecord import parse_example, parse_tensor, read_records
from assay.studies.corpus.corpus import RESULTS, Corpus
from assay.subject.subject import Subject


class PgdlCorpus(Corpus):
    """The networks of one task. The data are read when they are first asked for.

    Args:
        folder: The task's folder.
        table: One row per network; see `Corpus`.
    """

    def __init__(self, folder: Path, table: pd.DataFrame) -> None:
        self.folder, self.table, self.name = folder, table, folder.name

    def subject(self, network: str) -> Subject:
        """A network by its name, ``"model_N"``, with its trained weights; it gives what its last layer gives."""
        self.require(network)
        place = self.folder / network
        module = load_keras(place / "config.json", place / "weights.hdf5")
        return Subject(module, name=network, example=module.input_shape)

    @cached_property
    def train(self) -> Labelled:
        """What the networks were trained on."""
        return _read_data(self.folder / "dataset_1" / "train", f"{self.name}: train")

    @cached_property
    def test(self) -> Labelled:
        """What they were tested on."""
        return _read_data(self.folder / "dataset_1" / "test", f"{self.name}: test")


def load_pgdl(folder: str | Path) -> PgdlCorpus:
    """A task of the competition, or any folder in its format.

    Networks are in the order of their numbers. Pictures are shown as N×C×H×W, as they are in the files, unscaled;
    the files of a data set follow each other by name.
    """
    folder = Path(folder)
    path = folder / "model_configs.json"
    if not path.is_file():
        raise AssayError(f"{folder} is no PGDL task: it has no model_configs.json")
    described = read_json(path)
    if not described:
        raise AssayError(f"{path} describes no network")
    for key in described:
        if not key.isdecimal():
            raise AssayError(f"{path}: the network {key!r} has no number for a name")
    rows = [_row(key, described[key], path) for key in sorted(described, key=int)]
    for row in rows:
        if row.keys() != rows[0].keys():
            others = sorted(row.keys() ^ rows[0].keys())
            raise AssayError(f"{path}: {row['network']} and {rows[0]['network']} do not both have {', '.join(others)}")
        for name in ("config.json", "weights.hdf5"):
            if not (folder / row["network"] / name).is_file():
                raise AssayError(f"{folder / row['network'] / name} is missing, but {path.name} has the network")
    _shards(folder / "dataset_1" / "train")
    return PgdlCorpus(folder, pd.DataFrame(rows))


def _row(key: str, described: Any, path: Path) -> dict[str, Any]:
    network = f"model_{key}"
    try:
        levels = {str(name): _level(value["current_value"]) for name, value in described["hparams"].items()}
        train, test = (described["metrics"][name] for name in ("train_acc", "test_acc"))
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
    """A list, as of the widths of layers, becomes one word: 256-256."""
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
                given, label = _tensor(example, "inputs"), _tensor(example, "output")
                if label.size != 1 or not np.issubdtype(label.dtype, np.integer):
                    raise AssayError(f"its output is {label.dtype} of shape {label.shape}, not one whole number")
                if inputs and given.shape != inputs[0].shape:
                    raise AssayError(f"its inputs are {given.shape}, those before are {inputs[0].shape}")
            except AssayError as error:
                raise AssayError(f"{path}, the record at byte {offset}: {error}") from error
            inputs.append(given.astype(np.float32, copy=False))
            labels.append(int(label.item()))
    if not inputs:
        raise AssayError(f"{folder} holds no examples")
    stacked = np.stack(inputs)
    if stacked.ndim == 4:
        stacked = stacked.transpose(0, 3, 1, 2)
    return Labelled(stacked, np.array(labels), source)


def _tensor(example: dict[str, list[bytes] | Array], name: str) -> Array:
    found = example.get(name)
    if not isinstance(found, list) or len(found) != 1:
        raise AssayError(f"it has no feature {name!r} that is one serialized tensor")
    return parse_tensor(found[0])
