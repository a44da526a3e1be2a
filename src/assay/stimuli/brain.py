"""The 92 object images of Kriegeskorte et al. 2008, with the RDMs of human and monkey inferior temporal cortex (IT)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.core.errors import AssayError, nearest
from assay.core.ties import mean_with_ties
from assay.stimuli.images import Images
from assay.stimuli.matlab_files import read_matlab
from assay.stimuli.pictures import Array, Color, picture_to_array
from assay.stimuli.rdms import RdmSet

_STIMULI = 92
_SHAPE = (4, 2)  # subjects, sessions
_PICTURES = "Kriegeskorte_Neuron2008_supplementalData.mat"
_HUMANS = "92_brainRDMs.mat"
_MODELS = "92_modelRDMs.mat"
_BEHAVIOUR = "92_behavRDMs.mat"


@dataclass(frozen=True, eq=False)
class Brain92:
    """The 92 images, their categories, and RDMs of the same images in the same order.

    Attributes:
        images: The images in [0, 1], as they are 92×3×175×175; their labels are names such as ``human face``.
        categories: Whether each image belongs to a category, by its name (``animate``, ``face``, …).
        sessions: The human IT RDMs, 4 subjects × 2 sessions, named ``BE 1`` to ``TI 2``.
        monkey: The RDM of monkey IT.
        models: RDMs of models published with the data (``animacy``, ``HMAX``, ``V1``, …); None without the file.
        behaviour: RDMs of the similarity judgements of 16 people; None without the file.
    """

    images: Images
    categories: dict[str, Array]
    sessions: RdmSet
    monkey: RdmSet
    models: RdmSet | None
    behaviour: RdmSet | None

    @property
    def stimuli(self) -> tuple[str, ...]:
        """The names of the images, in order: their category and number."""
        return self.sessions.stimuli

    @cached_property
    def subjects(self) -> RdmSet:
        """The RDM of each of the four subjects, the mean of the two sessions, as noise ceilings use it."""
        names = tuple(dict.fromkeys(name.rsplit(" ", 1)[0] for name in self.sessions.names))
        return RdmSet([mean_with_ties(own) for own in self.sessions.vectors.reshape(*_SHAPE, -1)], names, self.stimuli)

    @cached_property
    def human(self) -> RdmSet:
        """The mean of the eight human RDMs, which the human-model similarity of a network refers to."""
        return RdmSet(self.sessions.mean, ("human IT",), self.stimuli)


def load_brain92(folder: str | Path, size: int | None = None, color: Color | None = None) -> Brain92:
    """Load the 92-image set from a folder with the ``.mat`` files of rsatoolbox's demonstration data.

    Args:
        folder: The folder with ``92_brainRDMs.mat`` (human RDMs) and ``Kriegeskorte_Neuron2008_supplementalData.mat``
            (images, categories, monkey RDM), and where wanted ``92_modelRDMs.mat`` and ``92_behavRDMs.mat``.
        size: Side to which the images are resized, for networks of small pictures; 175 pixels by default, as they are.
        color: ``grey`` to convert the images; they are ``rgb``.

    Kriegeskorte et al. 2008 (Neuron 60); Mur et al. 2013 (behaviour); data: rsatoolbox, MIT licence.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise AssayError(f"folder={str(folder)!r} is no folder: give the one with {_HUMANS} and {_PICTURES}")
    for file in (_HUMANS, _PICTURES):
        if not (folder / file).exists():
            raise AssayError(f"folder={str(folder)!r} lacks {file}{nearest(file, [p.name for p in folder.iterdir()])}")
    published = read_matlab(folder / _PICTURES)
    entries = _variable(published, "stimuli_92objs", _PICTURES).ravel()
    if len(entries) != _STIMULI:
        raise AssayError(f"{folder / _PICTURES} has {len(entries)} images, not {_STIMULI}")
    labels = np.array([str(entry["category"][0]) for entry in entries])
    stimuli = tuple(f"{label} {number + 1}" for number, label in enumerate(labels))
    pictures = np.stack([entry["image"] for entry in entries]).transpose(0, 3, 1, 2)
    if size is not None or color is not None:
        pictures = np.stack([picture_to_array(Image.fromarray(entry["image"]), size, color) for entry in entries])
    names = [str(np.ravel(name)[0]) for name in _variable(published, "categoryLabels", _PICTURES).ravel()]
    members = _variable(published, "categoryVectors", _PICTURES).astype(bool)
    monkey = _variable(published, "RDMs_mIT_hIT_fig1", _PICTURES).ravel()[0]
    return Brain92(
        Images(np.ascontiguousarray(pictures), labels, str(folder)),
        dict(zip(names, members.T, strict=True)),
        _sessions(folder / _HUMANS, stimuli),
        RdmSet(np.ravel(monkey["RDM"]), ("monkey IT",), stimuli),
        _rdms_of(folder / _MODELS, "Models", stimuli),
        _rdms_of(folder / _BEHAVIOUR, "rdms_behav_92", stimuli),
    )


def _sessions(path: Path, stimuli: tuple[str, ...]) -> RdmSet:
    """The human RDMs in the order subject, session; one that is missing is an error."""
    entries = np.squeeze(_variable(read_matlab(path), "RDMs", path.name))
    if entries.shape != _SHAPE:
        shape = "×".join(map(str, entries.shape))
        raise AssayError(f"{path} has RDMs of {shape} subjects and sessions, not 4×2: a subject or session is missing")
    vectors, names = [], []
    for entry in entries.ravel():
        _, subject, session = (part.strip() for part in str(np.ravel(entry["name"])[0]).split("|"))
        names.append(f"{subject} {session.removeprefix('Session:').strip()}")
        vectors.append(entry["RDM"])
    return RdmSet(vectors, tuple(names), stimuli)


def _rdms_of(path: Path, variable: str, stimuli: tuple[str, ...]) -> RdmSet | None:
    """The RDMs of a file of structures by their names, or None where there is no such file."""
    if not path.exists():
        return None
    entries = _variable(read_matlab(path), variable, path.name).ravel()
    names = tuple(str(np.ravel(entry["name"])[0]) for entry in entries)
    return RdmSet([entry["RDM"] for entry in entries], names, stimuli)


def _variable(variables: dict[str, Any], name: str, file: str) -> Any:
    if name not in variables:
        raise AssayError(f"{file} has no variable {name!r}{nearest(name, list(variables))}")
    return variables[name]
