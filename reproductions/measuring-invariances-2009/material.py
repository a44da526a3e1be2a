"""What networks learn from, what chooses their settings, and what tests them.

The camera, footage, COIL-20 and the cup show nothing that is learned from or that chooses settings. Rendered objects
do: `turning_objects` wraps the i-th object in the i-th of the nine `photographs`, of which three are learned from and
one is in VALIDATION; the other five are those of the camera.

Photographs come with scikit-learn, scikit-image and Matplotlib; the folder of data, where there is one, adds
``natural_sequences`` (a folder of frames for each scene), ``videos``, ``coil20/coil20_64.npz`` and perhaps ``opencv``,
with cup.mp4 and vtest.avi of OpenCV's documentation (Debian's opencv-doc). Its box.mp4 is not used: it breaks the
rules of H.264 (an IDR unit with a slice that is not intra-coded), and decoders give its frames out of order.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.stimuli import Sequences, load_sequences
from assay.stimuli.pictures import photographs, picture_to_array

Array = np.ndarray[Any, Any]

CAMERA_PICTURES = 5  # the first photographs of `photographs`, over which the camera of the test moves
MORE = {
    "brick": ("skimage", "data/brick.png"),
    "coins": ("skimage", "data/coins.png"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "hopper": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
}
VALIDATION = ("motorcycle", "rocket", "water")  # what the settings of training are chosen by
LEARNED_SEQUENCES = ("carnegie-dam", "chironomus", "ice3", "prairieTer", "smile", "water")
LEARNED_VIDEOS = ("tree",)
SHOWN_SEQUENCES = ("bees", "boats", "egomotion", "leaves-wind", "walking")
SHOWN_VIDEOS = ("bikes", "carphone_pristine", "cockatoo", "realshort")
OPENCV = "opencv"
STREET = ("vtest",)
TURNED = ("cup",)
EVERY = 10  # frames between those that are learned from: neighbours show the same


def camera_scenes() -> list[str]:
    """The photographs over which the camera of the video test moves."""
    return [name for name, _ in photographs(None, "grey")][:CAMERA_PICTURES]


def still_pictures(data: Path | None) -> dict[str, list[Array]]:
    """Grey pictures 1×H×W by scene, none of which the camera or footage shows: photographs, and frames far apart."""
    pictures = {name: [picture] for name, picture in list(photographs(None, "grey"))[CAMERA_PICTURES:]}
    for name, (package, file) in MORE.items():
        with resources.as_file(resources.files(package) / file) as path, Image.open(path) as opened:
            pictures[name] = [picture_to_array(opened, None, "grey")]
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
