"""A twin of Hollywood2: generated clips of the same shape, at any size, from a seed.

It lets the whole evaluation run where the real data are not at hand. What is measured on it says whether the
harness works, nothing about how good a system is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from assay.broad.data.dataset import Array, Dataset, Inputs
from assay.broad.data.hollywood2 import ACTIONS, TEST, TRAINING, Shape
from assay.broad.data.partition import apportioned
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.stimuli.clips import Clip

# What an action looks like inside its window: brightness at (x, y), in units of the window's radius, at time t in
# cycles. Several share what a single frame shows and differ in how it moves.
PATTERNS: dict[str, Callable[[Array, Array, float], Array]] = {
    "AnswerPhone": lambda x, y, t: np.cos(2 * np.pi * (1.5 * x - t)),  # stripes move right
    "DriveCar": lambda x, y, t: np.cos(2 * np.pi * (1.5 * x + t)),  # stripes move left
    "Eat": lambda x, y, t: np.cos(2 * np.pi * (1.5 * y + 0.4 * math.sin(2 * math.pi * t))),  # stripes nod
    "FightPerson": lambda x, y, t: np.sign(np.cos(6 * x) * np.cos(6 * y) * math.cos(2 * math.pi * t)),  # checks reverse
    "GetOutCar": lambda x, y, t: np.cos(2 * np.pi * (1.5 * np.hypot(x, y) - t)),  # rings grow
    "HandShake": lambda x, y, t: np.cos(2 * np.pi * (1.5 * x + 0.4 * math.sin(2 * math.pi * t))),  # stripes shake
    "HugPerson": lambda x, y, t: np.cos(2 * np.pi * (1.5 * np.hypot(x, y) + t)),  # rings shrink
    "Kiss": lambda x, y, t: np.full_like(x + y, math.cos(2 * math.pi * t)),  # a spot glows and fades
    "Run": lambda x, y, t: np.cos(2 * np.pi * (x + y - 2 * t)),  # slanted stripes move fast
    "SitDown": lambda x, y, t: np.cos(2 * np.pi * (1.5 * y - t)),  # stripes move down
    "SitUp": lambda x, y, t: np.cos(2 * np.arctan2(y, x) - 2 * np.pi * t),  # a bow tie turns
    "StandUp": lambda x, y, t: np.cos(2 * np.pi * (1.5 * y + t)),  # stripes move up
}
# Clips of each action in the training and test set; they add up to the plan's 901 and 972, and have its ranges.
# Marszałek, Laptev, Schmid 2009.
CLASS_SIZES = {
    "training": (66, 85, 40, 54, 51, 32, 64, 114, 135, 104, 24, 132),
    "test": (64, 102, 33, 70, 57, 45, 66, 103, 141, 108, 37, 146),
}
FILMS = {"training": 33, "test": 36}


def generated_clips(
    training: int = 823,
    test: int = 884,
    frames: tuple[int, int] = (40, 80),
    size: tuple[int, int] = (96, 72),
    seed: int = 0,
) -> tuple[Dataset, Dataset]:
    """Generate training and test clips of twelve actions, shaped like Hollywood2.

    With the default sizes they pass `check_hollywood2`.

    Each action is a moving pattern (`PATTERNS`) in a window of random place, radius, contrast and speed; a clip with
    several labels has as many windows. Behind them is a texture, the camera drifts, and every frame has noise of its
    own. Clips of a film (the groups) share the look of the texture and a tint; no film is in both sets. Smaller sets
    keep the proportions, and at least one clip of every action. Frames are made when they are asked for.

    Args:
        training: Number of training clips.
        test: Number of test clips.
        frames: Numbers of frames of the shortest and of the longest clip.
        size: Width and height in pixels.
        seed: Seed of all random draws.

    Example:
        >>> training, test = generated_clips(training=40, test=50, frames=(6, 9), size=(32, 24))
        >>> len(training), len(test), next(training.inputs.items[0].frames()).shape
        (40, 50, (3, 24, 32))
    """
    if not 2 <= frames[0] <= frames[1]:
        raise AssayError(f"frames={frames!r} is not (shortest, longest) of at least 2 frames")
    if min(size) < 8:
        raise AssayError(f"size={size!r} is not (width, height) of at least 8 pixels")
    sets = []
    for part, (name, count, shape) in enumerate((("training", training, TRAINING), ("test", test, TEST))):
        if count < len(ACTIONS):
            raise AssayError(f"{name}={count}: the {len(ACTIONS)} actions need at least {len(ACTIONS)} clips")
        rng = np.random.default_rng([seed, part])
        targets = _labels(count, shape, np.array(CLASS_SIZES[name]), rng)
        films = min(count, max(2, round(FILMS[name] * count / shape.clips)))
        groups = rng.permutation(np.arange(count) % films) + 1_000 * part
        lengths = rng.integers(frames[0], frames[1] + 1, count)
        clips = [
            GeneratedClip(
                f"{name}{i:05d}", (seed, part, i), int(film), tuple(np.flatnonzero(shown).tolist()), int(length), size
            )
            for i, (film, shown, length) in enumerate(zip(groups, targets, lengths, strict=True), 1)
        ]
        ids = tuple(clip.name for clip in clips)
        title = f"generated clips, {name} (seed {seed})"
        sets.append(Dataset(title, "video", Inputs(clips, ids), targets, ACTIONS, groups))
    return sets[0], sets[1]


def _labels(count: int, shape: Shape, sizes: Array, rng: np.random.Generator) -> Array:
    """Draw labels, clips × actions, whose counts per clip and per action have exactly the given proportions."""
    by_labels = apportioned(count, np.array(shape.by_labels))
    left = apportioned(int(by_labels @ [1, 2, 3]), sizes)
    while not left.all():
        left[left.argmin()] += 1
        left[left.argmax()] -= 1
    targets = np.zeros((count, len(sizes)), dtype=bool)
    # Clips with most labels first: what is then left over goes to clips with one label, whatever it is.
    for row, k in enumerate(np.repeat([3, 2, 1], by_labels[::-1])):
        chosen = rng.choice(len(sizes), k, replace=False, p=left / left.sum())
        targets[row, chosen] = True
        left[chosen] -= 1
    return rng.permutation(targets)


@dataclass(frozen=True)
class GeneratedClip(Clip):
    """One generated clip; all of it follows from its fields.

    Args:
        name: Name of the clip.
        seed: Seed of all random draws for this clip.
        film: Number of the film it is from, which gives its texture and tint.
        actions: The actions it shows, as indices into `ACTIONS`.
        length: Number of frames.
        size: Width and height in pixels.
    """

    name: str
    seed: tuple[int, ...]
    film: int
    actions: tuple[int, ...]
    length: int
    size: tuple[int, int]

    def frames(self) -> Iterator[Array]:
        """Draw one frame at a time."""
        return _filmed(self)

    def count(self) -> int:
        """The number of frames of the clip."""
        return self.length

    @property
    def fingerprint(self) -> str:
        """Hash of the clip's fields and of the code that draws it."""
        return fingerprint(_code(), self.seed, self.film, self.actions, self.length, self.size)


