"""Kill assay's commands at random moments, run them again, and compare with runs that nobody disturbed.

The commands are ``assay run``, ``assay corpus train`` and ``assay broad run`` (whose system leaves a process behind),
each also with --ray, on small plans (killed_commands.py). A try is forked from a process that has loaded the code
and done nothing, or, with --anew, started as from a terminal. It is ended by SIGKILL, SIGINT or SIGTERM at a random
moment; then nothing of it may run any more. When one has come to its end, its tables must be those of the undisturbed
run to the byte, and no temporary file may be left, also none of Ray; then a new run begins, until the number of kills
is reached. Prints a line for each run, and all counts at the end; exit code 1 if one is bad.
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
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from killed_commands import COMMANDS, Killed

from assay.runs.process_tree import adopt_orphans, descendants

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ENDS = {signal.SIGKILL: (-9,), signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15)}
PATIENCE_S = 20.0  # on a busy machine; on an idle one everything ends within a second


@dataclass
class Outcome:
    """What came of all kills.

    Args:
        kills: Kills by signal, of a command that was still under way.
        exits: How often each signal ended in each exit code.
        completed: Number of runs that came to their end.
        different: Runs whose results are not those of the undisturbed one.
        processes: Processes that were left after a kill.
        files: Temporary files that were left after a run had come to its end.
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


LAUNCHER = """
import atexit, importlib, json, os, signal, sys, traceback
from assay.cli.main import main

for name in sys.argv[1:]:
    importlib.import_module(name)

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
    """A command at work on the plan of a folder.

    Args:
        killed: The command.
        place: The folder.
        processes: Number of runs at a time.
        launcher: Process to fork the command from; None to start a new interpreter.
    """

    def __init__(self, killed: Killed, place: Path, processes: int, launcher: subprocess.Popen[str] | None) -> None:
        words = [*killed.words, str(place / "plan.yaml"), "--quiet", "--json"]
        if killed.processes:
            words += ["--processes", str(processes)]
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


def left_files(place: Path) -> list[str]:
    """Temporary files that are there after a run has come to its end."""
    run = place / "run"
    patterns = (".tmp-*", ".assay-*", "*.view", "*.training", ".lock", "driver.json")
    left = [file for pattern in patterns for file in run.rglob(pattern)]
    left += [file for file in (place / "temporary").rglob("*") if "torchinductor" not in str(file)]  # PyTorch's cache
    return [str(p.relative_to(place)) for p in left]


def folders_of_ray() -> set[Path]:
    """Folders of clusters that assay has started, but for those that some process is still at work in."""
    folders = set(Path("/tmp").glob("assay-ray-*"))
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            said = words.read_bytes()
            folders = {folder for folder in folders if str(folder).encode() not in said}
    return folders


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


def kill_and_compare(
    killed: Killed, folder: Path, kills: int, seed: int = 0, processes: int = 2, anew: bool = False
) -> Outcome:
    """Kill a run over and over, let it come to its end, and begin the next until there were enough kills."""
    chance = random.Random(seed)
    outcome = Outcome()
    adopt_orphans()  # what outlives its driver becomes a child of this process, and is found
    with ExitStack() as stack:
        launcher = None
        if not anew:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            launcher = stack.enter_context(subprocess.Popen([sys.executable, "-c", LAUNCHER, *killed.loaded], **pipes))
            stack.callback(launcher.kill)
        before = folders_of_ray()
        _kill(killed, folder, kills, chance, processes, launcher, outcome)
        outcome.files += map(str, sorted(folders_of_ray() - before))
    return outcome


def _kill(
    killed: Killed, folder: Path, kills: int, chance: random.Random, processes: int,
    launcher: subprocess.Popen[str] | None, outcome: Outcome,
) -> None:  # fmt: skip
    own = [launcher.pid] if launcher is not None else []
    calm = killed.write(folder / "undisturbed")
    begin = time.monotonic()
    code = Command(killed, calm, processes, launcher).wait()
    took = time.monotonic() - begin
    left_processes(outcome, own)
    if code:
        outcome.failures.append(f"undisturbed: exit code {code}: {(calm / 'said').read_text()[-500:]}")
        return
    outcome.files += left_files(calm)
    expected = killed.results(calm / "run")
    print(f"undisturbed: {took:.1f} s", flush=True)
    place: Path | None = None
    number = in_this = 0
    while outcome.kills.total() < kills or place is not None:
        if place is None:
            number += 1
            in_this = 0
            place = killed.write(folder / f"disturbed{number}")
        # Half of all kills fall anywhere, half where runs go on, after code is loaded and before the report.
        delay = chance.uniform(0, 1.05 * took) if chance.random() < 0.5 else chance.uniform(0.4 * took, 0.9 * took)
        sent = chance.choice(SIGNALS)
        enough = outcome.kills.total() >= kills or in_this >= 12
        begin = time.monotonic()
        command = Command(killed, place, processes, launcher)
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
            outcome.failures.append(f"run {number}: exit code {code}: {(place / 'said').read_text()[-500:]}")
        else:
            outcome.completed += 1
            found = killed.results(place / "run")
            different = [k for k in {*expected, *found} if expected.get(k) != found.get(k)]
            outcome.different += [f"{number}/{name}" for name in sorted(different)]
            outcome.files += [f"{number}/{name}" for name in left_files(place)]
        if not in_this:  # the machine was busier before
            took = min(took, time.monotonic() - begin)
        print(f"run {number}: {in_this} kills; of all, {len(outcome.different)} files differ", flush=True)
        place = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", choices=COMMANDS, help="what is killed; by default all, one after the other")
    parser.add_argument("--kills", type=int, default=75, help="how often each is killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="start a new interpreter for each command")
    options = parser.parse_args()
    good = True
    for name in [options.command] if options.command else COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            outcome = kill_and_compare(
                COMMANDS[name], Path(folder), options.kills, options.seed, options.processes, options.anew
            )
        print(f"{name}: {outcome.kills.total()} kills: {dict(outcome.kills)}; exit codes: {dict(outcome.exits)}")
        print(f"{outcome.completed} runs completed; results that differ: {outcome.different or 'none'}")
        print(
            f"processes left: {outcome.processes or 'none'}; the last ended {outcome.slowest_s:.2f} s after its driver"
        )
        print(f"temporary files left: {outcome.files or 'none'}; failures: {outcome.failures or 'none'}", flush=True)
        good = good and outcome.good
    sys.exit(not good)


if __name__ == "__main__":
    main()
