"""Images that people saw, with the RDMs of their brains or judgements: what a network is compared with."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import AssayError, shown
from assay.core.fingerprint import fingerprint
from assay.core.ties import mean_with_ties
from assay.stimuli.brain import Brain92, load_brain92
from assay.stimuli.datasets import as_images
from assay.stimuli.images import Images
from assay.stimuli.picture_files import PicturesDiffer
from assay.stimuli.pictures import Array, Color
from assay.stimuli.rdm_files import load_rdms
from assay.stimuli.rdms import RdmSet, from_rsatoolbox, require_same_stimuli
from assay.stimuli.thumbnails import stimuli_as_html

_OF_BRAIN92 = "92_brainRDMs.mat"


@dataclass(frozen=True, eq=False)
class HumanStimuli:
    """Images, and the RDMs of the people who saw them, in the order of the images.

    Args:
        images: The images, in any form that `as_images` takes.
        rdms: One RDM per person, or several (sessions), in any form that `RdmSet` takes, or in a file or folder.
        subjects: The person of each RDM, where one person has several; by default every RDM is a person's own.
        names: The names of the images; by default those of their files. Where ``rdms`` names its stimuli too, the names
            and their order must agree.
        categories: Groupings of the images that serve as baselines, each with the category of every image; by default
            the labels of the images, where they have some.

    Example:
        >>> pictures = np.random.default_rng(0).random((3, 1, 8, 8))
        >>> seen = HumanStimuli(pictures, [[0.1, 0.5, 0.4], [0.3, 0.5, 0.2], [0.2, 0.9, 0.3]], ("anna", "anna", "ben"))
        >>> seen
        HumanStimuli(3 images, 3 RDMs of 2 people)
        >>> seen.by_subject["anna"].tolist(), seen.mean.round(6).tolist()      # anna counts no more than ben
        ([0.2, 0.5, 0.30000000000000004], [0.2, 0.7, 0.3])
    """

    images: Images
    rdms: RdmSet
    subjects: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    categories: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        images = as_images(self.images, argument="images")
        rdms = load_rdms(self.rdms) if isinstance(self.rdms, (str, Path)) else self.rdms
        rdms = from_rsatoolbox(rdms) if hasattr(rdms, "pattern_descriptors") else rdms
        rdms = rdms if isinstance(rdms, RdmSet) else RdmSet(rdms)
        if len(images) != rdms.n_stimuli:
            raise AssayError(
                f"there are {len(images)} images, and the RDMs are of {rdms.n_stimuli} stimuli: give the RDMs of these "
                "images, in their order"
            )
        subjects = tuple(map(str, self.subjects)) or rdms.names or tuple(f"person {i + 1}" for i in range(len(rdms)))
        if len(subjects) != len(rdms):
            raise AssayError(f"subjects has {len(subjects)} entries for {len(rdms)} RDMs: name the person of each")
        names = tuple(map(str, self.names)) or images.names or rdms.stimuli
        if names and len(names) != len(images):
            raise AssayError(f"names has {len(names)} entries for {len(images)} images: name each")
        if names:
            require_same_stimuli(
                RdmSet(rdms.vectors[:1], (), names),
                rdms,
                "images",
                "rdms",
                if_reordered="bring the RDMs in the order of the images by rdms.reordered(names)",
                if_different="if they are in the order of the images all the same, give names=rdms.stimuli, or "
                "stimuli=[] to load_human_stimuli and in a plan",
            )
        labels = {} if images.labels is None else {"categories": images.labels}
        categories = {key: np.asarray(value) for key, value in (self.categories or labels).items()}
        for key, value in categories.items():
            if value.shape != (len(images),):
                raise AssayError(f"categories[{key!r}] has shape {value.shape}: give the category of each image")
        given = {"images": images, "rdms": rdms, "subjects": subjects, "names": names, "categories": categories}
        for name, accepted in given.items():
            object.__setattr__(self, name, accepted)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"HumanStimuli({self.description})"

    def _repr_html_(self) -> str:
        captions = self.names or tuple(f"image {i}" for i in range(len(self)))
        facts = {"people": ", ".join(self.by_subject.names), "RDMs": len(self.rdms), "images": self.images.description}
        return stimuli_as_html("Human stimuli", facts, zip(captions, self.images.array, strict=True))

    @property
    def description(self) -> str:
        """The numbers of images, RDMs and people, in a line."""
        return f"{len(self)} images, {len(self.rdms)} RDMs of {len(self.by_subject)} people"

    @cached_property
    def by_subject(self) -> RdmSet:
        """The RDM of each person: the mean of that person's RDMs."""
        return mean_by_person(self.rdms, self.subjects)

    @property
    def mean(self) -> Array:
        """The mean RDM, as an upper triangle, in which every person counts the same."""
        return self.by_subject.mean

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the images, the RDMs and all names."""
        parts = sorted((key, value.tolist()) for key, value in self.categories.items())
        return fingerprint(self.images.fingerprint, self.rdms.fingerprint, self.subjects, self.names, parts)


def mean_by_person(rdms: RdmSet, subjects: Sequence[str]) -> RdmSet:
    """The mean RDM of each person, in the order in which ``subjects``, the person of each RDM, first names them."""
    people = tuple(dict.fromkeys(subjects))
    group = np.array([people.index(name) for name in subjects])
    means = [mean_with_ties(rdms.vectors[group == number]) for number in range(len(people))]
    return RdmSet(means, people, rdms.stimuli)


def load_human_stimuli(
    images: Path,
    rdms: Path,
    subjects: Sequence[str] = (),
    people: Sequence[str] | None = None,
    size: int | None = None,
    color: Color | None = None,
    stimuli: Sequence[str] | None = None,
) -> HumanStimuli:
    """Load images, and the RDMs of people who saw them.

    Where both the pictures and the RDMs have names, as in files of rsatoolbox, the names and their order must agree.

    Args:
        images: Folder of pictures, in the order of their names, or another form that `as_images` takes.
        rdms: File or folder of RDMs (``.npy``, ``.npz``, ``.mat``, ``.h5``), as `load_rdms` takes it.
        subjects: The person of each RDM, where one person has several; by default every RDM is a person's own.
        people: Load the RDMs of these names, in this order; one that is missing is an error.
        size: Side to which the central square of pictures in files is resized.
        color: ``grey`` or ``rgb``, to convert pictures in files to.
        stimuli: The names of the RDMs' stimuli, in the order of rows and columns; by default those that the file gives.
            Give an empty list for RDMs in the order of the pictures whose file calls them otherwise.
    """
    try:
        pictures = as_images(str(images), size=size, color=color, limit=sys.maxsize)
    except PicturesDiffer as error:
        raise error.reworded("size=…", "color='rgb' or color='grey'", " to load_human_stimuli") from None
    return HumanStimuli(pictures, load_rdms(rdms, people, stimuli), tuple(subjects))


def as_human_stimuli(value: Any, argument: str = "stimuli") -> HumanStimuli:
    """Convert what people have to `HumanStimuli`.

    Args:
        value: `HumanStimuli`; the 92-image set (`load_brain92`), or the folder of its files; a folder with the
            sub-folders ``images`` and ``rdms``; or images and RDMs, in a tuple.
        argument: The argument that errors name.
    """
    if isinstance(value, HumanStimuli):
        return value
    if isinstance(value, Brain92):
        return _of_brain92(value)
    if isinstance(value, (str, Path)):
        return _in_folder(Path(value), argument)
    if isinstance(value, tuple) and len(value) in (2, 3):
        return HumanStimuli(*value)
    raise AssayError(
        f"{argument}={shown(value)} is no set of images with RDMs: give assay.stimuli.HumanStimuli, "
        "assay.stimuli.load_brain92(…), or images and RDMs in a tuple"
    )


def _in_folder(folder: Path, argument: str) -> HumanStimuli:
    if (folder / _OF_BRAIN92).exists():
        return _of_brain92(load_brain92(folder))
    if (folder / "images").is_dir() and (folder / "rdms").is_dir():
        return load_human_stimuli(folder / "images", folder / "rdms")
    raise AssayError(
        f"{argument}={str(folder)!r} holds neither {_OF_BRAIN92} nor the folders 'images' and 'rdms': give a folder "
        "that does, or images and RDMs in a tuple"
    )


def _of_brain92(brain: Brain92) -> HumanStimuli:
    people = tuple(name.rsplit(" ", 1)[0] for name in brain.sessions.names)
    labels = brain.images.labels
    groupings = {} if labels is None else {"categories": labels}
    groupings["animacy"] = brain.categories["animate"]
    return HumanStimuli(brain.images, brain.sessions, people, brain.stimuli, groupings)
