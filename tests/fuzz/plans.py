"""The fuzzer of plans: mutated plans of every kind, given to the commands that a user gives them to."""

from __future__ import annotations

import importlib
import io
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.harness import Broken, Case
from fuzz.plan_mutations import mutated
from fuzz.plan_world import make_world, right_plans

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNING_S = 30
"""How long a plan that was found right may run: what it asks for may be much, but it is not this fuzzer's matter."""
_COMMANDS = {
    "run": (("check",), ("run", "--quiet")),
    "corpus": (("corpus", "train", "--quiet"),),
    "study": (("corpus", "study", "--quiet"),),
    "search": (("search", "--quiet"),),
    "broad": (),
}
_MEMORY = re.compile(r"MemoryError|not enough memory|allocate|bad_alloc|out of memory", re.I)


def prepare(shared: Path) -> None:
    """Make the data, the networks and the corpus that plans name, and load once what the commands need."""
    make_world(shared)
    for name in ("cli.main", "plans.check", "report", "studies.search.search", "studies.study_plan", "broad.plan"):
        importlib.import_module(f"assay.{name}")


def run_case(case: Case) -> None:
    """Give one mutated plan to the commands for its kind; what is refused is refused in sentences."""
    place = case.folder / "plans"
    shutil.copytree(case.shared, place)
    kind, data = mutated(case.draw, right_plans())
    plan = place / "plan.yaml"
    plan.write_bytes(data)
    case.note(f"{kind}: {data[:400]!r}")
    if kind == "broad":
        from assay.broad.plan import load_broad_plan

        load_broad_plan(plan)
        return
    for words in _COMMANDS[kind]:
        case.note(" ".join(words))
        with _at_most(RUNNING_S if words != ("check",) else 0):
            code, said = command(*words, str(plan))
        if _MEMORY.search(said):
            raise Broken(f"asked for the memory before it was refused: {said[-800:]}")
        case.note(f"exits with {code}: {said[-300:]}")
        if code == 2 and words == ("run", "--quiet"):
            raise Broken(f"refused by 'run' and not by 'check': {said[-800:]}")
        if code:
            return


def command(*words: str) -> tuple[int, str]:
    """Give a command to assay as its entry point does, and return its exit code and what it printed."""
    from assay.cli.main import main

    printed = io.BytesIO()
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv = ["assay", *words]
    sys.stdout = io.TextIOWrapper(printed, "utf-8", "strict", write_through=True)
    sys.stderr = io.TextIOWrapper(printed, "utf-8", "backslashreplace", write_through=True)
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        said = printed.getvalue().decode("utf-8", "replace")
        sys.argv, sys.stdout, sys.stderr = before
    if code not in (0, 2, 3) or "Traceback (most recent call last)" in said:
        raise Broken(f"exits with {code}: {said[-2000:]}")
    return code, said


class _Enough(KeyboardInterrupt):
    """The time for running a plan is over."""


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """End the block after so many seconds, as Ctrl-C does; 0 for never."""

    def end(number: int, frame: object) -> None:
        raise _Enough

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
