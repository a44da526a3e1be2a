"""What a worker process does: one job after another, saying which stage of a job begins and what came of it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from assay.core.errors import first_line
from assay.core.progress import listening_to_stages
from assay.runs.process_tree import adopt_orphans, end_with_parent
from assay.runs.sharing import Receiver

NOT_BEGUN, BEGUN = None, ""  # stages of a job before the first that it names itself


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
    receiver = Receiver(pickle.loads)
    while True:
        try:
            body, sent = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(("stage", BEGUN))
        try:
            streamed, kept = receiver.shared(sent)
            task, own = pickle.loads(body)
            with listening_to_stages(lambda what: connection.send(("stage", what))):
                answer = ("done", task(streamed, kept, own))
        except BaseException as error:  # what a job raises, even by sys.exit, ends that job alone
            kind = "no memory" if isinstance(error, MemoryError) else "failed"
            answer = (kind, f"{type(error).__name__}: {first_line(error)}")
        connection.send(answer)


def _end_with_driver() -> None:
    """Nobody waits for this job any more: another process may be doing it already."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
