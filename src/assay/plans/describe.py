"""Settings in words: the name, type, default and meaning of each, from annotations and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.plans.types import described


@dataclass(frozen=True)
class Setting:
    """One setting of a measure, of stimuli or of a network, as a plan writes it.

    Args:
        name: The key.
        type: What its value is, in a few words.
        default: Its default as YAML writes it; None where it must be given.
        meaning: What it means, from the docstring.
    """

    name: str
    type: str
    default: str | None
    meaning: str


def settings_of(factory: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> list[Setting]:
    """The settings of a dataclass or function, in order.

    Example:
        >>> def show(size: int, rate: float = 0.5):
        ...     '''Show something.
        ...
        ...     Args:
        ...         size: Height and width
        ...             in pixels.
        ...         rate: Frames per second.
        ...     '''
        >>> for setting in settings_of(show):
        ...     print(setting.name, setting.type, setting.default, setting.meaning, sep=" | ")
        size | whole number | None | Height and width in pixels.
        rate | number | 0.5 | Frames per second.
    """
    owner = factory.__init__ if inspect.isclass(factory) else factory
    try:
        hints = typing.get_type_hints(owner)
    except NameError:  # a type that is imported for the type checker only
        hints = {}
    meanings = argument_meanings(inspect.getdoc(factory) or "")
    return [
        Setting(name, described(hints.get(name, Any)), _default(factory, parameter), _in_yaml(meanings.get(name, "")))
        for name, parameter in inspect.signature(factory).parameters.items()
        if name not in leave_out
    ]


def _in_yaml(meaning: str) -> str:
    """A meaning in which nothing is called as plans call it."""
    return re.sub(r"\bNone\b", "null", meaning)


def argument_meanings(docstring: str) -> dict[str, str]:
    """The section Args of a docstring in Google style, each entry as one line."""
    section = re.search(r"^( *)Args:\n((?:\1 +.*\n|\s*\n)*)", inspect.cleandoc(docstring) + "\n", re.M)
    if section is None:
        return {}
    meanings: dict[str, str] = {}
    name = ""
    entries = inspect.cleandoc(section[2]).splitlines()
    for line in entries:
        if start := re.match(r"(\w+)(?: \([^)]*\))?: (.*)", line):
            name = start[1]
            meanings[name] = start[2]
        elif name:
            meanings[name] = f"{meanings[name]} {line.strip()}".strip()
    return meanings


def first_sentence(thing: Any) -> str:
    """The first line of a docstring, which says what the thing is."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _default(factory: Callable[..., Any], parameter: inspect.Parameter) -> str | None:
    if parameter.default is inspect.Parameter.empty:
        return None
    default = parameter.default
    if dataclasses.is_dataclass(factory):
        made = next((f.default_factory for f in dataclasses.fields(factory) if f.name == parameter.name), None)
        if made is not None and made is not dataclasses.MISSING:
            default = made()
    return as_yaml(default)


def as_yaml(value: Any) -> str:
    """A default as a plan would write it.

    Example:
        >>> as_yaml(("flip", 0.5)), as_yaml(None), as_yaml(True)
        ('[flip, 0.5]', 'null', 'true')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if value != value:  # NaN stands for a default that depends on other settings
        return "–"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(as_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_yaml(entry)}' for key, entry in value.items())}}}"
    return str(value)
