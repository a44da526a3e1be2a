"""What a worker process does: one job after another, saying which stage of a job begins and what came of it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from assay.core.errors import first_line
from assay.core.progress import listening_to_stages
from assay.runs.process_tree import adopt_orphans, end_with_parent

NOT_BEGUN, BEGUN = None, ""  # stages of a job before the first that it names itself


@dataclass(frozen=True)
class _Pickled:
    """Something that jobs share and that could not be loaded."""

    data: bytes


def serve(connection: Connection, fresh: bool, enter: Callable[[], None] | None) -> None:
    """Do jobs until the parent is gone.

    Args:
        connection: Where jobs come from, and where stages and results go.
        fresh: Whether this process does only one job; then it also keeps together what the job starts.
        enter: Called before anything is received; None for nothing.
    """
    end_with_parent()
    threading.Thread(target=_end_with_driver, daemon=True).start()
    if fresh:
        adopt_orphans()
    # Ctrl-C in a terminal reaches every process; the parent decides. Not ignored, which a child's child would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    if enter is not None:
        enter()
    streamed: Any = None
    kept: dict[int, Any] = {}
    while True:
        try:
            body, new_streamed, kept_id, new_kept = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(("stage", BEGUN))
        try:
            if new_streamed is not None:
                streamed = _Pickled(new_streamed)  # until it is loaded: the next job that shares it tries again
                streamed = pickle.loads(new_streamed)
            if new_kept is not None:
                kept[kept_id] = _Pickled(new_kept)
                kept[kept_id] = pickle.loads(new_kept)
            task, own = pickle.loads(body)
            streamed, shared = _loaded(streamed), _loaded(kept.get(kept_id))
            with listening_to_stages(lambda what: connection.send(("stage", what))):
                answer = ("done", task(streamed, shared, own))
        except BaseException as error:  # what a job raises, even by sys.exit, ends that job alone
            kind = "no memory" if isinstance(error, MemoryError) else "failed"
            answer = (kind, f"{type(error).__name__}: {first_line(error)}")
        connection.send(answer)


def _loaded(thing: Any) -> Any:
    """What jobs share; an error, the same as for the first of them, where it could not be loaded."""
    return pickle.loads(thing.data) if isinstance(thing, _Pickled) else thing


def _end_with_driver() -> None:
    """Nobody waits for this job any more: another process may be doing it already."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
