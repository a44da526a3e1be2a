"""Fixtures: the real data beside the project, and what the system must give."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"


def need(present: bool, what: str) -> None:
    """Skip a test whose outside part is missing; fail it where everything is required."""
    if not present:
        if os.environ.get("ASSAY_REQUIRE_ALL") == "1":
            pytest.fail(f"{what} is missing, and ASSAY_REQUIRE_ALL=1 requires it")
        pytest.skip(f"{what} is missing")


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
