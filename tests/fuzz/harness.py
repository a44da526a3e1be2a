"""What all fuzzers share: a case is a seed and a number, and runs in a process of its own.

A fuzzer is a module of this folder with

- ``prepare(shared)``, called once: writes into the folder ``shared`` what the cases take copies of;
- ``run_case(case)``, called in a forked process for each case: does one thing to assay with ``case.draw`` as its
  only source of chance, in ``case.folder``, which is empty and is removed afterwards.

A case holds where it returns, or ends in an `AssayError`, or a command exits with a code that means so (`command`). It
fails where anything else is raised, where it takes more than a minute or more than 2 GiB, where the process dies, where
a file ``case.canary`` appears (code that was hidden in a file has run), or where it raises `Broken`, which says that a
promise was not kept, such as a cell that is lost.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LONGEST_S = 60.0
MOST_BYTES = 2 * 2**30
_SOURCE = f"{os.sep}src{os.sep}assay{os.sep}"


class Broken(Exception):
    """A promise that assay makes was not kept."""


@dataclass(frozen=True)
class Case:
    """One case: its source of chance, the folder prepared for all cases, and an empty one of its own."""

    draw: random.Random
    shared: Path
    folder: Path
    note: Callable[[str], None]
    """Says what the case is about to do; printed where it fails, also where it hangs or the process dies."""

    @property
    def canary(self) -> Path:
        """The file that hidden code would write: where it is there after the case, code has run."""
        return self.folder / "code-has-run"


class Fuzzer(Protocol):
    """A module of this folder."""

    def prepare(self, shared: Path) -> None: ...

    def run_case(self, case: Case) -> None: ...


@dataclass(frozen=True)
class Verdict:
    """How a case ended: ``wrong`` says what is wrong with it and is empty where it holds."""

    fuzzer: str
    seed: int
    number: int
    notes: tuple[str, ...]
    refused: str = ""
    wrong: str = ""
    place: str = ""
    details: str = ""

    @property
    def repeat(self) -> str:
        """The command that repeats the case, in the folder of the project."""
        return f".venv/bin/python tests/fuzz/run.py {self.fuzzer} --seed {self.seed} --case {self.number}"

    def __str__(self) -> str:
        lines = [f"{self.fuzzer} {self.seed}/{self.number}: {self.wrong or self.refused or 'held'}"]
        lines += [f"  in {self.place}"] * bool(self.place) + [f"  {note}" for note in self.notes]
        return "\n".join([*lines, f"  {self.repeat}"])


@contextmanager
def prepared(fuzzer: Fuzzer) -> Iterator[Path]:
    """The folder that the cases of a fuzzer share, made in a temporary place."""
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shared = Path(place, "shared")
        shared.mkdir()
        Path(place).chmod(0o755)  # a case may become another user
        fuzzer.prepare(shared)
        yield shared


def verdicts(
    name: str, fuzzer: Fuzzer, shared: Path, seed: int, numbers: Iterable[int], loud: bool = False
) -> Iterator[Verdict]:
    """Run the cases one after another, each in a forked process; what a loud one prints is seen."""
    gc.collect()
    gc.freeze()  # what is loaded stays shared between the processes
    try:
        for number in numbers:
            yield _verdict(name, fuzzer, shared, seed, number, loud)
    finally:
        gc.unfreeze()


def check(name: str, fuzzer: Fuzzer, seed: int, cases: int) -> str:
    """Run the first cases of a seed, and return what a test shows: the failures, or nothing."""
    with prepared(fuzzer) as shared:
        wrong = [v for v in verdicts(name, fuzzer, shared, seed, range(cases)) if v.wrong]
    return "\n\n".join(map(str, wrong[:10])) + (f"\n\nand {len(wrong) - 10} more" if len(wrong) > 10 else "")


def kinds(wrong: Iterable[Verdict]) -> list[tuple[int, str]]:
    """How often each kind of failure was met: its exception, and the place in assay it came from."""
    met = Counter(f"{v.wrong.split(':')[0]} in {v.place or 'no place'}" for v in wrong)
    return [(count, kind) for kind, count in met.most_common()]


def command(*words: str, allowed: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[int, str]:
    """Give a command to assay in this process, and return its exit code and what it printed.

    Raises:
        Broken: It printed a traceback, or exited with a code that means neither done nor refused.
    """
    from typer.testing import CliRunner

    from assay import AssayError
    from assay.cli.main import app

    done = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(done.exception, AssayError):
        return 2, str(done.exception)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    printed = done.output + (done.stderr or "")
    if done.exit_code not in allowed or "Traceback (most recent call last)" in printed:
        raise Broken(f"assay {' '.join(words)} exits with {done.exit_code}: {printed[-2000:]}")
    return done.exit_code, printed


def _verdict(name: str, fuzzer: Fuzzer, shared: Path, seed: int, number: int, loud: bool = False) -> Verdict:
    folder = Path(tempfile.mkdtemp(prefix="assay-case-"))
    folder.chmod(0o755)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads, of which none does anything here
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(fuzzer, shared, folder, random.Random(f"{name} {seed} {number}"), writing, loud)
    os.close(writing)
    try:
        said, late = _listen(reading)
        if late:
            os.killpg(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        ran = (folder / "code-has-run").exists()
    finally:
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)
    told = {"notes": tuple(e["note"] for e in said if "note" in e)}
    for entry in said:
        told |= {key: entry[key] for key in ("refused", "wrong", "place", "details") if key in entry}
    if ran:
        told |= {"wrong": "CodeRan: code that was hidden in a file has run", "place": ""}
    elif late:
        told["wrong"] = f"Hangs: not done after {LONGEST_S:.0f} s"
    elif status:
        told["wrong"] = f"Dies: the process ended with status {status}"
    elif used.ru_maxrss * 1024 > MOST_BYTES:
        told["wrong"] = f"Memory: {used.ru_maxrss / 2**20:.1f} GiB were in use"
    return Verdict(name, seed, number, **told)


def _listen(reading: int) -> tuple[list[dict[str, str]], bool]:
    """What the process says until it ends, and whether it had to be given up."""
    data, until = b"", time.monotonic() + LONGEST_S
    while True:
        left = until - time.monotonic()
        late = left <= 0 or not select.select([reading], [], [], left)[0]
        more = b"" if late else os.read(reading, 1 << 16)
        data += more
        if not more:
            return [json.loads(line) for line in data.splitlines() if line.endswith(b"}")], late


def _child(fuzzer: Fuzzer, shared: Path, folder: Path, draw: random.Random, writing: int, loud: bool) -> None:
    """Run one case and say how it went; this process ends here, whatever happens."""

    def say(**entry: str) -> None:
        os.write(writing, json.dumps(entry).encode() + b"\n")

    code = 1
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0,) if loud else (0, 1, 2):
            os.dup2(silence, stream)
        warnings.simplefilter("ignore")
        _limit_memory()
        os.environ["ASSAY_MOST_BYTES"] = str(MOST_BYTES // 8)  # of one array; its work takes copies of it
        os.chdir(folder)
        _judge(fuzzer, Case(draw, shared, folder, lambda text: say(note=text[:500])), say)
        code = 0
    finally:
        os._exit(code)


def _judge(fuzzer: Fuzzer, case: Case, say: Callable[..., None]) -> None:
    from assay import AssayError

    try:
        fuzzer.run_case(case)
    except AssayError as error:
        say(refused=str(error)[:500])
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if _SOURCE in f.filename]
        place = f"{frames[-1].filename.rpartition(_SOURCE)[2]}:{frames[-1].lineno} {frames[-1].name}" if frames else ""
        details = "".join(traceback.format_exception(error))[-20000:]
        say(wrong=f"{type(error).__name__}: {error}"[:1000], place=place, details=details)


def _limit_memory() -> None:
    """Let what asks for far more than a case may take fail at once; what it really used is judged at its end."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    held = int(fields["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (held + MOST_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(names: list[str], load: Callable[[str], Fuzzer], words: list[str]) -> int:
    """Run fuzzers as the command line asks, print each failure with the command that repeats it, and count them.

    Args:
        names: The names of all fuzzers.
        load: Makes a fuzzer of its name, or of its name and ``-quick`` the one that the tests use.
        words: The command line.
    """
    import argparse

    known = [*names, *(f"{name}-quick" for name in names)]
    parser = argparse.ArgumentParser(description="Give assay what no person would write, and see that it holds.")
    parser.add_argument("fuzzers", nargs="*", choices=[*known, []], help="which; all by default")
    parser.add_argument("--seed", type=int, default=0, help="seed of all chance")
    parser.add_argument("--cases", type=int, default=2000, help="how many cases of each fuzzer")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--case", type=int, help="run this one alone, and print its traceback")
    asked = parser.parse_args(words)
    failures = 0
    for name in asked.fuzzers or names:
        numbers = range(asked.first, asked.first + asked.cases) if asked.case is None else [asked.case]
        began, wrong, refused, fuzzer = time.monotonic(), [], 0, load(name)
        with prepared(fuzzer) as shared:
            for verdict in verdicts(name, fuzzer, shared, asked.seed, numbers, loud=asked.case is not None):
                if verdict.wrong or asked.case is not None:
                    _print(f"{verdict}\n{verdict.details if asked.case is not None else ''}")
                wrong += [verdict] * bool(verdict.wrong)
                refused += bool(verdict.refused)
        for count, kind in kinds(wrong):
            _print(f"{count:6} × {kind}")
        took = time.monotonic() - began
        _print(f"{name}, seed {asked.seed}: {len(numbers)} cases, {refused} refused, {len(wrong)} fail ({took:.0f} s)")
        failures += len(wrong)
    return 1 if failures else 0


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
