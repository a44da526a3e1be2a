"""The Broad Evaluation: a fair comparison of whole learning systems under six conditions.

Its sub-packages import in one direction only. `data` imports nothing of the others; then come `metrics`, `conditions`
and `tasks`; `systems` imports `data`; `run` imports those four and `systems`; `rules` checks a system with the help of
`run`; `analysis` imports `data`, `metrics` and `conditions`, and no system; `protocol`, `qualitative` and `plan` bring
all of them together.
"""

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


def __dir__() -> list[str]:
    return sorted(__all__)
