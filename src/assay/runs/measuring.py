"""Measuring one cell: a measure asked of a subject, from a known random state, timed, and written."""

from __future__ import annotations

import json
import logging
import time
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay.core.determinism import Arithmetic, seeded
from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.measures.base import Measure
from assay.runs.cells import CellInfo, CellKey, CellTables, require_rows, write_cell
from assay.runs.manifest import now
from assay.subject.subject import Subject

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CellOrder:
    """What a worker needs to know of a cell besides its subject and measure."""

    folder: Folder
    key: CellKey
    seed: int
    arithmetic: Arithmetic | None


def do_cell(subject: Subject, measure: Measure, cell: CellOrder) -> CellInfo:
    """Do one cell with the arithmetic of the process that asked for it, wherever this one is."""
    with (cell.arithmetic or Arithmetic.here()).used():  # the same arithmetic as the caller's gives the same bits
        return run_cell(cell.folder, cell.key, subject, measure, cell.seed)


def run_cell(folder: Folder, key: CellKey, subject: Subject, measure: Measure, seed: int) -> CellInfo:
    """Do one cell and write it; an exception of the measure becomes a failed cell."""
    started, begin = now(), time.perf_counter()
    tables, error, trace = None, None, None
    with peak_memory(subject.device) as peak, seeded(seed, subject.device), Arithmetic.here().used():
        try:
            measured = measure.measured(subject)
            require_rows(measured.table)
            if measure.value and measure.value not in measured.table:
                columns = ", ".join(map(repr, measured.table.columns))
                sentence = "%s × %s: the measure says value=%r, and its table has only the columns %s"
                log.warning(sentence, key.subject, key.measure, measure.value, columns)
            tables = CellTables.of(measured.table, measure.summary(measured.table), measure.evidence(measured))
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # a measure may even call sys.exit: that is no reason to end the run
            error = first_line(e) if isinstance(e, AssayError) else f"{type(e).__name__}: {first_line(e)}"
            trace = traceback.format_exc()
    info = CellInfo(
        key.subject, key.measure, key.fingerprint, "failed" if tables is None else "done", started,
        round(time.perf_counter() - begin, 3), peak["host"], peak["gpu"], error, trace,
    )  # fmt: skip
    write_cell(folder, key, info, tables, b"" if tables is None else _answers.of(subject))
    if tables is not None:
        folder.remove(key.failed)
    return info


class _Answers:
    """The answer to the probe of the last subject that was measured: its cells follow each other."""

    def __init__(self) -> None:
        self.last: weakref.WeakKeyDictionary[Subject, tuple[Any, bytes]] = weakref.WeakKeyDictionary()

    def of(self, subject: Subject) -> bytes:
        stamp = subject.network.stamp()
        before, answer = self.last.get(subject, (None, b""))
        if before != stamp or not answer:
            answer = _probe(subject)
            self.last.clear()
            self.last[subject] = stamp, answer
        return answer


_answers = _Answers()


def _probe(subject: Subject) -> bytes:
    try:
        answer = subject.probe()
    except Exception:  # it answered the measure, but cannot take an input of the probe's making: nothing to keep
        return b""
    return b"" if answer is None else json.dumps(answer.to_json()).encode()


@contextmanager
def peak_memory(device: torch.device) -> Iterator[dict[str, int]]:
    """Peak resident memory of this process, and of the GPU's allocations, inside the block."""
    peak = {"host": 0, "gpu": 0}
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    with suppress(OSError):
        reset.write_text("5")  # Linux: start the high-water mark anew
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    try:
        yield peak
    finally:
        if status.exists():
            for line in status.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak["host"] = int(line.split()[1]) * 1024
        if device.type == "cuda":
            peak["gpu"] = torch.cuda.max_memory_allocated(device)
