"""Questions asked of one subject, and the pure functions under them."""

from assay.measures.augmentation import AugmentationRobustness
from assay.measures.base import Measure
from assay.measures.clustering import ClusterSeparation, davies_bouldin_index
from assay.measures.firing import firing_thresholds, invariance_scores, top_proportion_mean
from assay.measures.invariance import Invariance
from assay.measures.margins import Margins
from assay.measures.norms import Norms
from assay.measures.perturbation import PerturbationResponse
from assay.measures.response_curve import gi_score, pal_score, perturbation_cumulative_density
from assay.measures.sharpness import Sharpness
from assay.measures.straightness import Straightness, curvature, turning_angles

__all__ = [
    "AugmentationRobustness",
    "ClusterSeparation",
    "Invariance",
    "Margins",
    "Measure",
    "Norms",
    "PerturbationResponse",
    "Sharpness",
    "Straightness",
    "curvature",
    "davies_bouldin_index",
    "firing_thresholds",
    "gi_score",
    "invariance_scores",
    "pal_score",
    "perturbation_cumulative_density",
    "top_proportion_mean",
    "turning_angles",
]
