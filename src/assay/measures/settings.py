"""Settings of measures as people give them: data of any kind, lists for tuples, a sentence for what does not fit."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal, Union

import numpy as np

from assay.core.errors import AssayError, shown
from assay.core.limits import require_count
from assay.stimuli.datasets import as_images, as_labelled, as_sequences
from assay.stimuli.human import HumanStimuli, as_human_stimuli
from assay.stimuli.images import Images
from assay.stimuli.labelled import Labelled
from assay.stimuli.objects import ObjectPictures, as_object_pictures
from assay.stimuli.sequences import Sequences

_CONVERTERS: Mapping[Any, Any] = {
    Labelled: as_labelled,
    Images: as_images,
    Sequences: as_sequences,
    HumanStimuli: as_human_stimuli,
    ObjectPictures: as_object_pictures,
}
_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "True or False",
    type(None): "None",
}
_LARGEST = 2**63 - 1


def accept_settings(measure: Any) -> None:
    """Make each setting of a measure what its annotation says, where it was given in another form.

    A setting annotated `Labelled`, `Images` or `Sequences` may be given as anything that `as_labelled`, `as_images` or
    `as_sequences` takes. Lists become tuples, and numbers of NumPy become Python's. Anything that does not fit the
    annotation is an `AssayError`; a default is left as it is.

    Args:
        measure: A dataclass of settings, which may be frozen.
    """
    try:
        hints = typing.get_type_hints(type(measure))
    except Exception:  # an annotation that cannot be evaluated says nothing
        hints = {}
    for field in fields(measure):
        given = getattr(measure, field.name)
        if field.default is not MISSING and given is field.default:
            continue
        accepted = _accepted(given, hints.get(field.name, Any), field.name)
        if field.name == "seed" and isinstance(accepted, int) and accepted < 0:
            raise AssayError(f"seed={accepted} must be at least 0")
        if field.name != "seed" and isinstance(accepted, int):
            require_count(f"{field.name}={accepted}", accepted)
        if accepted is not given:
            object.__setattr__(measure, field.name, accepted)


def _accepted(value: Any, hint: Any, name: str) -> Any:
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    if value is None and type(None) in options:
        return None
    for kind, convert in _CONVERTERS.items():
        if kind in options:
            return convert(value, argument=name)
    value = _plain(value, list not in {typing.get_origin(option) or option for option in options})
    if not _fits(value, hint):
        raise AssayError(f"{name}={shown(value)} does not fit: give {_words(hint)}")
    return value


def _plain(value: Any, as_tuple: bool) -> Any:
    """Return a list as a tuple, also inside of lists, and a number of NumPy as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list) and as_tuple:
        return tuple(_plain(item, as_tuple) for item in value)
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that an annotation names; what cannot be told is taken to fit."""
    if _is_union(hint):
        return any(_fits(value, option) for option in typing.get_args(hint))
    origin = typing.get_origin(hint) or hint
    inner = typing.get_args(hint)
    if origin is Literal:
        return any(type(value) is type(option) for option in inner)  # which of them is the measure's to say
    if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        return False
    if origin in (int, float):
        return isinstance(value, (int, float) if origin is float else int) and not isinstance(value, bool)
    if origin is tuple or origin is Sequence:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            return False
        kinds = {kind for kind in inner if kind is not Ellipsis}
        return len(kinds) != 1 or all(_fits(item, *kinds) for item in value)
    if origin is np.ndarray or not isinstance(origin, type):
        return True
    try:
        return isinstance(value, origin)
    except TypeError:  # a protocol that is not checked at runtime
        return True


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _words(hint: Any) -> str:
    """What an annotation asks for, in words."""
    if _is_union(hint):
        return " or ".join(dict.fromkeys(_words(option) for option in typing.get_args(hint)))
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is tuple or origin is Sequence:
        kinds = [kind for kind in dict.fromkeys(inner) if kind is not Ellipsis]
        each = _words(kinds[0]) if len(kinds) == 1 else "values"
        return f"a list, each of which is {each}" if len(kinds) == 1 else "a list"
    if origin in _WORDS:
        return _WORDS[origin]
    module, name = getattr(origin, "__module__", ""), getattr(origin, "__name__", str(origin))
    return f"an assay.stimuli.{name}" if module.startswith("assay.stimuli.") else f"a {name}"