@cache
def _code() -> str:
    return fingerprint(_filmed, PATTERNS)


def _filmed(clip: GeneratedClip) -> Iterator[Array]:
    rng = np.random.default_rng(clip.seed)
    film = np.random.default_rng([clip.seed[0], 2, clip.film])
    roughness, tint = film.uniform(0.8, 1.4), film.uniform(0.8, 1.0, (3, 1, 1)).astype(np.float32)
    (width, height), n = clip.size, clip.length
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)
    spectrum = np.fft.rfft2(rng.normal(size=(height, width))) * np.maximum(np.hypot(fx, fy), 1 / height) ** -roughness
    spectrum[0, 0] = 0
    spectrum /= np.fft.irfft2(spectrum, (height, width)).std()
    # The camera moves steadily and sways.
    steady, sway, phase = rng.normal(0, 0.15, 2), rng.uniform(0, 1.5, 2), rng.uniform(0, 2 * np.pi, 2)
    k = len(clip.actions)
    radius = (rng.uniform(0.18, 0.28, k) * height).astype(np.float32)
    contrast = rng.uniform(0.2, 0.4, k).astype(np.float32)
    # Windows side by side, in any order, each anywhere in its share of the width.
    column = (rng.permutation(k) + rng.uniform(0.3, 0.7, k)) / k * width
    row, start, period = rng.uniform(0.3, 0.7, k) * height, rng.uniform(0, 1, k), rng.uniform(8, 14, k)
    y, x = np.arange(height, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)
    for t in range(n):
        dx, dy = steady * t + sway * np.sin(2 * np.pi * t / 40 + phase)
        moved = spectrum * np.exp(-2j * np.pi * fx * dx) * np.exp(-2j * np.pi * fy * dy)
        grey = 0.5 + 0.12 * np.fft.irfft2(moved, (height, width)).astype(np.float32)
        for i, action in enumerate(clip.actions):
            u, v = (x - np.float32(column[i] + dx)) / radius[i], (y - np.float32(row[i] + dy)) / radius[i]
            seen = PATTERNS[ACTIONS[action]](u, v, float(start[i] + t / period[i]))
            grey += contrast[i] * np.exp(-((u**2 + v**2) ** 2)) * seen
        grey += np.float32(0.04) * rng.standard_normal(grey.shape, dtype=np.float32)
        yield np.clip(grey * tint, 0, 1)
