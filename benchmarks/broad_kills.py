"""Kill ``assay broad run`` at random moments, run it again, and compare with a run that nobody disturbed.

Each try is the command on a small plan whose system leaves a process behind; it is forked from a process that has
loaded the code and done nothing, or, with --anew, started as from a terminal. It is ended by SIGKILL, SIGINT or
SIGTERM at a random moment; then nothing of it may run any more. When one has come to its end, predictions and tables
must be those of the undisturbed run to the byte, and no temporary file may be left; then a new evaluation begins, until
the number of kills is reached. Prints a line for each evaluation, and all counts at the end; exit code 1 if one is bad.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml

from assay.runs.process_tree import adopt_orphans, descendants

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ENDS = {signal.SIGKILL: (-9,), signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15)}
PATIENCE_S = 20.0  # on a busy machine; on an idle one everything ends within a second
SYSTEM = '''
import subprocess
from assay.broad.systems.learners.guinea_pig import RandomProjections


class Leaves(RandomProjections):
    """Starts a process of its own session whenever it learns, and never ends it."""

    def __init__(self, units: tuple[int, ...] = (12, 10, 8), seed: int = 0) -> None:
        super().__init__(units, seed)

    def fit(self, X):
        subprocess.Popen(["sleep", "7777"], start_new_session=True)
        return super().fit(X)
'''
PLAN = {
    "folder": "run",
    "secret": "an open secret, for kills",
    "text": {"generated": {"count": 240, "restaurants": 20, "seed": 3}},
    "protocol": {"k": 2, "p": 0.6, "n": 60, "ratings": ["Overall"], "bootstrap": 100},
    "evaluators": {
        "text": {
            "extractor": {"module": "bag_of_words", "parameters": {"terms": 100}},
            "classifier": {"module": "topics", "parameters": {"grid": {"topics": [3]}}},
        }
    },
    "teams": [
        {
            "letter": "s",
            "name": "Leaving",
            "text": {
                "preprocessor": {"module": "bag_of_words", "parameters": {"terms": 100, "weights": "binary"}},
                "learner": "leaving_system:Leaves",
                "classifier": {"module": "linear_svr", "parameters": {"grid": {"C": [0.1]}}},
            },
        }
    ],
}


@dataclass
class Outcome:
    """What came of all kills.

    Args:
        kills: Kills by signal, of a command that was still under way.
        exits: How often each signal ended in each exit code.
        completed: Number of evaluations that came to their end.
        different: Evaluations whose results are not those of the undisturbed one.
        processes: Processes that were left after a kill.
        files: Temporary files that were left after an evaluation had come to its end.
        failures: Commands that failed by themselves, with the end of what they said.
        slowest_s: The longest time that something of a killed command went on.
    """

    kills: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    different: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing was left, nothing differs and nothing failed."""
        return not (self.different or self.processes or self.files or self.failures)


