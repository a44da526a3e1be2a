"""A folder for what an evaluation writes and nobody reads afterwards; that of a driver that was killed is removed."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from assay.broad.run.results import Results, as_json
from assay.core.folder import alive

_PREFIX = "assay-"
_NOTE = "work/driver.json"


def make_scratch(results: Results) -> Path:
    """Make the one folder for temporary files of this process, and remove that of the last driver if it was killed.

    The evaluation's folder holds a note of the place until this process ends. For one who holds the folder's lock.
    """
    _remove_noted(results)
    place = _place(os.getpid())
    note = {"machine": socket.gethostname(), "process": os.getpid(), "scratch": str(place)}
    results.folder.write(_NOTE, as_json(note))
    place.mkdir(parents=True, exist_ok=True)
    atexit.register(_remove, results, place, os.getpid())
    process: Any = multiprocessing.current_process()
    process._config.setdefault("tempdir", str(place))  # of sockets by which processes are started
    return place


@cache
def _place(pid: int) -> Path:
    """The place of that folder, known before it is made."""
    return Path(tempfile.gettempdir()) / f"{_PREFIX}{pid}-{os.urandom(4).hex()}"


def _remove(results: Results, place: Path, pid: int) -> None:
    """Remove the folder and the note of it, if this process made them and is no child of the one that did."""
    if os.getpid() == pid:
        shutil.rmtree(place, ignore_errors=True)
        results.folder.remove(_NOTE)


def _remove_noted(results: Results) -> None:
    """Remove the folder that a killed driver noted, if it is of this machine and looks like one of ours."""
    if not results.folder.exists(_NOTE):
        return
    noted = results.folder.read_json(_NOTE)
    place = Path(str(noted.get("scratch", "")))
    here = noted.get("machine") == socket.gethostname() and place.name.startswith(_PREFIX)
    if here and not alive(int(noted.get("process", 0))):
        shutil.rmtree(place, ignore_errors=True)
