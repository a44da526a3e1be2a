"""The Broad Evaluation: a fair comparison of whole learning systems under six conditions.

Its sub-packages import in one direction only. `data` imports nothing of the others; then come `metrics`, `conditions`
and `tasks`; `systems` imports `data`; `run` imports those four and `systems`; `rules` checks a system with the help of
`run`; `analysis` imports `data`, `metrics` and `conditions`, and no system; `protocol`, `qualitative` and `plan` bring
all of them together. Everything here is loaded when it is first used: a system in a process of its own needs little.
"""

import typing as _typing

# The public names, each with the module that defines it.
_HOME = {
    "CONDITIONS": "assay.broad.conditions",
    "CONTRASTS": "assay.broad.conditions",
    "Analysis": "assay.broad.analysis.analysis",
    "Dataset": "assay.broad.data.dataset",
    "Evaluators": "assay.broad.systems.team",
    "Inputs": "assay.broad.data.dataset",
    "Module": "assay.broad.systems.team",
    "Partition": "assay.broad.data.partition",
    "Parts": "assay.broad.systems.team",
    "Protocol": "assay.broad.settings",
    "RunResult": "assay.broad.analysis.scores",
    "TaskTruth": "assay.broad.analysis.scores",
    "Team": "assay.broad.systems.team",
    "analyze_results": "assay.broad.analysis.analysis",
    "average_precision_11pt": "assay.broad.metrics",
    "check_system": "assay.broad.rules.conformance",
    "commitment": "assay.broad.data.partition",
    "create_stratified_folds": "assay.broad.data.partition",
    "load_broad_plan": "assay.broad.plan",
    "mean_average_precision": "assay.broad.metrics",
    "rmse": "assay.broad.metrics",
    "run_condition": "assay.broad.run.condition",
    "run_conditions": "assay.broad.protocol",
    "run_protocol": "assay.broad.protocol",
    "sample_stratified": "assay.broad.data.partition",
    "train_and_optimize_classifier": "assay.broad.run.tuning",
}
__all__ = [
    "CONDITIONS",
    "CONTRASTS",
    "Analysis",
    "Dataset",
    "Evaluators",
    "Inputs",
    "Module",
    "Partition",
    "Parts",
    "Protocol",
    "RunResult",
    "TaskTruth",
    "Team",
    "analyze_results",
    "average_precision_11pt",
    "check_system",
    "commitment",
    "create_stratified_folds",
    "load_broad_plan",
    "mean_average_precision",
    "rmse",
    "run_condition",
    "run_conditions",
    "run_protocol",
    "sample_stratified",
    "train_and_optimize_classifier",
]

if _typing.TYPE_CHECKING:
    from assay.broad.analysis.analysis import Analysis, analyze_results
    from assay.broad.analysis.scores import RunResult, TaskTruth
    from assay.broad.conditions import CONDITIONS, CONTRASTS
    from assay.broad.data.dataset import Dataset, Inputs
    from assay.broad.data.partition import Partition, commitment, create_stratified_folds, sample_stratified
    from assay.broad.metrics import average_precision_11pt, mean_average_precision, rmse
    from assay.broad.plan import load_broad_plan
    from assay.broad.protocol import run_conditions, run_protocol
    from assay.broad.rules.conformance import check_system
    from assay.broad.run.condition import run_condition
    from assay.broad.run.tuning import train_and_optimize_classifier
    from assay.broad.settings import Protocol
    from assay.broad.systems.team import Evaluators, Module, Parts, Team


def __getattr__(name: str) -> _typing.Any:
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return member


def __dir__() -> list[str]:
    return sorted(__all__)
