"""Novel objects: solids that nobody has seen, each in many views, under many lamps and in many hues.

The paper that matched "Gazoobian" objects published neither its pictures nor the program that made them. This generator
is a design of our own: an object is a smooth union of random rounded boxes, capsules, horns and rings that grow out of
each other, some of them mirrored, and its class is the seed of that shape. All objects are seen under the same
conditions, so that neither colour nor light nor view tells one from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.core.device import device_named
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import OBJECTS, require_array, require_count
from assay.core.progress import report
from assay.stimuli.datasets import as_labelled
from assay.stimuli.images import read_arrays
from assay.stimuli.labelled import Labelled
from assay.stimuli.novel_shapes import random_solid
from assay.stimuli.pictures import Array, Color
from assay.stimuli.ray_marching import render

_RAY_BYTES = 16  # of a ray, as far as all rays of an object are kept at once
COIL20_STEP_DEG = 5.0
_LEAST_HUE_CHANGE_DEG = 45.0


@dataclass(frozen=True, eq=False, repr=False)
class ObjectPictures(Labelled):
    """Pictures of objects, with the conditions under which each was taken; the label of a picture is its object.

    Args:
        inputs: The pictures, N×C×H×W: bytes, or floating point in [0, 1].
        labels: The object that each picture shows, a whole number from 0.
        source: Where the pictures come from, for tables and errors.
        class_names: The names of the objects in the order of their numbers.
        factors: What varies beside the object, by name, such as the rotation: for each picture a number, or a row of
            numbers. Two pictures share a factor if all of these are equal.

    Example:
        >>> pictures = np.zeros((4, 3, 8, 8), dtype=np.uint8)
        >>> ObjectPictures(pictures, np.array([0, 0, 1, 1]), factors={"rotation": np.array([0, 90, 0, 90])})
        ObjectPictures(4 inputs of 3×8×8 in 2 classes from arrays in memory)
    """

    factors: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        factors = {str(name): np.asarray(values) for name, values in self.factors.items()}
        for name, values in factors.items():
            if values.ndim not in (1, 2) or len(values) != len(self):
                shape = "×".join(map(str, values.shape)) or "a single number"
                raise AssayError(f"factors: {name!r} is {shape}, and needs one row for each of {len(self)} pictures")
        object.__setattr__(self, "factors", factors)

    @property
    def fingerprint(self) -> str:
        """Hash of the pictures, the objects and the conditions."""
        return fingerprint(self.inputs, self.labels, dict(self.factors))

    def levels(self) -> Array:
        """Number of the level that each picture has of each factor, pictures × factors; equal numbers, equal level."""
        if not self.factors:
            return np.zeros((len(self), 0), dtype=np.int64)
        columns = (np.unique(v.reshape(len(self), -1), axis=0, return_inverse=True)[1] for v in self.factors.values())
        return np.stack([column.reshape(-1) for column in columns], axis=1)

    def _chosen(self, numbers: Array) -> ObjectPictures:
        plain = super()._chosen(numbers)
        factors = {name: values[numbers] for name, values in self.factors.items()}
        return ObjectPictures(plain.inputs, plain.labels, self.source, self.class_names, factors)


def novel_objects(
    count: int = 50,
    size: int = 64,
    changes: int = 5,
    seed: int = 0,
    samples: int = 2,
    background: float = 0.5,
    device: str = "cpu",
) -> ObjectPictures:
    """Render novel objects, each under the same conditions, in which rotation, light and colour change by themselves.

    The first condition is random. Of the others, ``changes`` differ from it in the rotation alone (the azimuth by 20°
    to 80° and the elevation), as many in the light alone (the direction of the lamp), as many in the colour alone (the
    hue by 45° or more), and as many in all three: an object has 1 + 4·``changes`` pictures.

    The same arguments give the same bytes on the same machine. Between a CPU and a GPU, at most 1 in 1,000 values
    differs by more than 1 of 255 levels, along edges.

    Args:
        count: Number of objects. The first objects are the same however many there are.
        size: Side of the pictures in pixels.
        changes: Number of pictures of each kind of change.
        seed: Seed of the shapes and of the conditions.
        samples: Side of the grid of rays through pixels at edges; 1 is faster and jagged.
        background: Grey value around the object.
        device: Where to render, such as ``"cuda"``.

    Returns:
        Pictures in bytes with the factors ``rotation`` (azimuth and elevation of the viewer in degrees), ``light``
        (azimuth and elevation of the lamp in degrees, as the viewer sees it) and ``color`` (hue in degrees).

    Example:
        >>> objects = novel_objects(count=2, size=8, changes=1)
        >>> objects.shape, objects.labels.tolist(), list(objects.factors)
        ((3, 8, 8), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], ['rotation', 'light', 'color'])
    """
    for name, value, least in (
        ("count", count, 1),
        ("size", size, 1),
        ("changes", changes, 0),
        ("samples", samples, 1),
    ):
        if not isinstance(value, int | np.integer) or value < least:
            raise AssayError(f"{name}={value!r} must be a whole number from {least}")
    there = device_named(device)
    if not 0 <= background <= 1:
        raise AssayError(f"background={background} is no grey value: give a number from 0 to 1")
    require_count(f"count={count} objects", count, OBJECTS)
    require_array(f"{count} objects with changes={changes}, size={size}", (count, 1 + 4 * changes, 3, size, size), 1)
    require_array(f"rendering size={size}, samples={samples}", (1 + 4 * changes, samples**2, size, size), _RAY_BYTES)
    rotation, light, color = conditions(changes, seed)
    views, lamps, hues = (torch.from_numpy(values).float() for values in (rotation, light, color))
    pictures = np.empty((count, len(color), 3, size, size), dtype=np.uint8)
    for number in range(count):
        solid = random_solid(seed, number)
        shown = render(solid, views, lamps, hues, size, samples=samples, background=background, device=there)
        pictures[number] = (shown * 255).round().byte().cpu().numpy()
        report("objects", number + 1, count)
    everywhere = {"rotation": rotation, "light": light, "color": color}
    return ObjectPictures(
        pictures.reshape(-1, 3, size, size),
        np.repeat(np.arange(count), len(color)),
        f"{count} novel objects of seed {seed}, {size} px",
        tuple(f"object{number + 1}" for number in range(count)),
        {name: np.concatenate([values] * count) for name, values in everywhere.items()},
    )


def load_coil20_pictures(path: str | Path, color: Color = "grey") -> ObjectPictures:
    """Load COIL-20, 20 real objects with 72 views each in steps of 5°, as pictures with the factor ``rotation``.

    `load_coil20` gives the same pictures as clips.

    Args:
        path: An ``.npz`` file with ``images``, objects × views × H × W, uint8.
        color: ``"grey"`` for one channel, as they were taken, or ``"rgb"`` for three equal ones.

    Nene, Nayar & Murase 1996, Columbia Object Image Library.
    """
    path = Path(path)
    if not path.is_file() or path.suffix != ".npz":
        raise AssayError(f"coil20: {path} is not an .npz file")
    (views,) = read_arrays(path, "images")
    if views.ndim != 4:
        raise AssayError(f"coil20: images of {path} are {'×'.join(map(str, views.shape))}, not objects × views × H × W")
    if color not in ("grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey' or 'rgb'")
    objects, turns, height, width = views.shape
    return ObjectPictures(
        np.repeat(views.reshape(-1, 1, height, width), 3 if color == "rgb" else 1, axis=1),
        np.repeat(np.arange(objects), turns),
        path.name,
        tuple(f"object{number + 1}" for number in range(objects)),
        {"rotation": np.tile(COIL20_STEP_DEG * np.arange(turns), objects)},
    )


def as_object_pictures(data: Any, *, argument: str = "objects") -> ObjectPictures:
    """Make pictures of objects of labelled data, or of anything that `as_labelled` takes: each class is an object.

    Nothing is then known of the conditions under which they were taken. `ObjectPictures` is returned unchanged.

    Args:
        data: What to make pictures of objects of.
        argument: What an error calls the data.
    """
    if isinstance(data, ObjectPictures):
        return data
    labelled = as_labelled(data, argument=argument)
    return ObjectPictures(labelled.inputs, labelled.labels, labelled.source, labelled.class_names)


def conditions(changes: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """The conditions of all objects: rotation and light, n × 2 each, and hue, n, with n = 1 + 4·``changes``; degrees.

    The first is the one that the others change; see `novel_objects`.
    """
    rng = np.random.default_rng([seed, 1])
    rotation = np.tile([rng.uniform(0, 360), rng.uniform(10, 30)], (1 + 4 * changes, 1))
    light = np.tile([rng.uniform(-50, 50), rng.uniform(20, 55)], (1 + 4 * changes, 1))
    color = np.full(1 + 4 * changes, rng.uniform(0, 360))
    kinds = np.repeat(["", "rotation", "light", "color", "mix"], [1, *[changes] * 4])
    for i, kind in enumerate(kinds):
        if kind in ("rotation", "mix"):
            azimuth = rotation[0, 0] + rng.choice([-1, 1]) * rng.uniform(20, 80)
            rotation[i] = azimuth % 360, rng.uniform(0, 45)
        if kind in ("light", "mix"):
            light[i] = rng.uniform(-75, 75), rng.uniform(0, 75)
        if kind in ("color", "mix"):
            color[i] = (color[0] + rng.uniform(_LEAST_HUE_CHANGE_DEG, 360 - _LEAST_HUE_CHANGE_DEG)) % 360
    return rotation, light, color
