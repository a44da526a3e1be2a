"""What it costs to begin: CPU seconds of ``import assay``, of ``assay --help``, and of Python itself.

    python benchmarks/startup.py [--rounds 5]

Targets: ``import assay`` below 0.5 s, ``assay --help`` below 0.7 s. Torch, which is loaded when it is first used, is
printed beside them.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import assay": [sys.executable, "-c", "import assay"],
    "assay --help": [str(Path(sys.executable).with_name("assay")), "--help"],
    "import torch": [sys.executable, "-c", "import torch"],
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name, command in COMMANDS.items():
        best = min(cpu_seconds(command) for _ in range(rounds))
        print(f"{name:14} {best:5.2f} s of CPU")


if __name__ == "__main__":
    main()
