"""Transforms between a stimulus and a network: normalisation, conversion to grey, resizing, cropping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError, nearest
from assay.core.limits import require_array
from assay.core.user_code import import_named


@dataclass(frozen=True)
class Normalize:
    """Normalise each channel to (x − mean) / std, by default with the statistics of ImageNet."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, tuple(float(value) for value in getattr(self, name)))
        if len(self.mean) != len(self.std) or not self.mean:
            raise AssayError(
                f"normalize has {len(self.mean)} means and {len(self.std)} stds: give one of each a channel"
            )
        if not all(value > 0 for value in self.std):
            raise AssayError(f"normalize has std={list(self.std)}: every std must be above 0")

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise pictures N×C×H×W; grey ones are repeated for each channel."""
        if not x.is_floating_point():
            raise AssayError(f"normalize takes floating-point pictures, not {x.dtype}: leave preprocess out for words")
        mean, std = (torch.tensor(v, dtype=x.dtype, device=x.device)[:, None, None] for v in (self.mean, self.std))
        if x.shape[1] == 1:
            x = x.expand(-1, len(self.mean), -1, -1)
        if x.shape[1] != len(self.mean) and len(self.mean) > 1:
            raise AssayError(f"normalize has {len(self.mean)} means, the pictures have {x.shape[1]} channels")
        return (x - mean) / std


@dataclass(frozen=True)
class Grey:
    """Convert N×3×H×W to N×1×H×W by ITU-R 601 luma (0.299, 0.587, 0.114); grey input stays as it is."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the weighted sum of the channels."""
        if x.shape[1] == 1:
            return x
        weights = torch.tensor((0.299, 0.587, 0.114), dtype=x.dtype, device=x.device)
        return torch.einsum("nchw,c->nhw", x, weights)[:, None]


_OF_A_LAYER = 16  # how much more room than a picture its first layer takes, at least: a 3×3 kernel has 9 values


def _resized(x: Tensor, sides: tuple[int, int]) -> Tensor:
    """Pictures N×C×H×W of another height and width."""
    one = f"a network that is shown a picture resized to {sides[0]}×{sides[1]}"
    require_array(one, (x.shape[1], *sides), _OF_A_LAYER * x.element_size())
    require_array(f"{len(x)} pictures resized to {sides[0]}×{sides[1]}", (*x.shape[:2], *sides), x.element_size())
    return F.interpolate(x, sides, mode="bilinear", antialias=True)


@dataclass(frozen=True)
class Resize:
    """Resize pictures to size×size, bilinearly with antialiasing."""

    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Resize pictures N×C×H×W."""
        return _resized(x, (self.size, self.size))


@dataclass(frozen=True)
class ResizeShorter:
    """Resize pictures to a shorter side of this many pixels, their proportions kept, bilinearly with antialiasing."""

    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Resize pictures N×C×H×W."""
        shorter = min(x.shape[-2:])
        sides = [self.size if side == shorter else int(self.size * side / shorter) for side in x.shape[-2:]]
        return _resized(x, (sides[0], sides[1]))


@dataclass(frozen=True)
class Crop:
    """Cut the central size×size out of pictures."""

    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Crop pictures N×C×H×W."""
        height, width = x.shape[-2:]
        if min(height, width) < self.size:
            raise AssayError(f"crop {self.size} is larger than the pictures, {height}×{width}: resize them first")
        top, left = (round((side - self.size) / 2) for side in (height, width))
        return x[..., top : top + self.size, left : left + self.size]


@dataclass(frozen=True)
class Chain:
    """Several transforms, applied one after another."""

    steps: tuple[object, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Apply all transforms in order."""
        for step in self.steps:
            x = step(x)  # type: ignore[operator]
        return x


