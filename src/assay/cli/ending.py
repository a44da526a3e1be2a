"""How a command ends: by one line at a signal, and in any case, whatever the user's code has left behind."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from assay.cli.terminal import INTERRUPTED, TERMINATED, err

_PATIENCE_S = 30.0  # for the block to put things in order after a signal
_FOR_THREADS_S = 10.0  # for threads of the user's to end after a command, such as one that sends results elsewhere


@contextmanager
def interruptible() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end the block as errors do, so that it puts things in order; then one line says so.

    A second signal changes nothing: the end is under way. A block that has not ended after half a minute, because code
    of the user's catches what ends programs, is ended all the same.
    """
    ended: list[int] = []
    deadlines: list[threading.Timer] = []

    def end(number: int, _: object) -> None:
        for other in (signal.SIGINT, signal.SIGTERM):
            signal.signal(other, signal.SIG_IGN)
        ended.append(number)
        deadlines.append(threading.Timer(_PATIENCE_S, _end_all, (number,)))
        deadlines[0].daemon = True
        deadlines[0].start()
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # a job in the background of a shell ignores SIGINT
            before[number] = signal.signal(number, end)
    try:
        yield
    except BaseException:  # typer makes an exit of an interrupt, and an import that is interrupted may raise anything
        if not ended:
            raise
    finally:
        for signal_number, handler in before.items() if not ended else ():
            signal.signal(signal_number, handler)
        for deadline in deadlines:
            deadline.cancel()
    if ended:
        _say_ended(ended[0])
        sys.exit(_code(ended[0]))


@contextmanager
def without_threads() -> Iterator[None]:
    """End the program with the block though threads that were started in it go on, which Python would wait for.

    They get a while to end, but none after a signal. Threads that Python does not wait for are left alone.
    """
    before = set(threading.enumerate())
    try:
        yield
    except SystemExit as exit_:
        _end_with(exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None), before)
        raise
    else:
        _end_with(0, before)


def _end_with(code: int, before: set[threading.Thread]) -> None:
    """End the program at once where threads that were not there before do not end by themselves."""
    limit = time.monotonic() + (0.0 if code in (INTERRUPTED, TERMINATED) else _FOR_THREADS_S)
    for thread in threading.enumerate():
        if thread not in before and not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0.0, limit - time.monotonic()))
            if thread.is_alive():
                if code not in (INTERRUPTED, TERMINATED):
                    with suppress(OSError):
                        err.print("assay: code of yours left a thread running, which is ended", markup=False)
                atexit._run_exitfuncs()
                _leave(code)


def _end_all(number: int) -> None:
    """End the program and everything that it has started, from another thread than the one that does not end."""
    from assay.runs.process_tree import end_below

    _say_ended(number)
    end_below(os.getpid())
    _leave(_code(number))


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # a pipe that nobody reads, or no stream at all
            stream.flush()
    os._exit(code)


def _code(number: int) -> int:
    return INTERRUPTED if number == signal.SIGINT else TERMINATED


def _say_ended(number: int) -> None:
    word = "interrupted" if number == signal.SIGINT else "terminated"
    with suppress(OSError):
        err.print(f"assay: {word}; what is done is kept, run it again to go on", markup=False)
