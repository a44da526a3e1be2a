"""Questions asked of one subject, and the pure functions under them."""

from assay.measures.base import Measure
from assay.measures.firing import firing_thresholds, invariance_scores, top_proportion_mean
from assay.measures.invariance import Invariance
from assay.measures.straightness import Straightness, curvature, turning_angles

__all__ = [
    "Invariance",
    "Measure",
    "Straightness",
    "curvature",
    "firing_thresholds",
    "invariance_scores",
    "top_proportion_mean",
    "turning_angles",
]
