"""Preprocessing in words: what a plan can write under ``preprocess``, and a command after ``--preprocess``."""

from __future__ import annotations

from typing import Any

import yaml

from assay.core.errors import AssayError, first_line

WORDS = {
    "imagenet": "Normalise by the mean and the standard deviation of ImageNet.",
    "cifar10": "Normalise by those of CIFAR-10.",
    "cifar100": "Normalise by those of CIFAR-100.",
    "mnist": "Normalise by those of MNIST.",
    "none": "Leave pictures as they are, in [0, 1]; also where a source brings its own preprocessing.",
    "grey": "Convert to grey by ITU-R 601 luma.",
    "normalize: {mean: […], std: […]}": "Normalise each channel to (x − mean) / std.",
    "resize: N": "Resize to N×N pixels, bilinearly with antialiasing; also written resize=N.",
    "resize: {shorter: N}": "Resize to a shorter side of N pixels, the proportions kept.",
    "crop: N": "Cut out the central N×N pixels; also written crop=N.",
    "module:function": "A function of your own, from a batch N×C×H×W to what the network takes.",
}
"""What can be written for a step of preprocessing, with its meaning."""


def preprocess_from_text(text: str | None) -> Any:
    """What a plan would write under ``preprocess``, from the text of an option.

    Example:
        >>> preprocess_from_text("grey,resize=32")
        'grey,resize=32'
        >>> preprocess_from_text("[{resize: 224}, imagenet]")
        [{'resize': 224}, 'imagenet']
    """
    if text is None:
        return None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise AssayError(f"--preprocess {text} cannot be understood ({first_line(error)})") from error
