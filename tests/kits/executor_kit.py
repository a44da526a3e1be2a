"""Tasks for the executor. A new process imports this file, so that it imports little itself."""

from __future__ import annotations

import os
import signal
import time

from assay.core.progress import begin_stage


def together(streamed, kept, own):
    return (streamed, kept, own, os.getpid())


def dies(streamed, kept, own):
    if own == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return own


def hangs(streamed, kept, own):
    begin_stage("fitting")
    if own == 1:
        time.sleep(3600)
    return own


def raises(streamed, kept, own):
    raise RuntimeError("no good")


def leaves(streamed, kept, own):
    if own == 1:
        raise SystemExit(3)
    return own
