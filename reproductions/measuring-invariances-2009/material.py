"""What networks learn from, what chooses their settings, and what tests them: no scene is in two of the three.

Nor is one in two tests: the camera moves over five photographs, and rendered objects wear twelve others.

Photographs come with scikit-learn, scikit-image and Matplotlib; the folder of data, where there is one, adds
``natural_sequences`` (a folder of frames for each scene), ``videos``, ``coil20/coil20_64.npz`` and perhaps ``opencv``,
with cup.mp4 and vtest.avi of OpenCV's documentation (Debian's opencv-doc). Its box.mp4 is not used: it breaks the
rules of H.264 (an IDR unit with a slice that is not intra-coded), and decoders give its frames out of order.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.stimuli import Sequences, load_sequences, turning_objects
from assay.stimuli.pictures import photographs, picture_to_array

Array = np.ndarray[Any, Any]

CAMERA_PICTURES = 5  # the first photographs of `photographs`, over which the camera of the test moves
STILL = {
    "brick": ("skimage", "data/brick.png"),
    "coins": ("skimage", "data/coins.png"),
    "hopper": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "rocket": ("skimage", "data/rocket.jpg"),
}
WORN = {
    "aneurysms": ("skimage", "data/microaneurysms.png"),
    "cell": ("skimage", "data/cell.png"),
    "clock": ("skimage", "data/clock_motion.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "galaxies": ("skimage", "data/hubble_deep_field.jpg"),
    "grass": ("skimage", "data/grass.png"),
    "gravel": ("skimage", "data/gravel.png"),
    "moon": ("skimage", "data/moon.png"),
    "page": ("skimage", "data/page.png"),
    "retina": ("skimage", "data/retina.jpg"),
    "text": ("skimage", "data/text.png"),
    "tissue": ("skimage", "data/ihc.png"),
}  # what rendered objects wear, three objects each
VALIDATION = ("motorcycle", "rocket", "water")  # what the settings of training are chosen by
LEARNED_SEQUENCES = ("carnegie-dam", "chironomus", "ice3", "prairieTer", "smile", "water")
LEARNED_VIDEOS = ("tree",)
SHOWN_SEQUENCES = ("bees", "boats", "egomotion", "leaves-wind", "walking")
SHOWN_VIDEOS = ("bikes", "carphone_pristine", "cockatoo", "realshort")
OPENCV = "opencv"
STREET = ("vtest",)
TURNED = ("cup",)
TEXTURE = 256  # side of the pictures that rendered objects wear
EVERY = 10  # frames between those that are learned from: neighbours show the same


def camera_scenes() -> list[str]:
    """The photographs over which the camera of the video test moves."""
    return [name for name, _ in photographs(None, "grey")][:CAMERA_PICTURES]


def photograph(name: str, size: int | None = None) -> Array:
    """A grey photograph 1×H×W of scikit-image or Matplotlib; with a size, its central square."""
    package, file = (STILL | WORN)[name]
    with resources.as_file(resources.files(package) / file) as path, Image.open(path) as opened:
        return picture_to_array(opened.convert("RGB"), size, "grey")


def still_pictures(data: Path | None) -> dict[str, list[Array]]:
    """Grey pictures 1×H×W by scene, none of which any test shows: photographs, and frames far apart."""
    pictures = {name: [photograph(name)] for name in STILL}
    if data is not None:
        for folder, names in (("natural_sequences", LEARNED_SEQUENCES), ("videos", LEARNED_VIDEOS)):
            for clip in load_sequences(data / folder, color="grey", names=names, step=EVERY):
                pictures[clip.name] = list(clip.frames())
    return pictures


def learned_and_validation(data: Path | None) -> tuple[list[Array], list[Array]]:
    """The pictures that networks learn from, and those by which their settings are chosen."""
    learned: list[Array] = []
    validation: list[Array] = []
    for name, pictures in still_pictures(data).items():
        (validation if name in VALIDATION else learned).extend(pictures)
    return learned, validation


def footage(data: Path, frames: int) -> Sequences:
    """Real footage as it was recorded, at its own size, proportions and rate: videos, a street, natural sequences."""
    clips = [*load_sequences(data / "videos", color="grey", names=SHOWN_VIDEOS, stop=frames)]
    if (data / OPENCV).is_dir():
        clips += load_sequences(data / OPENCV, color="grey", names=STREET, stop=frames)
    return Sequences((*clips, *load_sequences(data / "natural_sequences", color="grey", names=SHOWN_SEQUENCES)), "real")


def turned_by_hand(data: Path, frames: int) -> dict[str, Sequences]:
    """An object that a hand turns before a camera, at half its size, as the paper's videos were reduced."""
    if not (data / OPENCV).is_dir():
        return {}
    return {"turned_by_hand": load_sequences(data / OPENCV, (240, 320), "grey", names=TURNED, stop=frames)}


def rendered_objects(size: int, frames: int, count: int) -> Sequences:
    """Solids that turn by 5° a frame, each in one of the pictures `WORN`; those that wear the same are one scene."""
    textures = {name: photograph(name, TEXTURE) for name in WORN}
    worn = [list(WORN)[i % len(WORN)] for i in range(count)]
    solids = turning_objects(size, frames, count=count, turn_deg=5.0)
    clips = [replace(solid, texture=textures[name], scene=name) for solid, name in zip(solids, worn, strict=True)]
    return Sequences(tuple(clips), solids.source)
