"""Features kept between runs of a task, by the hash of everything they depend on."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.core.fingerprint import fingerprint
from assay.core.folder import Folder

PARTS = ("training", "validation", "test")


class FeatureStore:
    """Features of the three parts of a task under one key."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def read(self, key: str) -> dict[str, Features] | None:
        """What is kept under a key; None if it is not all there."""
        if not self.folder.exists(f"features/{key}/whole.json"):
            return None
        try:
            return {part: unpacked(self.folder.read(f"features/{key}/{part}")) for part in PARTS}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # damaged, or being made room for
            return None

    def write(self, key: str, features: dict[str, Features]) -> None:
        """Keep them; the last file says that all are there."""
        for part in PARTS:
            self.folder.write(f"features/{key}/{part}", packed(features[part]))
        self.folder.write(f"features/{key}/whole.json", json.dumps(sorted(features)).encode())

    def forget(self) -> None:
        """Make room, on a local disk; learners stay."""
        for kept in Path(self.folder.path("features")).glob("*/"):
            (kept / "whole.json").unlink(missing_ok=True)  # first: without it nothing is read
            shutil.rmtree(kept)


def features_hash(features: dict[str, Features]) -> str:
    """Content of the features of all parts."""
    return fingerprint(*(_content(features[part]) for part in PARTS))


def rows(features: Features, chosen: Array) -> Features:
    """Some of the instances."""
    if isinstance(features, list):
        return [features[i] for i in chosen]
    return features[chosen]


def joined(a: Features, b: Features) -> Features:
    """The instances of both, one set after the other."""
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
    """How many instances."""
    return len(features) if isinstance(features, list) else int(features.shape[0])


def finite(features: Features) -> bool:
    """No NaN and no infinity."""
    if isinstance(features, list):
        return all(bool(np.isfinite(f).all()) for f in features)
    return bool(np.isfinite(features.data if sparse.issparse(features) else features).all())


def dense(features: Features) -> list[Array]:
    """As arrays: one of all instances, or one of each where they differ in size."""
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
    """As bytes."""
    held = io.BytesIO()
    if isinstance(features, list):
        np.savez(held, list=np.array(len(features)), **{f"a{i}": f for i, f in enumerate(features)})
    elif sparse.issparse(features):
        matrix = sparse.csr_matrix(features)
        np.savez(held, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape))
    else:
        np.savez(held, matrix=np.asarray(features))
    return held.getvalue()


def unpacked(data: bytes) -> Features:
    """What `packed` packed."""
    with np.load(io.BytesIO(data), allow_pickle=False) as kept:
        if "list" in kept.files:
            return [kept[f"a{i}"] for i in range(int(kept["list"]))]
        if "indptr" in kept.files:
            return sparse.csr_matrix((kept["data"], kept["indices"], kept["indptr"]), shape=tuple(kept["shape"]))
        matrix: Array = kept["matrix"]
        return matrix
