"""assay shows stimuli to networks, records what every layer does, and turns that into evidence.

Everything here is loaded when it is first used, so that ``import assay`` and ``assay --help`` take a moment.
"""

import typing as _typing

__version__ = "0.1.0"

# The public names, each with the module that defines it.
_HOME = {
    "ALL": "assay.subject.layers",
    "AssayError": "assay.core.errors",
    "AugmentationRobustness": "assay.measures.complexity.augmentation",
    "ClusterSeparation": "assay.measures.complexity.clusters",
    "Invariance": "assay.measures.invariance.measure",
    "Margins": "assay.measures.complexity.margins",
    "Measure": "assay.measures.base",
    "Norms": "assay.measures.complexity.norms",
    "PerturbationResponse": "assay.measures.perturbation.measure",
    "Plan": "assay.plans.plan",
    "Resources": "assay.runs.executor",
    "Run": "assay.runs.run",
    "Sharpness": "assay.measures.complexity.sharpness",
    "Straightness": "assay.measures.straightness.measure",
    "Subject": "assay.subject.subject",
    "choose_layers": "assay.subject.layers",
    "conditional_mutual_information": "assay.studies.statistics.cmi",
    "curvature": "assay.measures.straightness.measure",
    "davies_bouldin_index": "assay.measures.complexity.clusters",
    "evaluate": "assay.runs.evaluate",
    "examine": "assay.plans.examination",
    "firing_thresholds": "assay.measures.invariance.firing",
    "gi_score": "assay.measures.perturbation.scores",
    "invariance_scores": "assay.measures.invariance.firing",
    "load_plan": "assay.plans.plan",
    "pal_score": "assay.measures.perturbation.scores",
    "perturbation_cumulative_density": "assay.measures.perturbation.scores",
    "top_proportion_mean": "assay.measures.invariance.firing",
    "turning_angles": "assay.measures.straightness.measure",
}
_ROOMS = ("broad", "networks", "stimuli", "studies", "training")
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
    "broad",
    "choose_layers",
    "conditional_mutual_information",
    "curvature",
    "davies_bouldin_index",
    "evaluate",
    "examine",
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

if _typing.TYPE_CHECKING:
    from assay import broad, networks, stimuli, studies, training
    from assay.core.errors import AssayError
    from assay.measures.base import Measure
    from assay.measures.complexity.augmentation import AugmentationRobustness
    from assay.measures.complexity.clusters import ClusterSeparation, davies_bouldin_index
    from assay.measures.complexity.margins import Margins
    from assay.measures.complexity.norms import Norms
    from assay.measures.complexity.sharpness import Sharpness
    from assay.measures.invariance.firing import firing_thresholds, invariance_scores, top_proportion_mean
    from assay.measures.invariance.measure import Invariance
    from assay.measures.perturbation.measure import PerturbationResponse
    from assay.measures.perturbation.scores import gi_score, pal_score, perturbation_cumulative_density
    from assay.measures.straightness.measure import Straightness, curvature, turning_angles
    from assay.plans.examination import examine
    from assay.plans.plan import Plan, load_plan
    from assay.runs.evaluate import evaluate
    from assay.runs.executor import Resources
    from assay.runs.run import Run
    from assay.studies.statistics.cmi import conditional_mutual_information
    from assay.subject.layers import ALL, choose_layers
    from assay.subject.subject import Subject


def __getattr__(name: str) -> _typing.Any:
    import importlib

    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"assay.{name}")
    else:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
