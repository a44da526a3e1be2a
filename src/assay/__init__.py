"""assay shows stimuli to networks, records what every layer does, and turns that into evidence."""

from assay import networks, stimuli, training
from assay.errors import AssayError
from assay.evaluate import Resources, evaluate
from assay.layers import ALL, choose_layers
from assay.measures import (
    Invariance,
    Measure,
    Straightness,
    curvature,
    firing_thresholds,
    invariance_scores,
    top_proportion_mean,
    turning_angles,
)
from assay.plan import Plan, load_plan
from assay.store import Run
from assay.subject import Subject

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
    "Invariance",
    "Measure",
    "Plan",
    "Resources",
    "Run",
    "Straightness",
    "Subject",
    "choose_layers",
    "curvature",
    "evaluate",
    "firing_thresholds",
    "invariance_scores",
    "load_plan",
    "networks",
    "stimuli",
    "top_proportion_mean",
    "training",
    "turning_angles",
]
