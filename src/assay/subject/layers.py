"""Choosing layers: by name, glob, nesting depth or position."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Final

from assay.core.errors import AssayError, nearest

ALL: Final = "ALL"

type_names = "a name, a glob, 'depth=K', a position, a fraction of the depth, or a list of these"
Layers = str | int | float | Sequence[str | int | float]


def choose_layers(known: Sequence[str], wanted: Layers) -> list[str]:
    """Names of the chosen layers, each once, in order of execution.

    ``wanted`` is one of, or a list of:

    - ``ALL``: every layer;
    - an exact name (``"layer1.0.relu#2"``) or a glob (``"layer?.*"``, where ``*`` crosses dots);
    - ``"depth=K"``: modules K levels below the network (``"depth=1"``: its own children);
    - an integer: position in order of execution, negative from the end;
    - a float in [0, 1]: relative depth, 0.0 the first layer and 1.0 the last.

    >>> choose_layers(["conv", "relu", "relu#2", "head.fc"], ["head.*", "relu"])
    ['relu', 'head.fc']
    >>> choose_layers(["conv", "relu", "relu#2", "head.fc"], "depth=1")
    ['conv', 'relu', 'relu#2']
    >>> choose_layers(["conv", "relu"], -1)
    ['relu']
    """
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    chosen: set[str] = set()
    for one in wanted:
        chosen.update(_choose(known, one))
    if not chosen:
        raise AssayError(f"layers={wanted!r} chooses nothing; give {type_names}")
    return [name for name in known if name in chosen]


def _choose(known: Sequence[str], wanted: str | int | float) -> list[str]:
    if isinstance(wanted, bool) or not isinstance(wanted, (str, int, float)):
        raise AssayError(f"layers={wanted!r} is not a choice of layers; give {type_names}")
    if isinstance(wanted, int):
        if not -len(known) <= wanted < len(known):
            raise AssayError(f"layer position {wanted} is out of range: the network has {len(known)} layers")
        return [known[wanted]]
    if isinstance(wanted, float):
        if not 0 <= wanted <= 1:
            raise AssayError(f"layer depth {wanted} is not a fraction in [0, 1]")
        return [known[round(wanted * (len(known) - 1))]]
    if wanted == ALL:
        return list(known)
    if wanted in known:
        return [wanted]
    if wanted.startswith("depth="):
        level = wanted.removeprefix("depth=")
        matching = [name for name in known if str(name.count(".") + 1) == level]
    elif any(c in wanted for c in "*?["):
        matching = [name for name in known if fnmatch.fnmatchcase(name, wanted)]
    else:
        raise AssayError(f"unknown layer {wanted!r}{nearest(wanted, known)}")
    if not matching:
        raise AssayError(f"no layer matches {wanted!r}{nearest(wanted, known)}")
    return matching
