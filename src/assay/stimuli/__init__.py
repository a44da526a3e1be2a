"""What is shown: pictures, gratings, sequences of frames, objects, and the tests made of them."""

from assay.stimuli.brain import Brain92, load_brain92
from assay.stimuli.camera import CameraClip, camera_sequences, camera_video
from assay.stimuli.clips import ArrayClip, Clip, FrameFolder
from assay.stimuli.datasets import as_images, as_labelled, as_sequences
from assay.stimuli.fades import ContrastFade, PixelFade
from assay.stimuli.families import Family, ParametricTest
from assay.stimuli.footage import load_footage, load_kitti
from assay.stimuli.gratings import Gratings
from assay.stimuli.human import HumanStimuli, as_human_stimuli, load_human_stimuli
from assay.stimuli.images import Images, load_images
from assay.stimuli.invariance_test import ClosedTest, InvarianceTest, OpenTest
from assay.stimuli.labelled import Labelled, load_labelled
from assay.stimuli.natural_video import NaturalVideo
from assay.stimuli.objects import ObjectPictures, as_object_pictures, load_coil20_pictures, novel_objects
from assay.stimuli.perturbations import Mixup, Noise, Perturbation, Transformed
from assay.stimuli.pictures import photographs
from assay.stimuli.rdm_files import load_rdms
from assay.stimuli.rdms import RdmSet
from assay.stimuli.sequences import Sequences, load_sequences
from assay.stimuli.streaming import stream_labelled
from assay.stimuli.text_files import load_texts
from assay.stimuli.texts import Text, Texts, as_texts
from assay.stimuli.transforms import Chain, Crop, Grey, Normalize, Resize, ResizeShorter, transform_named
from assay.stimuli.turntables import TurningObject, load_coil20, turning_objects
from assay.stimuli.video import Video
from assay.stimuli.whitening import fill_range, natural_patches, smooth_contrast, whiten

__all__ = [
    "ArrayClip",
    "Brain92",
    "CameraClip",
    "Chain",
    "Clip",
    "ClosedTest",
    "ContrastFade",
    "Crop",
    "Family",
    "FrameFolder",
    "Gratings",
    "Grey",
    "HumanStimuli",
    "Images",
    "InvarianceTest",
    "Labelled",
    "Mixup",
    "NaturalVideo",
    "Noise",
    "Normalize",
    "ObjectPictures",
    "OpenTest",
    "ParametricTest",
    "Perturbation",
    "PixelFade",
    "RdmSet",
    "Resize",
    "ResizeShorter",
    "Sequences",
    "Text",
    "Texts",
    "Transformed",
    "TurningObject",
    "Video",
    "as_human_stimuli",
    "as_images",
    "as_labelled",
    "as_object_pictures",
    "as_sequences",
    "as_texts",
    "camera_sequences",
    "camera_video",
    "fill_range",
    "load_brain92",
    "load_coil20",
    "load_coil20_pictures",
    "load_footage",
    "load_human_stimuli",
    "load_images",
    "load_kitti",
    "load_labelled",
    "load_rdms",
    "load_sequences",
    "load_texts",
    "natural_patches",
    "novel_objects",
    "photographs",
    "smooth_contrast",
    "stream_labelled",
    "transform_named",
    "turning_objects",
    "whiten",
]


def __dir__() -> list[str]:
    return sorted(__all__)
