"""A search: trials run by the executor, here, in processes or on Ray, resumed where they stopped."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.progress import report
from assay.core.user_code import code_in
from assay.runs.executor import Job, Lost, Workers, execute
from assay.studies.search.database import Database
from assay.studies.search.plan import SearchPlan, load_search_plan
from assay.studies.search.table import Search, tabulate
from assay.studies.search.trial import FAILED, Outcome, run_trial


def run_search(
    plan: SearchPlan | str | Path, *, processes: int = 0, ray: bool | str = False, run: str | None = None
) -> Search:
    """Run the trials of a search that are not finished yet, and return all of them.

    A trial that was killed is run again with the same hyper-parameters and the same seed, and so is one that failed.
    The hyper-parameters of random and grid searches, and the seeds of all, depend on the plan alone, however many
    workers there are. Those of TPE depend on the trials that were finished when a trial began: the same in one
    process, but not with several workers.

    Args:
        plan: The search, or the path of its YAML file.
        processes: Trials at a time, each in a process of this machine; 0 for this process itself.
        ray: True for a Ray cluster found or started here, or the address of one.
        run: Folder of the run, instead of the one that the plan names.

    Returns:
        The tables of trials and of what was measured during them.
    """
    loaded = plan if isinstance(plan, SearchPlan) else load_search_plan(plan)
    if run is not None:
        loaded = replace(loaded, run=run)
    workers = Workers(processes=processes, ray=ray, preload=(run_trial.__module__,))
    folder = Folder(loaded.run)
    with code_in(loaded.folder), _alone(loaded, folder):
        database = Database(loaded, Path(folder.path()).absolute())
        try:
            database.prepare()
            _run(loaded, database, folder, workers)
        finally:
            try:
                result = tabulate(loaded, database.trials(), folder.path())
                result.write(folder)
            finally:
                database.close()
    return result


def _run(plan: SearchPlan, database: Database, folder: Folder, workers: Workers) -> None:
    """Run the trials that wait, one after the other or side by side."""
    trials = database.trials().values()
    finished = sum(trial.state.name in ("COMPLETE", "PRUNED") for trial in trials)
    report("trials", finished, plan.trials)

    def jobs() -> Iterator[Job]:
        while (trial := database.claim()) is not None:
            yield Job(trial, kept=plan, resources=plan.resources)

    ended = execute(run_trial, jobs(), workers)
    try:
        for done in ended:
            place = done.job.own.place
            outcome = Outcome(FAILED, error=done.result.reason) if isinstance(done.result, Lost) else done.result
            if outcome.weights is not None:
                folder.write(f"networks/{name_of(place)}.safetensors", outcome.weights)
            database.finish(place, outcome)
            if outcome.fatal:
                raise AssayError(f"{outcome.error} (trial {place}; the search ends, what is finished is kept)")
            finished += outcome.status != FAILED
            report("trials", finished, plan.trials)
    finally:
        ended.close()


def name_of(place: int) -> str:
    """What the network of a trial is called."""
    return f"trial_{place:03}"


@contextmanager
def _alone(plan: SearchPlan, folder: Folder) -> Iterator[None]:
    """Keep other processes of this machine from a search whose database is a file of its own."""
    if not folder.local:
        yield
        return
    place = Path(folder.path())
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = (place / "search.lock").open("w")
    except OSError as error:
        raise AssayError(f"run={plan.run}: cannot be written to ({error.strerror}); choose another folder") from error
    with lock:
        if not plan.storage:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise AssayError(
                    f"run={plan.run}: another process is at this search; use --processes, or a PostgreSQL database "
                    "(storage) for several"
                ) from None
        yield
