"""Stimuli as plans write them: a mapping with one entry, named for its kind, with its settings under it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from assay.core.errors import AssayError, nearest
from assay.plans.data import clips_in, image_set, labelled_data
from assay.plans.settings import Node, build, convert
from assay.plans.types import shown
from assay.stimuli import (
    Family,
    Gratings,
    HumanStimuli,
    Images,
    InvarianceTest,
    Labelled,
    Mixup,
    NaturalVideo,
    Noise,
    ObjectPictures,
    ParametricTest,
    Perturbation,
    Sequences,
    Texts,
    Transformed,
    as_human_stimuli,
    as_object_pictures,
    camera_sequences,
    camera_video,
    load_brain92,
    load_coil20,
    load_coil20_pictures,
    load_human_stimuli,
    load_sequences,
    load_texts,
    novel_objects,
    turning_objects,
)
from assay.stimuli.picture_files import PicturesDiffer
from assay.stimuli.pictures import Color

T = TypeVar("T")
CONTROLS = ("natural", "pixel_fade", "contrast_fade")


def load_sequences_node(node: Node) -> Sequences:
    """Sequences as a plan writes them: one of `SEQUENCES` with its settings, and ``control``; or a folder or file."""
    if isinstance(node.value, str):
        return _from_path(clips_in, "a folder or file of clips")(node)  # type: ignore[no-any-return]
    entries = dict(node.items())
    controls = ["natural"]
    if "control" in entries:
        kinds = entries["control"]
        controls = list(kinds.value) if isinstance(kinds.value, list) else [kinds.value]
        for kind in controls:
            if kind not in CONTROLS:
                kinds.fail(f"{kind!r} is not a condition{nearest(str(kind), CONTROLS)}")
    settings = replace(node, value={k: v for k, v in node.value.items() if k != "control"})
    if "folder" in entries:
        folder = convert(entries["folder"], Path, {})
        rest = replace(node, value={k: v for k, v in settings.value.items() if k != "folder"})
        natural = build(load_sequences, rest, folder=folder)
    elif "path" in entries:
        natural = _from_path(clips_in, "a folder or file of clips")(settings)
    else:
        natural = _one_of(settings, SEQUENCES, "'folder' (frames or videos)")
    by_condition = {
        "natural": lambda: natural,
        "pixel_fade": natural.pixel_fade,
        "contrast_fade": natural.contrast_fade,
    }
    chosen = [by_condition[kind]() for kind in controls]
    return replace(natural, clips=tuple(clip for sequences in chosen for clip in sequences))


def _human_stimuli(node: Node) -> HumanStimuli:
    """Images with RDMs as a plan writes them: ``brain92: FOLDER``, ``images`` and ``rdms``, or a folder of both."""
    if isinstance(node.value, str):
        return _at(node, _in_words_of_a_plan(as_human_stimuli, "'images' and 'rdms'"), convert(node, Path, {}))
    entries = dict(node.items())
    if "brain92" not in entries:
        return build(_in_words_of_a_plan(load_human_stimuli, "'images' and 'rdms'"), node)
    folder = entries.pop("brain92")
    kinds: dict[str, Any] = {"size": int | None, "color": Color | None}
    for key, entry in entries.items():
        if key not in kinds:
            entry.fail(f"unknown key beside 'brain92', the folder of the 92-image set{nearest(key, kinds)}")
    settings = {key: convert(entry, kinds[key], {}) for key, entry in entries.items()}
    return _at(folder, lambda path: as_human_stimuli(load_brain92(path, **settings)), convert(folder, Path, {}))


def _object_pictures(node: Node) -> ObjectPictures:
    """Pictures of objects as a plan writes them: one of `OBJECTS` with its settings, or a folder or file of classes."""
    if isinstance(node.value, dict) and any(key in OBJECTS for key in node.value):
        return _one_of(node, OBJECTS)  # type: ignore[no-any-return]
    return as_object_pictures(STIMULI[Labelled](node))


def _moving(node: Node) -> Sequences:
    motion = node["motion"].value if "motion" in dict(node.items()) else node.fail("lacks the key 'motion'")
    rest = replace(node, value={k: v for k, v in node.value.items() if k != "motion"})
    moving = build(camera_video, rest)
    if not isinstance(motion, str) or motion not in moving:
        node["motion"].fail(f"is {motion!r}, expected one of {', '.join(map(repr, moving))}")
    return moving[motion]


def _texts(node: Node) -> Texts:
    """Texts as a plan writes them: the file under ``path``, and a tokenizer beside the plan or by name."""
    entries = dict(node.items())
    for key in ("path", "tokenizer"):
        if key not in entries:
            node.fail(f"lacks the key {key!r}")
    rest = replace(node, value={k: v for k, v in node.value.items() if k not in ("path", "tokenizer")})
    beside = convert(entries["tokenizer"], Path, {})
    tokenizer = beside if beside.exists() else convert(entries["tokenizer"], str, {})
    return build(load_texts, rest, path=convert(entries["path"], Path, {}), tokenizer=tokenizer)


def _in_words_of_a_plan(load: Callable[..., T], keys: str) -> Callable[..., T]:
    """A loader of pictures whose errors name the keys of a plan to give; ``keys`` are those of what it loads."""

    @functools.wraps(load)
    def loader(*args: Any, **settings: Any) -> T:
        try:
            return load(*args, **settings)
        except PicturesDiffer as error:
            place = f", in a mapping with the key{'s' if ' and ' in keys else ''} {keys}"
            raise error.reworded("size: 32", "color: rgb", place) from None

    return loader


def _from_path(load: Callable[..., Any], places: str) -> Callable[[Node], Any]:
    """A loader that calls ``load`` with the entry ``path``, and the other entries as settings; or with a path alone."""
    in_words_of_a_plan = _in_words_of_a_plan(load, "'path'")

    def loader(node: Node) -> Any:
        if isinstance(node.value, str):
            return _at(node, in_words_of_a_plan, convert(node, Path, {}))
        if not isinstance(node.value, dict):
            node.fail(f"is {shown(node.value)}, expected the path of {places}, or a mapping with the key 'path'")
        entries = dict(node.items())
        if "path" not in entries:
            node.fail(f"lacks the key 'path' ({places})")
        rest = replace(node, value={k: v for k, v in node.value.items() if k != "path"})
        return build(in_words_of_a_plan, rest, path=convert(entries["path"], Path, {}))

    return loader


def _at(node: Node, load: Callable[[Path], T], path: Path) -> T:
    """Load from a path; what is wrong with it is said with the place in the plan."""
    try:
        return load(path)
    except AssayError as error:
        raise AssayError(f"{node.where}: {error}") from error


def _perturbation(node: Node) -> Perturbation:
    """A perturbation as a plan writes it: ``mixup: inter``, ``noise: {}`` or ``function: rotation``."""
    kinds: dict[str, Callable[..., Perturbation]] = {"mixup": Mixup, "noise": Noise, "function": Transformed}
    names = {"mixup": "kind", "function": "function"}
    entries = dict(node.items())
    named = [key for key in entries if key in kinds]
    if len(named) != 1:
        node.fail(f"needs exactly one of {', '.join(map(repr, kinds))}")
    (kind,) = named
    settings = {k: v for k, v in node.value.items() if k != kind}
    if kind in names:
        settings[names[kind]] = node.value[kind]
    return build(kinds[kind], replace(node, value=settings))


def _one_of(node: Node, kinds: Mapping[str, Callable[[Node], Any]], more: str = "") -> Any:
    """Load the one entry of a mapping by the function for its kind."""
    known = [*([more] if more else []), *(f"'{kind}'" for kind in kinds)]
    named = [key for key, _ in node.items() if key in kinds]
    if len(node.value) != 1 or len(named) != 1:
        extra = next((key for key in node.value if key not in kinds), None)
        hint = "" if extra is None else f"; {extra!r} is none of them{nearest(extra, kinds)}"
        node.fail(f"needs exactly one of {', '.join(known)}, with its settings under it{hint}")
    return kinds[named[0]](node[named[0]])


SEQUENCES: dict[str, Callable[[Node], Any]] = {
    "camera": lambda node: build(camera_sequences, node),
    "moving": _moving,
    "objects": lambda node: build(turning_objects, node),
    "coil20": lambda node: build(load_coil20, replace(node, value={}), path=convert(node, Path, {})),
    "texts": _texts,
}
OBJECTS: dict[str, Callable[[Node], Any]] = {
    "novel": lambda node: build(novel_objects, node),
    "coil20": _from_path(load_coil20_pictures, "the .npz file of COIL-20"),
}
TESTS: dict[str, Callable[[Node], Any]] = {
    "gratings": lambda node: build(Gratings, node),
    "video": lambda node: build(NaturalVideo, node, STIMULI),
    "parametric": lambda node: build(ParametricTest, node, STIMULI),
}
STIMULI: dict[Any, Callable[[Node], Any]] = {
    Sequences: load_sequences_node,
    Images: _from_path(image_set, "a folder of pictures, or an .npz, .npy or .csv file"),
    Labelled: _from_path(labelled_data, "a folder of class folders or IDX files, or an .npz, .npy or .csv file"),
    Perturbation: _perturbation,
    Family: lambda node: build(Family, node),
    InvarianceTest: lambda node: _one_of(node, TESTS),
    HumanStimuli: _human_stimuli,
    ObjectPictures: _object_pictures,
}
FACTORIES: dict[str, dict[str, Callable[..., Any]]] = {
    "sequences": {
        "folder": load_sequences,
        "camera": camera_sequences,
        "moving": camera_video,
        "objects": turning_objects,
        "coil20": load_coil20,
        "texts": load_texts,
    },
    "tests of invariance": {"gratings": Gratings, "video": NaturalVideo, "parametric": ParametricTest},
    "data": {"labelled data": labelled_data, "images": image_set},
    "pictures of objects": {"novel": novel_objects, "coil20 pictures": load_coil20_pictures},
    "images with human RDMs": {"brain92": load_brain92, "images with RDMs": load_human_stimuli},
}
"""What makes the stimuli that plans write, by group and key: the source of their documentation."""
HIDDEN: dict[str, tuple[str, ...]] = {"coil20": ("path",), "folder": ("folder",), "brain92": ("folder",)}
"""Settings that are the value of the key itself."""
