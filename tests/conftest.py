"""Fixtures: the real data beside the project, and what the system must give; nothing here depends on time."""

from __future__ import annotations

import compileall
import logging
import os
import random
import shutil
import warnings
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits

from page_kit import BUSY_MS

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
KITS = Path(__file__).parent / "kits"
# Hostile code is never imported here, not even to be looked through for examples.
collect_ignore = [f"broad/attacks/{name}.py" for name in ("hostile", "hostile_channels", "patches_at_import")]

# How long an example takes says how busy the machine is, not whether the code is right. Equal code draws equal
# examples, so that a red suite is news of the change; `--hypothesis-profile=explore` draws new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("assay", settings.get_profile("explore"), derandomize=True, max_examples=30)
settings.load_profile("assay")

# Ray gives up on its own processes after 30 or 60 seconds, which a busy machine may need to start them, and runs tasks
# at a niceness of 15, at which one that is busy gives them next to nothing.
BUSY_S = str(BUSY_MS // 1000)
os.environ.update(
    RAY_agent_register_timeout_ms=str(BUSY_MS),
    RAY_gcs_server_port_wait_time_s=BUSY_S,
    RAY_health_check_timeout_ms=str(BUSY_MS),
    RAY_worker_register_timeout_seconds=BUSY_S,
    RAY_worker_niceness="0",
)
# Tests start hundreds of processes. Where bytecode is not to be written (PYTHONDONTWRITEBYTECODE), as in many
# containers, each would compile by itself what it imports of the project.
compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)
SLOW = ("reproduction", "ray", "kill", "slides", "browser", "hf", "slow")


MARKED_BY_FIXTURE = {"browser": "browser", "cluster": "ray"}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and put slow files first, so that processes end at about the same time."""
    for item in items:
        for fixture in MARKED_BY_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKED_BY_FIXTURE[fixture])
    ranks = {item.path: len(SLOW) for item in items}
    for item in items:
        held = [SLOW.index(mark.name) for mark in item.iter_markers() if mark.name in SLOW]
        ranks[item.path] = min(ranks[item.path], *held, len(SLOW))
    items.sort(key=lambda item: ranks[item.path])
    if any("broad" in item.path.parts or "broad" in item.path.stem for item in items):
        load_for_all_processes()


def load_for_all_processes() -> None:
    """Start the server that processes are forked from with what the broad evaluation needs.

    It loads once, when the first process is asked for, what that process was for. A driver has one purpose; the tests
    have many, and each process of an evaluation would load its code by itself.
    """
    from assay.broad.run.sandbox import PRELOAD

    forkserver.set_forkserver_preload(list(PRELOAD))
    forkserver.ensure_running()


@pytest.hookimpl(tryfirst=True)  # before any fixture is made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start each test from the same random numbers, so that the weights it draws do not depend on the tests before."""
    random.seed(0)
    torch.manual_seed(0)


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


@pytest.fixture(autouse=True)
def same_log_level():
    """Commands that a test gives in this process log warnings only; other tests read what is logged."""
    logger = logging.getLogger("assay")
    before = logger.level
    yield
    logger.setLevel(before)


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
            executable_path=chromium, args=[*quiet, "--disable-sync", "--no-first-run"], timeout=BUSY_MS
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two processors on this machine, whose workers can import the kits of the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        from assay.runs.ray_jobs import connect

        workers = {"env_vars": {"PYTHONPATH": str(KITS)}}
        connect("local", num_cpus=2, runtime_env=workers)
        yield
        ray.shutdown()
