"""Objects on a turntable: 3-D (out-of-plane) rotation, of photographed and of rendered objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.stimuli.camera import frames_at_once, require_rendered
from assay.stimuli.clips import ArrayClip, Clip
from assay.stimuli.images import load_images
from assay.stimuli.pictures import Array, Color, photographs
from assay.stimuli.sequences import Sequences

Shape = Literal["ellipsoid", "box"]


def load_coil20(path: str | Path) -> Sequences:
    """Load COIL-20, 20 real objects with 72 views each in steps of 5°, as one clip per object.

    Args:
        path: An ``.npz`` file with ``images``, objects × views × H × W, uint8.

    Nene, Nayar & Murase 1996, Columbia Object Image Library.
    """
    path = Path(path)
    if not path.is_file() or path.suffix != ".npz":
        raise AssayError(f"coil20: {path} is not an .npz file")
    views = load_images(path).array
    return Sequences(tuple(ArrayClip(f"object{i + 1}", v) for i, v in enumerate(views)), path.name)


@dataclass(frozen=True, eq=False, repr=False)
class TurningObject(Clip):
    """A textured solid on a turntable, seen orthographically under one fixed lamp, on black.

    Frame t shows the object turned by ``start_deg`` + t·``turn_deg`` around its upright axis, which leans towards
    the viewer by ``lean_deg``. The texture is a picture wrapped around the object by longitude and latitude; the light
    is 0.35 ambient + 0.65 Lambertian.

    Args:
        name: Name of the clip in tables.
        texture: The picture wrapped around the object, C×H×W in [0, 1].
        shape: The solid: ``"ellipsoid"`` or ``"box"``.
        radii: Half axes (across, upright, deep) of the solid; the frame shows −1.2 … 1.2.
        size: Side of the frames in pixels.
        length: Number of frames.
        turn_deg: How far the object turns from one frame to the next, in degrees.
        start_deg: Angle of the object in the first frame, in degrees.
        lean_deg: How far the axis leans towards the viewer, in degrees.
        scene: What clips of it have in common with others, such as the picture they wear; by default each is its own.
    """

    name: str
    texture: Array
    shape: Shape
    radii: tuple[float, float, float]
    size: int
    length: int
    turn_deg: float = 2.0
    start_deg: float = 0.0
    lean_deg: float = 20.0
    scene: str = ""

    def count(self) -> int:
        """Return the number of frames the clip was made with."""
        return self.length

    def frames(self) -> Iterator[Array]:
        """Render the frames in order by casting one ray per pixel, a few frames at a time."""
        texture = torch.from_numpy(np.array(self.texture)).double()[None]
        axis = torch.linspace(-1.2, 1.2, self.size, dtype=torch.float64)
        y, x = torch.meshgrid(-axis, axis, indexing="ij")
        eye = torch.stack([x, y, torch.full_like(x, 10.0)], -1)
        lamp = F.normalize(torch.tensor([-0.5, 0.6, 0.8], dtype=torch.float64), dim=0)
        radii = torch.tensor(self.radii, dtype=torch.float64)
        angles = self.start_deg + self.turn_deg * torch.arange(self.length, dtype=torch.float64)
        for angles_at_once in torch.split(torch.deg2rad(angles), frames_at_once(self.size)):
            turn = _object_to_viewer(angles_at_once, np.radians(self.lean_deg))[:, None]
            origin, ray = eye @ turn, -turn[..., 2:, :]  # the viewer, in the object's own coordinates
            point, normal, hit = (_ellipsoid if self.shape == "ellipsoid" else _box)(origin, ray, radii)
            direction = F.normalize(point / radii, dim=-1)
            longitude = torch.atan2(direction[..., 0], direction[..., 2]) / torch.pi
            latitude = 2 * torch.asin(direction[..., 1].clamp(-1, 1)) / torch.pi
            grid = torch.stack([longitude.abs() * 2 - 1, -latitude], -1)
            copies = texture.expand(len(angles_at_once), -1, -1, -1)
            color = F.grid_sample(copies, grid, mode="bilinear", padding_mode="border", align_corners=True)
            light = 0.35 + 0.65 * (normal * (lamp @ turn)[..., None, :]).sum(-1).clamp_min(0)
            frames = torch.where(hit[:, None], color * light[:, None], 0.0)
            yield from frames.clamp(0, 1).float().numpy()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the texture, the solid and its motion."""
        motion = (self.size, self.length, self.turn_deg, self.start_deg, self.lean_deg)
        return fingerprint("turning object", self.texture, self.shape, self.radii, motion)


