"""The database of a search, by Optuna: which trials wait, which run, and how those ended that are finished.

Every trial has a *place* among the trials of its plan, which decides about its seed and, but for TPE, about its
hyper-parameters. A place is taken by one trial at a time: one that was killed or that failed is tried again under a
new number, at the same place and with the same hyper-parameters, when the search is continued.
"""

from __future__ import annotations

import math
import os
import re
import socket
import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

from assay.core.determinism import Arithmetic
from assay.core.errors import AssayError, first_line, optional
from assay.core.folder import alive
from assay.studies.search.plan import SearchPlan
from assay.studies.search.pruner import Population
from assay.studies.search.space import Value
from assay.studies.search.trial import COMPLETE, PRUNED, Outcome, Trial

HEARTBEAT_S, GRACE_S = 15, 90  # signs of life of a trial in a shared database, and how long their absence is borne
_PLACE, _OWNER, _OUTCOME, _MADE_OF, _LAID_OUT = "place", "owner", "outcome", "made_of", "laid_out"
_PATIENCE_S = 60.0  # for another process that is laying out the trials
_TRIES = 5  # at making the tables, which two processes may do at once


class Database:
    """The trials of one search in SQLite or PostgreSQL.

    Args:
        plan: The search.
        folder: The folder of the run, in which SQLite keeps its file.
    """

    def __init__(self, plan: SearchPlan, folder: Path) -> None:
        self.optuna = optional("optuna", "search", "assay search")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        self.plan = plan
        self.shared = bool(plan.storage)
        self.states = self.optuna.trial.TrialState
        self.in_flight: dict[int, Any] = {}  # trials of ours that run, by place
        self._ended = Event()
        if self.shared:
            optional("psycopg", "search", "storage: postgresql://…")
        self.storage: Any = None
        try:
            with self._reachable():
                self.storage = self._storage(folder)
                self.study = self._study()
        except AssayError:
            self.close()
            raise
        if self.shared:
            Thread(target=self._live, daemon=True).start()

    # -- opening --------------------------------------------------------------------------------------------------

    def _storage(self, folder: Path) -> Any:
        """Optuna's storage, whose tables are made if they are not there."""
        if not self.shared:
            return self._opened(f"sqlite:///{folder / 'search.db'}", {"connect_args": {"timeout": 60}})
        url = self.plan.storage.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}
        from sqlalchemy.exc import IntegrityError, ProgrammingError

        for left in reversed(range(_TRIES)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
                try:
                    return self._opened(url, engine, heartbeat_interval=HEARTBEAT_S, grace_period=GRACE_S)
                except (IntegrityError, ProgrammingError):  # another process has just made the same table
                    if not left:
                        raise
                    time.sleep(0.5)
        raise AssertionError("unreachable")

    def _opened(self, url: str, engine: dict[str, Any], **settings: Any) -> Any:
        """Optuna's storage at a URL; one that cannot be opened lets go of the database."""
        kind = self.optuna.storages.RDBStorage
        storage = kind.__new__(kind)  # made by hand: of one that fails half way, the engine would be out of reach
        try:
            storage.__init__(url, engine, **settings)
        except BaseException:
            if hasattr(storage, "engine"):
                storage.engine.dispose()
            raise
        return storage

    def _study(self) -> Any:
        """The study of this search, new or continued; an error if another plan began it."""
        plan, optuna = self.plan, self.optuna
        try:
            return self._new_study()
        except optuna.exceptions.DuplicatedStudyError:
            study = optuna.load_study(study_name=plan.name, storage=self.storage)
        if study.user_attrs.get(_MADE_OF, plan.made_of) == plan.made_of:
            return study
        finished = study.get_trials(deepcopy=False, states=(self.states.COMPLETE, self.states.PRUNED))
        running = study.get_trials(deepcopy=False, states=(self.states.RUNNING,)) if self.shared else []
        if finished or running:
            raise AssayError(
                f"the search {plan.name!r} in {self.where} was begun by another plan "
                f"({len(finished)} finished trials): give the new plan another run and name"
            )
        optuna.delete_study(study_name=plan.name, storage=self.storage)  # nothing is lost: no trial is finished
        return self._new_study()

    def _new_study(self) -> Any:
        directions = [objective.direction for objective in self.plan.objectives]
        study = self.optuna.create_study(study_name=self.plan.name, storage=self.storage, directions=directions)
        study.set_user_attr(_MADE_OF, self.plan.made_of)
        return study

    @property
    def where(self) -> str:
        """The database in words, without a password."""
        return re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:…@", self.plan.storage) if self.shared else self.plan.run

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """Make one sentence of whatever keeps the database from being used."""
        from sqlalchemy.exc import SQLAlchemyError

        kinds = (SQLAlchemyError, self.optuna.exceptions.StorageInternalError, OSError)
        try:
            yield
        except kinds as error:
            cause = getattr(error, "orig", None) or error.__cause__ or error
            cause = getattr(cause, "orig", None) or cause
            if self.shared:
                remedy = "is it running, and may this user connect? What is finished stays there: run it again to go on"
            elif isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
                remedy = "search.db is damaged: put a copy of it in its place, or choose another folder"
            else:
                remedy = "make room and allow writing there, or choose another folder"
            raise AssayError(
                f"{'storage' if self.shared else 'run'}={self.where}: the database of the search cannot be used "
                f"({first_line(cause)}); {remedy}"
            ) from error

    # -- trials that wait -----------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Have a trial waiting for every place that has none: new, or again after it was killed or failed."""
        with self._reachable():
            self._wait_until_laid_out()
            self._give_up_the_dead()
            trials = self._by_place(self.study.get_trials(deepcopy=False))
            for place in range(self.plan.trials):
                known = trials.get(place, [])
                if not any(trial.state != self.states.FAIL for trial in known):
                    given = dict(known[-1].params) if known else self._drawn(place)
                    self.study.enqueue_trial(given, user_attrs={_PLACE: place})
            self.study.set_user_attr(_LAID_OUT, True)

    def _drawn(self, place: int) -> dict[str, Value]:
        """The hyper-parameters of a place, as far as they are known before the trial begins."""
        if self.plan.sampler == "grid":
            return self.plan.combinations[place]
        if self.plan.sampler == "random":
            sampler = self.optuna.samplers.RandomSampler(seed=self.plan.seed_of(place))
            space = {name: hyperparameter.distribution() for name, hyperparameter in self.plan.space.items()}
            return {name: sampler.sample_independent(self.study, None, name, d) for name, d in space.items()}
        return {}

    def _wait_until_laid_out(self) -> None:
        """Wait for another process that began this search a moment ago and is laying out its trials."""
        end = time.monotonic() + _PATIENCE_S
        while self.shared and time.monotonic() < end:
            trials = self.study.get_trials(deepcopy=False)
            if not trials or self.study.user_attrs.get(_LAID_OUT):
                return
            time.sleep(0.1)

    def _give_up_the_dead(self) -> None:
        """Count running trials as failed whose process is gone."""
        for trial in self.study.get_trials(deepcopy=False, states=(self.states.RUNNING,)):
            if self._is_dead(trial):
                self.study.tell(trial.number, state=self.states.FAIL)
        if self.shared:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
                self.optuna.storages.fail_stale_trials(self.study)

    def _is_dead(self, trial: Any) -> bool:
        """Whether the process of a running trial is known to be gone; a local database is used by one process only."""
        if trial.number in [ours.number for ours in self.in_flight.values()]:
            return False
        if not self.shared:
            return True
        if _OWNER not in trial.user_attrs:  # killed between taking the trial and saying so
            return bool((datetime.now() - trial.datetime_start).total_seconds() > GRACE_S)
        host, _, pid = str(trial.user_attrs[_OWNER]).rpartition(" ")
        return host == socket.gethostname() and not alive(int(pid))

    def _by_place(self, trials: Sequence[Any]) -> dict[int, list[Any]]:
        places: dict[int, list[Any]] = {}
        for trial in trials:
            if _PLACE in trial.user_attrs:
                places.setdefault(trial.user_attrs[_PLACE], []).append(trial)
        return places

    # -- one trial ------------------------------------------------------------------------------------------------

    def claim(self) -> Trial | None:
        """Take the first trial that waits, so that nobody else does; None if none does."""
        with self._reachable():
            everyone = self.study.get_trials(deepcopy=False)
            places = self._by_place(everyone)
            for place in sorted(place for place in places if place < self.plan.trials):
                for known in places[place]:
                    if known.state != self.states.WAITING:
                        continue
                    others = [t for t in places[place] if t.number < known.number and t.state != self.states.FAIL]
                    if not self._taken(known):
                        continue
                    if others:  # two processes laid out the same place at once
                        self.study.tell(known.number, state=self.states.FAIL)
                        continue
                    return self._begin(known, place, everyone)
        return None

    def _taken(self, waiting: Any) -> bool:
        """Whether a waiting trial is ours now; no if another process was quicker."""
        try:
            return bool(self.storage.set_trial_state_values(waiting._trial_id, self.states.RUNNING))
        except self.optuna.exceptions.UpdateFinishedTrialError:
            return False

    def _begin(self, known: Any, place: int, everyone: Sequence[Any]) -> Trial:
        """Let a trial of ours begin: say whose it is, and choose its hyper-parameters."""
        if self.shared:
            self.storage.record_heartbeat(known._trial_id)
        seed = self.plan.seed_of(place)
        # Loaded anew and read, so that the sampler knows all trials as they are now.
        sampler = self.optuna.samplers.TPESampler(seed=seed)
        study = self.optuna.load_study(study_name=self.plan.name, storage=self.storage, sampler=sampler)
        study.get_trials(deepcopy=False)
        trial = self.optuna.trial.Trial(study, known._trial_id)
        trial.set_user_attr(_OWNER, f"{socket.gethostname()} {os.getpid()}")
        chosen = {name: hyperparameter.suggest(trial, name) for name, hyperparameter in self.plan.space.items()}
        self.in_flight[place] = trial
        return Trial(place, chosen, seed, self._population(everyone), Arithmetic.here())

    def _population(self, trials: Sequence[Any]) -> Population:
        """What the live quantity was in the finished trials, by epoch, in the order of their places."""
        finished = self._finished(trials)
        population: dict[int, list[float]] = {}
        for place in sorted(finished):
            for row in finished[place].user_attrs[_OUTCOME]["live"]:
                if row["value"] is not None:
                    population.setdefault(row["epoch"], []).append(row["value"])
        return population

    def finish(self, place: int, outcome: Outcome) -> None:
        """Write down how a trial of ours ended."""
        trial = self.in_flight[place]
        with self._reachable():
            trial.set_user_attr(_OUTCOME, outcome.to_json())
            if outcome.status == COMPLETE:
                self.study.tell(trial.number, values=list(outcome.values))
            elif outcome.status == PRUNED:
                value = outcome.live[-1]["value"]
                if len(self.plan.objectives) == 1 and not math.isnan(value):
                    trial.report(value, outcome.epochs_done)  # TPE learns from it
                self.study.tell(trial.number, state=self.states.PRUNED)
            else:
                self.study.tell(trial.number, state=self.states.FAIL)
        del self.in_flight[place]

    # -- all trials -----------------------------------------------------------------------------------------------

    def _finished(self, trials: Sequence[Any]) -> dict[int, Any]:
        """The finished trial of each place that has one."""
        finished: dict[int, Any] = {}
        for place, known in self._by_place(trials).items():
            done = [t for t in known if t.state in (self.states.COMPLETE, self.states.PRUNED)]
            if done:
                finished[place] = done[0]
        return finished

    def trials(self) -> dict[int, Any]:
        """The trial that counts at each place: the finished one, or else one that waits or runs, or else the last."""
        with self._reachable():
            trials = self.study.get_trials(deepcopy=False)
        finished = self._finished(trials)
        counting: dict[int, Any] = {}
        for place, known in self._by_place(trials).items():
            if place < self.plan.trials:
                # A place that two processes laid out at once has a failed trial beside the one that another still runs.
                going_on = [trial for trial in known if trial.state != self.states.FAIL]
                counting[place] = finished.get(place, [*known, *going_on][-1])
        return dict(sorted(counting.items()))

    def _live(self) -> None:
        """Give signs of life of the trials in flight, until this is closed."""
        while not self._ended.wait(HEARTBEAT_S):
            for trial in list(self.in_flight.values()):
                try:
                    self.storage.record_heartbeat(trial._trial_id)
                except Exception:  # a database that is gone is noticed where it is needed
                    break

    def close(self) -> None:
        """Let go of the database."""
        self._ended.set()
        if self.storage is not None:
            self.storage.remove_session()
            self.storage.engine.dispose()
