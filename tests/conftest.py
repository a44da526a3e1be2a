"""Fixtures: the real data beside the project, and what the system must give."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"


def need(present: bool, what: str) -> None:
    """Skip a test whose outside part is missing; fail it where everything is required."""
    if not present:
        if os.environ.get("ASSAY_REQUIRE_ALL") == "1":
            pytest.fail(f"{what} is missing, and ASSAY_REQUIRE_ALL=1 requires it")
        pytest.skip(f"{what} is missing")


def write_digits(path: Path, enlarge: int = 1) -> None:
    """scikit-learn's digits as labelled data: 1,200 to train on, the others to test."""
    digits = load_digits()
    pictures = (digits.images * (255 / 16)).astype(np.uint8).repeat(enlarge, 1).repeat(enlarge, 2)
    parts = {"train": slice(0, 1200), "test": slice(1200, None)}
    images = {f"{split}_images": pictures[rows] for split, rows in parts.items()}
    np.savez(path, **images, **{f"{split}_labels": digits.target[rows] for split, rows in parts.items()})


@pytest.fixture(scope="session")
def shared_data() -> Path:
    need(SHARED.is_dir(), "the folder ../shared/data with real data")
    return SHARED.resolve()


@pytest.fixture(scope="session")
def chromium() -> str:
    path = shutil.which("chromium")
    need(path is not None, "the browser chromium")
    assert path is not None
    return path


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        started = playwright.chromium.launch(
            executable_path=chromium, args=[*quiet, "--disable-sync", "--no-first-run"], timeout=300_000
        )
        yield started
        started.close()