def write_plan(place: Path) -> Path:
    """Write the small plan and its system into a folder."""
    place.mkdir(parents=True)
    (place / "temporary").mkdir()
    (place / "leaving_system.py").write_text(SYSTEM)
    (place / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    return place


LAUNCHER = """
import atexit, json, os, signal, sys, traceback
import assay.broad.plan, assay.report.broad.report, assay.report.slides.broad
from assay.cli.main import main

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child:
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ["TMPDIR"] = order["temporary"]
        for number, flags, name in ((0, os.O_RDONLY, os.devnull), (1, os.O_WRONLY, os.devnull),
                                    (2, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, order["said"])):
            os.dup2(os.open(name, flags), number)
        sys.argv = ["assay", *order["words"]]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(code)
"""


class Command:
    """The command at work on the plan of a folder.

    Args:
        place: The folder.
        processes: Number of runs at a time.
        launcher: Process to fork the command from; None to start a new interpreter.
    """

    def __init__(self, place: Path, processes: int, launcher: subprocess.Popen[str] | None) -> None:
        words = ["broad", "run", str(place / "plan.yaml"), "--processes", str(processes), "--quiet", "--json"]
        if launcher is not None:
            order = {"words": words, "temporary": str(place / "temporary"), "said": str(place / "said")}
            print(json.dumps(order), file=launcher.stdin, flush=True)
            self.pid = int(launcher.stdout.readline())
            end = launcher.stdout.readline
        else:
            process = subprocess.Popen(
                [sys.executable, "-m", "assay.cli.main", *words],
                stdout=subprocess.DEVNULL, stderr=(place / "said").open("wb"), start_new_session=True,
                env=os.environ | {"TMPDIR": str(place / "temporary")},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )  # fmt: skip
            self.pid = process.pid
            end = process.wait
        self.code: int | None = None
        self.waiting = threading.Thread(target=lambda: setattr(self, "code", int(end())))
        self.waiting.start()

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for its end, and give its exit code; None if it is still at work."""
        self.waiting.join(seconds)
        return self.code


def results(place: Path) -> dict[str, bytes]:
    """Everything of an evaluation that must not depend on what disturbed it: predictions and tables, to the byte."""
    found = {p.name: p.read_bytes() for p in (place / "run" / "analysis").iterdir()}
    for file in sorted((place / "run" / "runs").rglob("*.npz")):
        with np.load(file) as archive:
            found[f"{file.parent.name}/{file.name}"] = archive["predictions"].tobytes()
    return found


def left_files(place: Path) -> list[str]:
    """Temporary files that are there after an evaluation has come to its end."""
    run = place / "run"
    left = [*run.rglob(".tmp-*"), *run.rglob("*.view"), *run.rglob(".lock"), *run.rglob("driver.json")]
    return [str(p.relative_to(place)) for p in [*left, *(place / "temporary").rglob("*")]]


def left_processes(outcome: Outcome, own: Sequence[int]) -> None:
    """Wait until nothing of a killed command runs any more, and note what still does after a while."""
    begin = time.monotonic()
    while (living := [p for p in descendants(os.getpid()) if p not in own]) and time.monotonic() - begin < PATIENCE_S:
        time.sleep(0.01)
    outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - begin)
    for pid in living:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:80]
        outcome.processes.append(f"{pid} {words}")
        os.kill(pid, signal.SIGKILL)


def kill_and_compare(folder: Path, kills: int, seed: int = 0, processes: int = 2, anew: bool = False) -> Outcome:
    """Kill an evaluation over and over, let it come to its end, and begin the next until there were enough kills."""
    chance = random.Random(seed)
    outcome = Outcome()
    adopt_orphans()  # what outlives its driver becomes a child of this process, and is found
    with ExitStack() as stack:
        launcher = None
        if not anew:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            launcher = stack.enter_context(subprocess.Popen([sys.executable, "-c", LAUNCHER], **pipes))
            stack.callback(launcher.kill)
        _kill(folder, kills, chance, processes, launcher, outcome)
    return outcome


def _kill(
    folder: Path, kills: int, chance: random.Random, processes: int, launcher: subprocess.Popen[str] | None,
    outcome: Outcome,
) -> None:  # fmt: skip
    own = [launcher.pid] if launcher is not None else []
    calm = write_plan(folder / "undisturbed")
    begin = time.monotonic()
    code = Command(calm, processes, launcher).wait()
    took = time.monotonic() - begin
    left_processes(outcome, own)
    if code:
        outcome.failures.append(f"undisturbed: exit code {code}: {(calm / 'said').read_text()[-500:]}")
        return
    outcome.files += left_files(calm)
    expected = results(calm)
    print(f"undisturbed: {took:.1f} s", flush=True)
    place: Path | None = None
    number = in_this = 0
    while outcome.kills.total() < kills or place is not None:
        if place is None:
            number += 1
            in_this = 0
            place = write_plan(folder / f"disturbed{number}")
        # Half of all kills fall anywhere, half where runs go on, after code is loaded and before the report.
        delay = chance.uniform(0, 1.05 * took) if chance.random() < 0.5 else chance.uniform(0.4 * took, 0.9 * took)
        sent = chance.choice(SIGNALS)
        enough = outcome.kills.total() >= kills or in_this >= 12
        begin = time.monotonic()
        command = Command(place, processes, launcher)
        code = command.wait(None if enough else delay)
        if code is None:
            os.kill(command.pid, sent)
            code = command.wait()
            outcome.kills[sent.name] += 1
            outcome.exits[f"{sent.name} {code}"] += 1
            in_this += 1
            print(f"  kill {outcome.kills.total()}: {sent.name} after {delay:.1f} s, exit code {code}", flush=True)
            if code not in ENDS[sent] and code != 0:
                outcome.failures.append(f"{sent.name} ended in {code}: {(place / 'said').read_text()[-300:]}")
            lines = (place / "said").read_text().splitlines()
            if code in (130, 143) and not (len(lines) == 1 and lines[0].startswith("assay: ")):
                outcome.failures.append(f"{sent.name} said {lines[-5:]} instead of one line")
        left_processes(outcome, own)
        if code in ENDS[signal.SIGKILL] + ENDS[signal.SIGINT] + ENDS[signal.SIGTERM]:
            continue
        if code:
            outcome.failures.append(f"evaluation {number}: exit code {code}: {(place / 'said').read_text()[-500:]}")
        else:
            outcome.completed += 1
            found = results(place)
            different = [k for k in {*expected, *found} if expected.get(k) != found.get(k)]
            outcome.different += [f"{number}/{name}" for name in sorted(different)]
            outcome.files += [f"{number}/{name}" for name in left_files(place)]
        if not in_this:  # the machine was busier before
            took = min(took, time.monotonic() - begin)
        print(f"evaluation {number}: {in_this} kills; of all, {len(outcome.different)} files differ", flush=True)
        place = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="start a new interpreter for each command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = kill_and_compare(Path(folder), options.kills, options.seed, options.processes, options.anew)
    print(f"{outcome.kills.total()} kills: {dict(outcome.kills)}; exit codes: {dict(outcome.exits)}")
    print(f"{outcome.completed} evaluations completed; results that differ: {outcome.different or 'none'}")
    print(f"processes left: {outcome.processes or 'none'}; the last ended {outcome.slowest_s:.2f} s after its driver")
    print(f"temporary files left: {outcome.files or 'none'}; failures: {outcome.failures or 'none'}")
    sys.exit(not outcome.good)


if __name__ == "__main__":
    main()
