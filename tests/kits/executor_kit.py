"""Tasks for the executor. A new process imports this file, so that it imports little itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

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


def grows(streamed, kept, own):
    begin_stage("growing")
    if own == "one array":
        return len(np.ones(64 * 2**30, np.uint8))
    if own == "many":
        held = []
        while True:
            held.append(np.ones(2**26, np.uint8))
            time.sleep(0.01)
    if own == "children":
        grow = "import time; held = bytearray(b'1') * (300 * 2**20); time.sleep(3600)"
        for _ in range(4):
            subprocess.Popen([sys.executable, "-S", "-c", grow])
        time.sleep(3600)
    return own


def leaves_a_child(streamed, kept, own):
    """Start a process that leaves its session and its parent, and give its number."""
    mark = Path(f"{own}.pid")
    leave = "import os, time; os.fork() and os._exit(0); os.setsid(); "
    code = f"{leave}open({str(mark)!r}, 'w').write(str(os.getpid())); "
    subprocess.run([sys.executable, "-S", "-c", f"{code}time.sleep(3600)"], check=True)
    while not mark.exists() or not mark.read_text():
        time.sleep(0.01)
    if own.endswith(("hangs", "is closed")):
        begin_stage("hanging")
        time.sleep(3600)
    return own
