"""The real command line, each command in a process of its own, without importing torch for each.

One process imports everything, reads the source of all measures and runs nothing; each command is forked from it, with
its own folder, environment and output. What a user's terminal adds to that, the installed script, has a test of its own
in test_cli.py.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

KITS = Path(__file__).parent
SERVER = """
import atexit, json, os, signal, sys, traceback
sys.path[0] = os.path.dirname(sys.executable)  # the folder of the installed script, not the one in which it is run
import torch._dynamo, assay, assay.broad, assay.plans.plan, assay.report, assay.studies, assay.training
from assay.cli.main import main
from assay.core.source_code import source_fingerprint
import disk_kit

for kind in assay.Measure.known().values():
    source_fingerprint(kind.__module__)  # kept while no file changes: else each command would read them all

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(order["out"], os.O_WRONLY), 1)
    os.dup2(os.open(order["err"], os.O_WRONLY), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    sys.argv = ["assay", *order["words"]]
    code = 1
    try:
        if order["disk"]:
            name, *settings = order["disk"]
            getattr(disk_kit, name)(*settings)
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to take down what was imported would take seconds
"""


@cache
def _server() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(KITS)}
    command = [sys.executable, "-c", SERVER]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd="/"
    )
    atexit.register(server.communicate)
    return server


def assay(
    *words: object, cwd: Path | str | None = None, disk: Sequence[object] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``assay`` with these words, on a disk of `disk_kit`, and return how it ended and what it said."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        order = {
            "words": [str(word) for word in words],
            "folder": str(cwd or Path.cwd()),
            "environment": {**os.environ, "PYTHONPATH": str(KITS), **environment},
            "out": out.name,
            "err": err.name,
            "disk": disk,
        }
        print(json.dumps(order), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(["assay", *order["words"]], code, out.read(), err.read())
