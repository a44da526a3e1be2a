"""Whether data that are used as they are have the size and the colour that were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.core.errors import AssayError
from assay.stimuli.picture_files import Size
from assay.stimuli.pictures import Color

_CHANNELS = {"grey": 1, "rgb": 3}


def require_as_asked(shapes: Iterable[tuple[int, ...]], size: Size | None, color: Color | None, argument: str) -> None:
    """Refuse a size or colour that the data do not have: only files and pictures of PIL are resized and converted.

    Args:
        shapes: The shape of one input, C×H×W or H×W, of each array of inputs. Arrays of other shapes are no pictures,
            which is an error where all of them are such.
        size: The size that was asked for, if any.
        color: The colour that was asked for, if any.
        argument: The argument that the error names.

    Example:
        >>> require_as_asked([(3, 32, 32)], 32, "rgb", "data")
        >>> require_as_asked([(3, 32, 32)], 16, None, "data")
        Traceback (most recent call last):
        assay.core.errors.AssayError: data holds arrays of 3×32×32, which are used as they are and do not follow \
size=16: leave it out, and let the network's preprocess resize them ('resize: 16' in a plan, assay.stimuli.Resize(16))
    """
    if size is None and color is None:
        return
    every = list(shapes)
    if not every:
        return
    pictures = [shape for shape in every if len(shape) in (2, 3)]
    given = {"size": size, "color": color}
    if not pictures:
        named = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        raise AssayError(
            f"{argument} holds arrays of {_in_words(every[0])}, which are no pictures: leave out {' and '.join(named)}"
        )
    sides = (size, size) if isinstance(size, int) else size
    for shape in pictures:
        channels = shape[0] if len(shape) == 3 else 1
        if sides is not None and shape[-2:] != tuple(sides):
            raise _not_followed(argument, shape, f"size={size!r}", _other_size(size))
        if color is not None and channels != _CHANNELS[color]:
            raise _not_followed(argument, shape, f"color={color!r}", _other_color(channels, color))


def _not_followed(argument: str, shape: tuple[int, ...], setting: str, remedy: str) -> AssayError:
    return AssayError(
        f"{argument} holds arrays of {_in_words(shape)}, which are used as they are and do not follow {setting}: "
        f"leave it out, and {remedy}"
    )


def _other_size(size: Any) -> str:
    if not isinstance(size, int):
        return "resize the arrays yourself"
    return f"let the network's preprocess resize them ('resize: {size}' in a plan, assay.stimuli.Resize({size}))"


def _other_color(channels: int, color: Color) -> str:
    if color == "grey" and channels == 3:
        return "let the network's preprocess convert them ('grey' in a plan, assay.stimuli.Grey())"
    return f"give arrays of {_CHANNELS[color]} channel{'s' * (color == 'rgb')}, N×C×H×W"


def _in_words(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "single numbers"
