"""Run the fuzzers: ``python tests/fuzz/run.py [files plans networks] --seed 1 --cases 2000``; one with ``--case``."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [name for name in ("files", "plans", "networks") if (HERE / f"{name}.py").exists()]

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "kits")]
    from fuzz import harness

    def load(name: str) -> harness.Fuzzer:
        module = importlib.import_module(f"fuzz.{name.removesuffix('-quick')}")
        return module.QUICK if name.endswith("-quick") else module

    sys.exit(harness.main(NAMES, load, sys.argv[1:]))
