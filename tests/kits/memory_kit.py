"""How much memory a piece of code takes at its peak, seen in a new process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# What is let go goes back to the system at once: what the allocator keeps depends on chance, and in a process that has
# done other things on what those left.
RETURNED = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(2**16)}

PEAK = r"""
import json, re, sys

def peak():  # bytes; not ru_maxrss, which begins with that of the process that started this one
    return int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) * 1024
"""


def told_by(code: str, *arguments: object) -> Any:
    """The JSON that `code` prints in a new process, in which `peak()` says how much memory it has held at once."""
    status = Path("/proc/self/status")
    if not status.exists() or "VmHWM:" not in status.read_text():
        pytest.skip("this system does not tell its peak memory")
    command = [sys.executable, "-c", PEAK + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **RETURNED})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
