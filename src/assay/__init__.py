"""assay shows stimuli to networks, records what every layer does, and turns that into evidence."""

from assay import networks, stimuli, studies, training
from assay.core.errors import AssayError
from assay.measures import (
    AugmentationRobustness,
    ClusterSeparation,
    Invariance,
    Margins,
    Measure,
    Norms,
    PerturbationResponse,
    Sharpness,
    Straightness,
    curvature,
    davies_bouldin_index,
    firing_thresholds,
    gi_score,
    invariance_scores,
    pal_score,
    perturbation_cumulative_density,
    top_proportion_mean,
    turning_angles,
)
from assay.plans.plan import Plan, load_plan
from assay.runs import Run
from assay.runs.evaluate import evaluate
from assay.runs.executor import Resources
from assay.studies import conditional_mutual_information
from assay.subject.layers import ALL, choose_layers
from assay.subject.subject import Subject

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``assay.broad`` is loaded when it is first used: it takes a second."""
    if name == "broad":
        import importlib

        return importlib.import_module("assay.broad")
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


__all__ = [
    "ALL",
    "AssayError",
    "AugmentationRobustness",
    "ClusterSeparation",
    "Invariance",
    "Margins",
    "Measure",
    "Norms",
    "PerturbationResponse",
    "Plan",
    "Resources",
    "Run",
    "Sharpness",
    "Straightness",
    "Subject",
    "choose_layers",
    "conditional_mutual_information",
    "curvature",
    "davies_bouldin_index",
    "evaluate",
    "firing_thresholds",
    "gi_score",
    "invariance_scores",
    "load_plan",
    "networks",
    "pal_score",
    "perturbation_cumulative_density",
    "stimuli",
    "studies",
    "top_proportion_mean",
    "training",
    "turning_angles",
]
