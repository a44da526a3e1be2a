"""The fuzzer of plans: mutated plans of every kind, given to the commands that a user gives them to."""

from __future__ import annotations

import io
import re
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.core.progress import listening
from fuzz.harness import Broken, Case
from fuzz.plan_mutations import mutated, written
from fuzz.plan_world import make_world, right_plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNNING_S = 20
"""How long a plan may run that asks for much and tells of its progress; then it is ended, and holds."""
SILENT_S = 10
"""How long it may be since it last told of it."""
_COMMANDS = {
    "run": ("run", "--quiet"),
    "corpus": ("corpus", "train", "--quiet"),
    "study": ("corpus", "study", "--quiet"),
    "search": ("search", "--quiet"),
}
_MEMORY = re.compile(r"MemoryError|not enough memory|allocate|bad_alloc|out of memory", re.I)


class Plans:
    """The fuzzer; the quick one only reads and checks plans, the whole one runs those that are right.

    Args:
        quick: Whether nothing is run.
    """

    def __init__(self, quick: bool) -> None:
        self.quick = quick

    def prepare(self, shared: Path) -> None:
        """Make the data, the networks and the corpus that plans name, and load once what the commands need."""
        make_world(shared, trained=not self.quick)
        place = shared.parent / "warm"
        shutil.copytree(shared, place)
        plans = {kind: plan for kind, plan in right_plans() if kind in ("run", "study", "search")}
        for kind, plan in plans.items():
            (place / "plan.yaml").write_text(written(plan))
            if self.quick and kind == "study":  # whose corpus is not there
                continue
            if self.quick:
                read(kind, place / "plan.yaml")
                continue
            code, said = command(*_COMMANDS[kind], str(place / "plan.yaml"))
            if code:
                raise Broken(f"a right plan is refused: {said}")

    def run_case(self, case: Case) -> None:
        """Give one mutated plan to the commands for its kind; what is refused is refused in sentences."""
        place = case.folder / "plans"
        shutil.copytree(case.shared, place)
        kind, data = mutated(case.draw, right_plans())
        plan = place / "plan.yaml"
        plan.write_bytes(data)
        case.note(f"{kind}: {data[:400]!r}")
        if kind == "broad" or (self.quick and kind != "run"):
            read(kind, plan)
            return
        if kind == "run":
            code = self._give(case, ("check", str(plan)))
            if code or self.quick:
                return
        if kind in ("corpus", "study"):
            self._give(case, ("check", str(plan)))
        code = self._give(case, (*_COMMANDS[kind], str(plan)))
        if code == 2 and kind == "run":
            raise Broken("refused by 'run' and not by 'check'")

    def _give(self, case: Case, words: tuple[str, ...]) -> int:
        case.note(" ".join(words))
        try:
            with _at_most(RUNNING_S) as ended:
                code, said = command(*words)
        except (Broken, _Enough):
            if not ended:
                raise
            case.note("has much to do, and says so")
            return 130
        case.note(f"exits with {code}: {said[-300:]}")
        if memory := _MEMORY.search(said):
            raise Broken(f"asked for the memory before it was refused: {said[max(0, memory.start() - 400) :][:800]}")
        return code


def read(kind: str, plan: Path, checked: bool = True) -> None:
    """Read a plan as the command for its kind does.

    Args:
        kind: The kind of the plan.
        plan: The file.
        checked: Whether the networks of a plan of a run are made and shown an input.
    """
    from assay.broad.plan import load_broad_plan
    from assay.plans.check import check_plan
    from assay.plans.plan import load_plan
    from assay.studies.corpus.plan import load_corpus_plan
    from assay.studies.search.plan import load_search_plan
    from assay.studies.study_check import check_study_plan
    from assay.studies.study_plan import load_study_plan

    readers: dict[str, Callable[[Path], object]] = {
        "run": check_plan if checked else load_plan, "corpus": load_corpus_plan,
        "study": check_study_plan if checked else load_study_plan, "search": load_search_plan,
        "broad": load_broad_plan,
    }  # fmt: skip
    try:
        readers[kind](plan)
    except AssayError as error:
        if _MEMORY.search(str(error)):
            raise Broken(f"asked for the memory before it was refused: {error}") from error
        raise


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
    """The time for a plan is over, while it told of its progress."""


@contextmanager
def _at_most(seconds: int) -> Iterator[list[bool]]:
    """End the block after so many seconds where it tells of its progress: it has much to do, and does not hang.

    What is yielded is not empty once the block was ended.
    """
    heard, ended = [0.0], list[bool]()

    def listen(what: str, done: int, total: int | None) -> None:
        heard[0] = time.monotonic()

    def end(number: int, frame: object) -> None:
        if time.monotonic() - heard[0] < SILENT_S:
            ended.append(True)
            raise _Enough
        signal.alarm(1)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        with listening(listen):
            yield ended
    finally:
        signal.alarm(0)


WHOLE, QUICK = Plans(quick=False), Plans(quick=True)
prepare, run_case = WHOLE.prepare, WHOLE.run_case
