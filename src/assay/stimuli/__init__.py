"""What is shown: pictures, sequences of frames, camera motion, and the transforms before a network."""

from assay.stimuli.camera import CameraClip, camera_sequences
from assay.stimuli.gratings import Gratings
from assay.stimuli.pictures import photographs
from assay.stimuli.sequences import (
    ArrayClip,
    Clip,
    ContrastFade,
    FrameFolder,
    PixelFade,
    Sequences,
    Video,
    load_sequences,
)
from assay.stimuli.transforms import Chain, Grey, Normalize, Resize, transform_named

__all__ = [
    "ArrayClip",
    "CameraClip",
    "Chain",
    "Clip",
    "ContrastFade",
    "FrameFolder",
    "Gratings",
    "Grey",
    "Normalize",
    "PixelFade",
    "Resize",
    "Sequences",
    "Video",
    "camera_sequences",
    "load_sequences",
    "photographs",
    "transform_named",
]
