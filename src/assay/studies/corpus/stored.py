"""The files of a corpus: how it was made, and for each network that is trained its weights, losses and result."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import reading
from assay.core.records import record_of

log = logging.getLogger(__name__)
MANIFEST = "corpus.json"
_FOLDER = "networks"
_FILES = {"weights": ".safetensors", "initial": ".initial.safetensors", "history": ".history.csv"}
_SAME_PLAN = "delete it and train again by the same plan; networks that are trained are kept"


@dataclass(frozen=True)
class CorpusManifest:
    """How a corpus was made: a hash of what it was made of, and the plan with its file."""

    made_of: str
    file: str
    plan: dict[str, Any]

    @classmethod
    def read(cls, folder: Folder) -> CorpusManifest:
        """Read that of a corpus; a damaged file is an error."""
        data = folder.read_json(MANIFEST, _SAME_PLAN)
        with reading(folder.path(MANIFEST), remedy=_SAME_PLAN):
            return record_of(cls, data)


@dataclass(frozen=True)
class _Result:
    """The result of a training, beside the hyper-parameters of the network."""

    network: str
    status: str
    epochs: int
    train_accuracy: float | None
    test_accuracy: float | None
    gap: float | None
    trained_accuracy: float | None = None
    trained_loss: float | None = None
    weights_sha256: str = ""
    initial_sha256: str = ""
    history_sha256: str = ""


class StoredNetworks:
    """The trained networks in the folder of a corpus.

    Args:
        folder: The folder of the corpus.
        combinations: Names of all networks of the plan, and the hyper-parameters of each.
    """

    def __init__(self, folder: Folder, combinations: Mapping[str, Mapping[str, Any]]) -> None:
        self.folder = folder
        self.combinations = combinations

    @cached_property
    def _as_written(self) -> dict[str, dict[str, Any]]:
        """The hyper-parameters as a file of JSON gives them back."""
        plain: dict[str, dict[str, Any]] = json.loads(json.dumps({n: dict(c) for n, c in self.combinations.items()}))
        return plain

    def rows(self) -> list[dict[str, Any]]:
        """The result of every network that is trained; a damaged one is an error."""
        there = set(self.folder.names(_FOLDER, ".json"))
        return [self.row(name) for name in self.combinations if self._record(name) in there]

    def whole_rows(self) -> dict[str, dict[str, Any]]:
        """The results of networks that are trained and whole, by name; a warning names each that is damaged."""
        rows, there = {}, set(self.folder.names(_FOLDER, ".json"))
        for name in self.combinations:
            if self._record(name) in there:
                try:
                    row = self.row(name)
                    if row["status"] != "diverged":
                        self._require_whole(name, row)
                    rows[name] = row
                except AssayError as error:
                    log.warning("%s is trained anew: %s", name, error)
        return rows

    def row(self, name: str) -> dict[str, Any]:
        """The result of one network, with its hyper-parameters."""
        path = self.folder.path(self._record(name))
        row = self.folder.read_json(self._record(name), self._remedy(name))
        with reading(path, remedy=self._remedy(name)):
            record_of(_Result, row)
            expected = {"network": name, **self._as_written[name]}
            if {key: row[key] for key in expected} != expected:
                raise ValueError(f"it is not that of {name}")
        return dict(row)

    def weights(self, name: str) -> Path:
        """The file of a network's weights, which is whole."""
        self._require_whole(name, self.row(name))
        return Path(self.folder.path(self._file(name, "weights")))

    def initial_weights(self, name: str) -> Path | None:
        """The file of a network's weights before training, which is whole; None in corpora that did not keep them."""
        data = self._kept(name, "initial", self.row(name))
        return None if data is None else Path(self.folder.path(self._file(name, "initial")))

    def history(self, name: str) -> bytes | None:
        """The losses of a network's training as CSV; None in corpora that did not keep them."""
        return self._kept(name, "history", self.row(name))

    def write(self, row: dict[str, Any], weights: bytes | None, initial: bytes, history: bytes) -> None:
        """Write the files of a network, without weights where it has none, and then its result: it is complete."""
        name = row["network"]
        for kind, data in (("initial", initial), ("history", history), ("weights", weights)):
            if data is not None:
                self.folder.write(self._file(name, kind), data)
                row = {**row, f"{kind}_sha256": hashlib.sha256(data).hexdigest()}
        self.folder.write(self._record(name), json.dumps(row).encode())

    def _require_whole(self, name: str, row: Mapping[str, Any]) -> None:
        """Raise an error unless the files of a network are those that were written with its result."""
        for kind in _FILES:
            self._kept(name, kind, row)

    def _kept(self, name: str, kind: str, row: Mapping[str, Any]) -> bytes | None:
        """A file of a network; an error where it is damaged or lost, None where it was never written."""
        file, digest = self._file(name, kind), row.get(f"{kind}_sha256")
        if digest is None and kind != "weights":  # corpora of before have none
            return None
        path = self.folder.path(file)
        if not self.folder.exists(file):
            raise AssayError(f"{path} is not there: {self._remedy(name)}")
        data = self.folder.read(file)
        if digest not in (None, hashlib.sha256(data).hexdigest()):
            raise AssayError(f"{path} is damaged (it is not as it was written): {self._remedy(name)}")
        return data

    def _remedy(self, name: str) -> str:
        return f"train again, which makes {name} anew"

    def _record(self, name: str) -> str:
        return f"{_FOLDER}/{name}.json"

    def _file(self, name: str, kind: str) -> str:
        return f"{_FOLDER}/{name}{_FILES[kind]}"
