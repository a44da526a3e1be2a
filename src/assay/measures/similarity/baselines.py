"""What a score is set against: RDMs of the images themselves, of a model of early vision, and of categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.arrays import as_tensor
from assay.measures.similarity.rdm import RunningRdm, category_rdm
from assay.networks.front_ends.retina_v1 import RetinaV1
from assay.stimuli.human import HumanStimuli
from assay.stimuli.transforms import Grey, Resize

Array = np.ndarray[Any, Any]
PIXELS, GREY, EARLY_VISION = "pixels", "grey pixels", "retina and V1"
_SIDE = 128  # pixels of the images that the model of early vision sees
_remembered: dict[tuple[str, str], dict[str, Array]] = {}


def baseline_rdms(stimuli: HumanStimuli, metric: str = "correlation") -> dict[str, Array]:
    """RDMs that need no network with learned weights, by name.

    - ``pixels``: the images as they are; ``grey pixels``: their luma, where they have three channels;
    - ``retina and V1``: the energies of `networks.RetinaV1` at 128×128 pixels, a model of early vision in which nothing
      is learned;
    - one for each of the stimuli's categories: 0 for two images of the same category, 1 for others.

    Those with undefined dissimilarities (correlations with an image of one colour) are left out, and so are constant
    ones. They are computed once for the same stimuli and metric.

    Args:
        stimuli: The images and their categories.
        metric: The metric of the RDMs of pixels and of early vision, as in `RunningRdm`.
    """
    key = (stimuli.fingerprint, metric)
    if key not in _remembered:
        made = _made(stimuli, metric)
        _remembered.clear()  # the last are enough: networks are measured one after the other on the same stimuli
        _remembered[key] = made
    return dict(_remembered[key])


def _made(stimuli: HumanStimuli, metric: str) -> dict[str, Array]:
    images = as_tensor(stimuli.images.array)
    responses = {PIXELS: images}
    if images.shape[1] in (1, 3):
        grey = Grey()(images)
        if images.shape[1] == 3:
            responses[GREY] = grey
        responses[EARLY_VISION] = _early_vision(grey)
    rdms: dict[str, Array] = {}
    for name, values in responses.items():
        running = RunningRdm(metric)
        running.add(values)
        if not len(running.undefined_stimuli()):
            rdms[name] = np.asarray(running.rdm())
    rdms |= {name: category_rdm(labels) for name, labels in stimuli.categories.items()}
    return {name: values for name, values in rdms.items() if np.ptp(values) > 0}


def _early_vision(grey: Tensor) -> Tensor:
    model = RetinaV1(_SIDE).eval()
    with torch.no_grad():
        return torch.cat([model(Resize(_SIDE)(part)) for part in torch.split(grey, 16)])