NAMED: dict[str, tuple[object, ...]] = {
    "imagenet": (Normalize(),),
    "cifar10": (Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),),
    "cifar100": (Normalize((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),),
    "mnist": (Normalize((0.1307,), (0.3081,)),),
    "grey": (Grey(),),
    "none": (),
}
"""Transforms by name: the mean and standard deviation of a training set's pixels, conversion to grey, or nothing."""
SETTABLE = ("normalize", "resize", "crop")
"""Transforms that need a setting."""
WORDS = (*NAMED, "normalize: {mean: […], std: […]}", "resize: N", "crop: N", "module:function")
"""What can be written for a transform, as an error lists it."""


def transform_named(words: str | Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> object | None:
    """Return the transform that a plan writes; None where it is ``none``, that is no transform.

    Args:
        words: A name (``imagenet``, ``cifar10``, ``cifar100``, ``mnist``, ``grey``, ``none``), ``resize=N`` or
            ``crop=N``, several of them joined by commas; a function of the user's, ``module:function``; a mapping such
            as ``{resize: 224}``, ``{resize: {shorter: 256}}``, ``{crop: 224}`` or ``{normalize: {mean: [0.5], std:
            [0.5]}}``; or a list of these, applied in order.

    Example:
        >>> transform_named(["grey", {"resize": 32}])
        Chain(steps=(Grey(), Resize(size=32)))
        >>> transform_named("resize=32,mnist").steps[1]
        Normalize(mean=(0.1307,), std=(0.3081,))
    """
    steps = _steps(words)
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def _steps(words: Any) -> list[object]:
    """The transforms behind what a plan writes, in order."""
    if isinstance(words, (list, tuple)):
        return [step for entry in words for step in _steps(entry)]
    if isinstance(words, Mapping):
        return [_set(str(name), setting) for name, setting in words.items()]
    if isinstance(words, str):
        return [step for part in words.split(",") for step in _part(part.strip())]
    if callable(words):
        return [words]
    raise AssayError(f"preprocess: {words!r} is no transform; known: {', '.join(WORDS)}")


def _part(word: str) -> tuple[object, ...]:
    """The transforms of one word."""
    if word in NAMED:
        return NAMED[word]
    name, equals, setting = word.partition("=")
    if equals and setting.isdigit():
        return (_set(name, int(setting)),)
    if ":" in word:
        function = import_named(word, f"preprocess {word!r}", "'module:function'")
        if isinstance(function, type) or not callable(function):
            raise AssayError(f"preprocess {word!r} is no function from a batch of pictures to another")
        return (function,)
    if word in SETTABLE:
        raise AssayError(f"preprocess {word!r} needs a setting, such as {_example(word)}")
    raise AssayError(f"unknown transform {word!r}{nearest(word, [*NAMED, 'resize=N', 'crop=N', *SETTABLE])}")


def _set(name: str, setting: Any) -> object:
    """A transform with its setting."""
    if name not in SETTABLE:
        hint = "" if name not in NAMED else f": {name!r} takes no setting, write it as a word"
        raise AssayError(f"unknown transform {name!r}{hint or nearest(name, SETTABLE)}")
    if name == "resize" and isinstance(setting, Mapping) and list(setting) == ["shorter"]:
        return ResizeShorter(_pixels("resize: shorter", setting["shorter"]))
    if name in ("resize", "crop"):
        return (Resize if name == "resize" else Crop)(_pixels(name, setting))
    if not isinstance(setting, Mapping) or set(setting) != {"mean", "std"}:
        raise AssayError(f"preprocess: normalize is {setting!r}, expected {_example('normalize')}")
    return Normalize(_numbers("mean", setting["mean"]), _numbers("std", setting["std"]))


def _pixels(name: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise AssayError(f"preprocess: {name} is {value!r}, expected a number of pixels, such as {_example(name)}")
    return value


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        raise AssayError(f"preprocess: normalize has {name}={value!r}, expected one number for each channel")
    return tuple(float(v) for v in values)


def _example(name: str) -> str:
    examples = {"normalize": "normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}", "crop": "crop: 224"}
    return examples.get(name, "resize: 224")
