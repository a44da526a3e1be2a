"""Questions asked of one subject, and the pure functions under them."""

from assay.measures.base import Measure
from assay.measures.firing import firing_thresholds, invariance_scores, top_proportion_mean
from assay.measures.invariance import Invariance
from assay.measures.perturbation import PerturbationResponse
from assay.measures.response_curve import gi_score, pal_score, perturbation_cumulative_density
from assay.measures.straightness import Straightness, curvature, turning_angles

__all__ = [
    "Invariance",
    "Measure",
    "PerturbationResponse",
    "Straightness",
    "curvature",
    "firing_thresholds",
    "gi_score",
    "invariance_scores",
    "pal_score",
    "perturbation_cumulative_density",
    "top_proportion_mean",
    "turning_angles",
]
