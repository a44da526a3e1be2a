"""One trial of a search: a network trained with certain hyper-parameters, and the numbers by which it is judged."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from assay.core.determinism import Arithmetic, seeded
from assay.core.errors import ANYTHING, AssayError, reason
from assay.studies.search.plan import SearchPlan
from assay.studies.search.pruner import Population, Watch
from assay.studies.search.quantity import WrongPlan
from assay.studies.search.space import Value
from assay.subject.subject import Subject

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"


@dataclass(frozen=True)
class Trial:
    """What one trial is about.

    Args:
        place: Its place among all trials of the search, from 0.
        hyperparameters: The values of the hyper-parameters in the space.
        seed: The seed of its training.
        population: What the live quantity was in the trials finished so far, by epoch.
        arithmetic: How sums are added up, so that every worker gives the same bits.
    """

    place: int
    hyperparameters: Mapping[str, Value]
    seed: int
    population: Population
    arithmetic: Arithmetic


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Args:
        status: ``complete``, ``pruned`` (it fell behind the others) or ``failed``.
        values: The objectives, in the plan's order; empty unless complete.
        epochs_done: Number of epochs of which the training told.
        train_s: Seconds of training, without live measures; NaN where the training told nothing.
        seconds: Seconds of the whole trial.
        ended_by: What ended the training early: ``convergence``, ``population`` or nothing.
        live: Rows of the live quantity.
        error: Why it failed, in a sentence.
        traceback: Where it failed.
        fatal: Whether every other trial would fail too, because the plan is wrong.
        weights: The network's weights as a safetensors file, where they are kept.
    """

    status: str
    values: tuple[float, ...] = ()
    epochs_done: int = 0
    train_s: float = math.nan
    seconds: float = 0.0
    ended_by: str = ""
    live: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    traceback: str = ""
    fatal: bool = False
    weights: bytes | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """All but the weights, as JSON can hold it: NaN is None."""
        told = {key: value for key, value in asdict(self).items() if key not in ("weights", "values")}
        told["train_s"] = None if math.isnan(self.train_s) else self.train_s
        told["live"] = [{key: _finite(value) for key, value in row.items()} for row in self.live]
        return told


def run_trial(_: None, plan: SearchPlan, trial: Trial) -> Outcome:
    """Train a network and measure its objectives; whatever it raises is its outcome: a task of the executor."""
    began = time.perf_counter()
    watch = Watch(plan.pruner, plan.training.wrap, trial.population)
    gpu = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None
    try:
        with trial.arithmetic.used(), seeded(trial.seed, gpu):
            trained = plan.training({**plan.fixed, **trial.hyperparameters}, trial.seed, watch)
            _require_the_same_inputs(plan, trained.subject)
            values: tuple[float, ...] = ()
            if watch.pruned_at is None:
                values = tuple(objective.of(trained.subject, trained.numbers) for objective in plan.objectives)
                for objective, value in zip(plan.objectives, values, strict=True):
                    if not math.isfinite(value):
                        raise AssayError(f"the objective {objective.name!r} is {value}")
            weights = _weights(trained.subject) if plan.keep and watch.pruned_at is None else None
    except ANYTHING as error:  # it is the user's code that is called
        return Outcome(
            FAILED,
            **_told(watch, began),
            error=str(error) if isinstance(error, AssayError) else reason(error),
            traceback=traceback.format_exc(),
            fatal=isinstance(error, WrongPlan),
        )
    status = COMPLETE if watch.pruned_at is None else PRUNED
    return Outcome(status, values, **_told(watch, began), weights=weights)


def _told(watch: Watch, began: float) -> dict[str, Any]:
    """What is known of a training, however it ended."""
    last = watch.last
    ended_by = "population" if watch.pruned_at is not None else "convergence" if watch.converged_at is not None else ""
    return {
        "epochs_done": 0 if last is None else last.epoch,
        "train_s": math.nan if last is None else last.seconds,
        "seconds": time.perf_counter() - began,
        "ended_by": ended_by,
        "live": [] if watch.live is None else list(watch.live.rows),
    }


def _require_the_same_inputs(plan: SearchPlan, subject: Subject) -> None:
    """Refuse a subject with preprocessing of its own where a live measure saw the bare module."""
    live = plan.pruner is not None and plan.pruner.quantity.measure is not None
    if live and subject.preprocess is not None and plan.training.wrap(subject.module).preprocess is None:
        raise WrongPlan(
            "train returns a subject with preprocessing, which pruning by a measure does not know: "
            "return the bare module, and put the preprocessing into the plan (preprocess)"
        )


def _weights(subject: Subject) -> bytes:
    from safetensors.torch import save

    state = subject.module.state_dict()
    tensors = {key: value.detach().cpu().clone().contiguous() for key, value in state.items() if torch.is_tensor(value)}
    return bytes(save(tensors))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
