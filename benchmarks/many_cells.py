"""What a cell costs besides its measure: 100 subjects × 100 measures, each of a few microseconds.

    python benchmarks/many_cells.py [--subjects 100] [--measures 100]

Prints, per cell, the time of the measure alone, of a run that does every cell, and of a run that finds every cell in
the store; the memory that the process gained between the first tenth of the subjects and the last; and the seconds of
the report.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import nn

from assay import Measure, Subject, evaluate
from assay.report import write_report


@dataclass(frozen=True)
class Mean(Measure):
    """Mean response to ones; as little as a measure can do."""

    scale: float = 1.0
    name: ClassVar[str] = "mean_response"
    value: ClassVar[str] = "value"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        responses = subject(torch.full((1, 4), self.scale))
        return pd.DataFrame({"layer": ["output"], "value": [float(responses.mean())]})


def subjects(count: int, memory: list[int]) -> Iterator[Subject]:
    for i in range(count):
        torch.manual_seed(i)
        yield Subject(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), f"mlp{i}", example=(4,))
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--subjects", type=int, default=100)
    parser.add_argument("--measures", type=int, default=100)
    parser.add_argument("--no-report", action="store_true")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    cells = asked.subjects * asked.measures
    measures = {f"m{i}": Mean(float(i)) for i in range(asked.measures)}
    alone = time.perf_counter()
    for subject in subjects(min(asked.subjects, 10), []):
        for measure in measures.values():
            measure(subject)
    alone = (time.perf_counter() - alone) / (min(asked.subjects, 10) * asked.measures)
    print(f"measure alone      {alone * 1e3:6.2f} ms a cell")
    with tempfile.TemporaryDirectory() as folder:
        for what in ("done", "found in the store"):
            memory: list[int] = []
            begin = time.perf_counter()
            run = evaluate(subjects(asked.subjects, memory), measures, folder)
            seconds = time.perf_counter() - begin
            grown = (memory[-1] - memory[len(memory) // 10]) * (1 if sys.platform == "darwin" else 1024)
            print(
                f"{what:18} {seconds / cells * 1e3:6.2f} ms a cell, "
                f"{(seconds / cells - (alone if what == 'done' else 0)) * 1e3:.2f} ms besides the measure, "
                f"memory grew by {grown / 2**20:.1f} MiB"
            )
            assert run.done == cells
        if not asked.no_report:
            begin = time.perf_counter()
            write_report(run)
            print(f"report             {time.perf_counter() - begin:6.1f} s")


if __name__ == "__main__":
    main()
