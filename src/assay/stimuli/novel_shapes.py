"""Shapes of novel objects: random solids whose parts grow out of each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assay.stimuli.pictures import Array
from assay.stimuli.ray_marching import Part, Solid


class _Draft(NamedTuple):
    """A `Part` before it is scaled."""

    center: Array
    turn: Array
    half: Array
    radius: float
    taper: float
    ring: float
    mirrored: bool
    shade: tuple[float, float]


def random_solid(seed: int, number: int = 0) -> Solid:
    """A random object: a body, and 3 to 6 parts that grow out of it or out of each other; it fits the ball of radius 1.

    Args:
        seed: Seed of a set of objects.
        number: Number of the object in the set.

    Example:
        >>> solid = random_solid(seed=0, number=3)
        >>> import torch
        >>> bool(solid.distance(torch.tensor([[2.0], [0.0], [0.0]])) >= 1)      # the ball is 1 away
        True
    """
    rng = np.random.default_rng([seed, 0, number])
    parts = [_body(rng)]
    for _ in range(rng.integers(3, 7)):
        parts.append(_grown(rng, parts))
    centers, turns, halves, radii, tapers, rings, mirrored, shades = (np.array(c) for c in zip(*parts, strict=True))
    blend = float(rng.uniform(0.02, 0.06))
    # The ends of all parts: the corners of the boxes inside them, and those of the squares around rings.
    signs = np.stack(np.meshgrid(*[[-1, 1]] * 3), -1).reshape(-1, 3)
    flat = np.array([1, 0, 1]) * rings[:, None] / np.sqrt(2)
    ends = centers[:, None] + (signs * (halves + flat)[:, None]) @ turns
    middle = np.array([0, *(ends[..., 1:].max((0, 1)) + ends[..., 1:].min((0, 1))) / 2])
    thickness = radii + np.abs(tapers) * halves[:, 1] * (halves[:, 1] > 0)
    reach = np.linalg.norm(ends - middle, axis=2) + thickness[:, None]
    scale = 1 / (reach.max() + blend * np.log(2))
    columns = (
        (centers - middle) * scale, turns, halves * scale, radii * scale, tapers, rings * scale, mirrored, shades,
    )  # fmt: skip
    return Solid(tuple(Part(*row) for row in zip(*(column.tolist() for column in columns), strict=True)), blend * scale)


def _body(rng: np.random.Generator) -> _Draft:
    """The part in the middle; it is turned around x alone, so that it is the same on both sides of the plane x = 0."""
    halves = rng.uniform(0.0, [0.35, 0.45, 0.35])
    turn = _pointing(rng, np.array([0.0, *rng.normal(size=2)]), np.array([1.0, 0.0, 0.0]))
    return _Draft(np.zeros(3), turn, halves, rng.uniform(0.2, 0.45), 0.0, 0.0, False, _shade(rng))


def _grown(rng: np.random.Generator, parts: list[_Draft]) -> _Draft:
    """A part whose end is in another part, and which points away from it."""
    number = rng.integers(len(parts)) if rng.random() < 0.5 else 0
    parent = parts[number]
    outward = rng.normal(size=3)
    # On a part that is on one side only, a mirrored part would float on the other side.
    mirrored = bool(rng.random() < 0.6) and (number == 0 or parent.mirrored)
    if mirrored:
        outward[0] = abs(outward[0]) + 0.5
    outward /= np.linalg.norm(outward)
    # Where a ray from the middle of the parent leaves the box inside it: the new part begins near its surface.
    direction = parent.turn @ outward
    within = np.min(parent.half / np.maximum(np.abs(direction), 1e-6)) if parent.ring == 0 else parent.ring
    root = parent.center + outward * (within + 0.7 * parent.radius)
    turn = _pointing(rng, outward)
    kind = rng.choice(["ball", "limb", "horn", "slab", "ring"], p=[0.15, 0.25, 0.25, 0.2, 0.15])
    if kind == "ball":
        radius = rng.uniform(0.15, 0.3)
        return _Draft(root + outward * 0.5 * radius, turn, np.zeros(3), radius, 0.0, 0.0, mirrored, _shade(rng))
    if kind in ("limb", "horn"):
        half = rng.uniform(0.2, 0.5)
        radius = rng.uniform(0.08, 0.16)
        taper = -0.85 * radius / half * rng.uniform(0.6, 1.0) if kind == "horn" else 0.0
        if kind == "horn":
            radius *= 1.3
        halves = np.array([0, half, 0])
        return _Draft(root + outward * 0.9 * half, turn, halves, radius, taper, 0.0, mirrored, _shade(rng))
    if kind == "slab":
        halves = np.array([rng.uniform(0.15, 0.35), rng.uniform(0.15, 0.4), 0.02])
        center, radius = root + outward * 0.8 * halves[1], rng.uniform(0.05, 0.09)
        return _Draft(center, turn, halves, radius, 0.0, 0.0, mirrored, _shade(rng))
    ring = rng.uniform(0.18, 0.32)
    upright = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]) @ turn  # the ring's plane has the outward direction in it
    radius = rng.uniform(0.06, 0.1)
    return _Draft(root + outward * ring, upright, np.zeros(3), radius, 0.0, ring, mirrored, _shade(rng))


def _shade(rng: np.random.Generator) -> tuple[float, float]:
    """Saturation and brightness of a part."""
    return rng.uniform(0.35, 0.75), rng.uniform(0.75, 1.0)


def _pointing(rng: np.random.Generator, outward: Array, other: Array | None = None) -> Array:
    """A rotation into a part's own axes: y points outward, and x as far as possible along ``other`` or at random."""
    y = outward / np.linalg.norm(outward)
    sideways = rng.normal(size=3) if other is None else other
    x = sideways - (sideways @ y) * y
    x /= np.linalg.norm(x)
    return np.stack([x, y, np.cross(x, y)])