def turning_objects(
    size: int = 64,
    length: int = 100,
    color: Color = "grey",
    count: int = 12,
    turn_deg: float = 2.0,
    seed: int = 0,
    pictures: Sequence[str] | None = None,
) -> Sequences:
    """Render turning objects: ellipsoids and boxes of random proportions, wrapped in the pictures of `photographs`.

    The i-th object wears the i-th picture, and after the last comes the first again; those that wear the same are one
    scene.

    Args:
        size: Side of the frames in pixels.
        length: Frames per clip.
        color: ``"rgb"`` or ``"grey"``.
        count: Number of objects.
        turn_deg: How far an object turns from one frame to the next, in degrees.
        seed: Seed of the random proportions, leans and first angles.
        pictures: Names of the photographs that objects wear, in this order; by default all. Leave out those that
            networks learn from or are tested with elsewhere.
    """
    if min(size, length, count) < 1:
        raise AssayError(f"size={size}, length={length}, count={count}: all must be at least 1")
    require_rendered(size, length, count)
    rng = np.random.default_rng(seed)
    textures = _textures(pictures, color)
    shapes: tuple[Shape, Shape] = ("ellipsoid", "box")
    clips = []
    for i in range(count):
        shape = shapes[i % 2]
        radii = rng.uniform(0.45, 0.75 if shape == "box" else 1.0, 3)
        start, lean = rng.uniform(0, 360), rng.uniform(0, 35)
        scene, texture = textures[i % len(textures)]
        clips.append(
            TurningObject(
                f"{shape}-{i}", texture, shape, (radii[0], radii[1], radii[2]),
                size, length, turn_deg, start, lean, scene,
            )
        )  # fmt: skip
    return Sequences(tuple(clips), f"rendered objects, {size} px")


def _textures(names: Sequence[str] | None, color: Color) -> list[tuple[str, Array]]:
    known = dict(photographs(256, color))
    if names is None:
        return list(known.items())
    if isinstance(names, str) or not names:
        raise AssayError(f"pictures={names!r} must be a list of names of photographs: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise AssayError(f"pictures: there is no photograph {name!r}{nearest(name, known)}")
    return [(name, known[name]) for name in names]


def _object_to_viewer(angles: Tensor, lean: float) -> Tensor:
    """Return the rotations from object to viewer, frames × 3 × 3: around the upright axis y, then around x.

    The rows are the viewer's axes.
    """
    c, s = angles.cos(), angles.sin()
    one, zero = torch.ones_like(angles), torch.zeros_like(angles)
    turn = torch.stack([c, zero, s, zero, one, zero, -s, zero, c], -1).reshape(-1, 3, 3)
    k, m = np.cos(lean), np.sin(lean)
    return torch.tensor([[1, 0, 0], [0, k, -m], [0, m, k]], dtype=torch.float64) @ turn


def _ellipsoid(origin: Tensor, ray: Tensor, radii: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where a ray first meets an ellipsoid, the outward normal there, and whether it meets it at all."""
    o, d = origin / radii, ray / radii
    a, b, c = (d * d).sum(-1), (o * d).sum(-1), (o * o).sum(-1) - 1
    discriminant = b * b - a * c
    depth = (-b - discriminant.clamp_min(0).sqrt()) / a
    point = origin + depth[..., None] * ray
    return point, F.normalize(point / radii**2, dim=-1), discriminant > 0


def _box(origin: Tensor, ray: Tensor, radii: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same as `_ellipsoid` for a box, as the intersection of three slabs."""
    # A ray along a slab would divide by zero.
    nonzero = torch.where(ray.abs() < 1e-12, torch.full_like(ray, 1e-12), ray)
    first, second = (-radii - origin) / nonzero, (radii - origin) / nonzero
    near, far = torch.minimum(first, second), torch.maximum(first, second)
    depth, face = near.max(-1)
    point = origin + depth[..., None] * ray
    return point, F.one_hot(face, 3).double() * -nonzero.sign(), depth < far.min(-1).values
