"""The page of the study of straightness says what its tables say, changes from the pixels of what is shown included."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "reproductions/perceptual-straightness-2022"
TABLES = FOLDER / "tables"
CALLED = {
    "ResNet-4b on CIFAR-10, standard": "ResNet-4b, standard",
    "VOne, no noise (simple cells: 69.0°)": "VOne",
    "nothing, untrained": "untrained",
    "nothing (standard)": "standard",
}

pytestmark = pytest.mark.reproduction


def _rows() -> dict[str, list[str]]:
    """The cells of every row of the page's tables, by the first cell."""
    lines = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {CALLED.get(row[0], row[0]): row for row in cells}


def _said(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d", cell.replace("−", "-"))]


def _rounded(row: pd.Series, *columns: str) -> list[float]:
    return pytest.approx([row[column] for column in columns], abs=0.0501)


def test_networks_that_resize_the_frames_are_compared_with_what_they_are_shown():
    rows = _rows()
    table = pd.read_csv(TABLES / "fig2_families.csv")
    at_full_size = table.loc[table["network"] == "periphery", "own_pixels"].item()
    for _, row in table.iterrows():
        _, curvature, change, own, _ = rows[row["network"]]
        assert _said(curvature) == _rounded(row, "mean", "low", "high")
        assert _said(change) == _rounded(row, "change_mean", "change_low", "change_high")
        resized = abs(row["own_pixels"] - at_full_size) > 0.01
        assert _said(own) == (_rounded(row, "from_own_mean", "from_own_low", "from_own_high") if resized else [])
    assert table.set_index("network").loc["ResNet-4b, PGD", "from_own_low"] < 0  # it straightens nothing it is shown


def test_robust_networks_are_compared_with_pixels_too():
    rows = _rows()
    table = pd.read_csv(TABLES / "fig3_output.csv")
    for size, column in ((32, 7), (224, 8)):
        for _, row in table[(table["size"] == size) & (table["family"] != "pixels")].iterrows():
            cells = rows[row["family"]]
            assert _said(cells[column]) == _rounded(row, "change_mean", "change_low", "change_high")
            if size == 32:
                assert _said(cells[5]) == _rounded(row, "mean", "low", "high")
