"""Features: what can be done with them in all their forms, and a store that keeps them between runs."""

from __future__ import annotations

import io
import json
import logging
import shutil
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.core.errors import first_line
from assay.core.fingerprint import fingerprint
from assay.core.folder import FileMissing, Folder

log = logging.getLogger(__name__)

_DAMAGE = (OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile)
PARTS = ("training", "validation", "test")


class FeatureStore:
    """Keeps the features of the three parts of a task, under the hash of everything they depend on.

    Runs that need the same features at the same time may each write them, and what they know about them: a file is
    named by its content, and the last one to be written, ``whole.json``, says which files belong together.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def read(self, key: str) -> dict[str, Features] | None:
        """Read the features kept under a key; None unless all parts are there and whole.

        The log names a file that is damaged.
        """
        if not self.folder.exists(f"features/{key}/whole.json"):
            return None
        features = {}
        try:
            files = json.loads(self.folder.read(f"features/{key}/whole.json"))
        except (FileMissing, ValueError):
            return None
        if not isinstance(files, dict) or not files.keys() >= set(PARTS):
            return None
        for part, file_name in files.items():
            name = f"features/{key}/{file_name}"
            try:
                with self.folder.open(name) as file:
                    features[part] = unpacked(file)
            except FileMissing:  # being made room for
                return None
            except _DAMAGE as error:
                log.warning(
                    "%s is damaged (%s): the features are computed anew", self.folder.path(name), first_line(error)
                )
                return None
        return features

    def write(self, key: str, features: dict[str, Features]) -> None:
        """Keep features under a key, of the three parts and others; the last file written marks them as complete."""
        files = {part: f"{part}-{fingerprint(_content(some))}" for part, some in features.items()}
        for part, some in features.items():
            self.folder.write(f"features/{key}/{files[part]}", _packed(some).getbuffer())
        self.folder.write(f"features/{key}/whole.json", json.dumps(files).encode())

    def forget(self) -> None:
        """Delete all features, on a local disk, to make room; learners stay."""
        for place in Path(self.folder.path("features")).glob("*/"):
            (place / "whole.json").unlink(missing_ok=True)  # first: without it nothing is read
            shutil.rmtree(place)


def features_hash(features: dict[str, Features]) -> str:
    """Hash the content of the features of all parts."""
    return fingerprint(*(_content(features[part]) for part in PARTS))


def rows(features: Features, chosen: Array) -> Features:
    """Take the features of the chosen instances."""
    if isinstance(features, list):
        return [features[i] for i in chosen]
    return features[chosen]


def joined(a: Features, b: Features) -> Features:
    """Join two sets of features, one after the other."""
    if count(b) == 0:
        return a
    if count(a) == 0:
        return b
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.csr_matrix(sparse.vstack([a, b]))
    return np.concatenate([np.asarray(a), np.asarray(b)])


def count(features: Features) -> int:
    """Count the instances."""
    return len(features) if isinstance(features, list) else int(features.shape[0])


def finite(features: Features) -> bool:
    """Whether features are free of NaN and infinity."""
    if isinstance(features, list):
        return all(bool(np.isfinite(f).all()) for f in features)
    return bool(np.isfinite(features.data if sparse.issparse(features) else features).all())


def dense(features: Features) -> list[Array]:
    """Turn features into dense arrays: one of all instances, or one of each where they differ in size."""
    if isinstance(features, list):
        return features
    matrix: Any = features
    return [matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)]


def _content(features: Any) -> Any:
    if isinstance(features, list):
        return [np.ascontiguousarray(f) for f in features]
    if sparse.issparse(features):
        return [features.data, features.indices, features.indptr, list(features.shape)]
    return np.ascontiguousarray(features)


def packed(features: Features) -> bytes:
    """Write features to bytes, as an npz archive."""
    return _packed(features).getvalue()


def _packed(features: Features) -> io.BytesIO:
    buffer = io.BytesIO()
    if isinstance(features, list):
        np.savez(buffer, list=np.array(len(features)), **{f"a{i}": f for i, f in enumerate(features)})
    elif sparse.issparse(features):
        matrix = sparse.csr_matrix(features)
        np.savez(buffer, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape))
    else:
        np.savez(buffer, matrix=np.asarray(features))
    return buffer


def unpacked(data: bytes | IO[bytes]) -> Features:
    """Read features from the bytes that `packed` wrote, or from a file of them."""
    with np.load(io.BytesIO(data) if isinstance(data, bytes) else data, allow_pickle=False) as archive:
        if "list" in archive.files:
            return [archive[f"a{i}"] for i in range(int(archive["list"]))]
        if "indptr" in archive.files:
            return sparse.csr_matrix(
                (archive["data"], archive["indices"], archive["indptr"]), shape=tuple(archive["shape"])
            )
        matrix: Array = archive["matrix"]
        return matrix
