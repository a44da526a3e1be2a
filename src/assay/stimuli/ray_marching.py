"""Ray-marching: smooth solids made of parts, seen under a lamp, on any device.

A solid is given by a function that is never larger than the distance to it, so that a ray may safely go that far
without passing through it (sphere tracing, Hart 1996). All of it is elementwise torch, the same on a CPU and a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError

_RAYS_AT_ONCE = {"cpu": 1 << 17}  # what a core's cache holds; elsewhere as many as `_MANY_RAYS`
_MANY_RAYS = 1 << 21
_STEPS = 48
_STEPS_TO_LAMP = 8
_NEAR = 0.1  # a ray that is nearer than this share of a pixel has met the solid
_EYE = 4.0  # distance of the eye from the middle of the solid
_HALF_VIEW = 1.05  # half the side of the square that is seen through the frame, in the plane of the middle
_FOLD = 0.02  # how far from the plane of symmetry mirrored parts are rounded
_EDGE = 0.1  # pixels that differ by more from a neighbour are rendered again with more rays


class Part(NamedTuple):
    """One rounded part of a solid: a box, a capsule or horn (a box that is only high), a ball (no box), or a ring.

    With q = R(p − c), the distance to a box is (‖max(|q| − h, 0)‖ − r − t·clamp(q_y, ±h_y)) / √(1 + t²), and to a ring
    of radius ρ it is ‖(√(q_x² + q_z²) − ρ, q_y)‖ − r.
    """

    center: tuple[float, float, float]
    """c, the middle."""
    turn: tuple[tuple[float, float, float], ...]
    """R, the rotation from the solid's axes to the part's own, as three rows."""
    half: tuple[float, float, float]
    """h, half the sides of the box inside."""
    radius: float
    """r, by which the box or the ring is rounded."""
    taper: float
    """t, how fast r grows along the part's own y."""
    ring: float
    """ρ; 0 for what is no ring."""
    mirrored: bool
    """Whether it is on both sides of the plane x = 0."""
    shade: tuple[float, float]
    """Saturation and brightness of its colour."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A smooth union of rounded parts in the ball of radius 1.

    Its function is f(p) = −b·log Σ_i exp(−d_i(p)/b), with d_i the distance to part i: at most the distance to the
    solid, and 1-Lipschitz, so that a ray may go f(p) on without passing through it.

    Args:
        parts: The parts.
        blend: Width b over which parts flow into each other.
    """

    parts: tuple[Part, ...]
    blend: float

    def part_distances(self, points: Tensor) -> Tensor:
        """Distances of 3 × n points to each part, parts × n."""
        x, y, z = points
        folded = (x * x + _FOLD**2).sqrt()
        distances = torch.empty(len(self.parts), points.shape[1], device=points.device)
        for part, distance in zip(self.parts, distances, strict=True):
            distance.copy_(_distance(part, (folded if part.mirrored else x, y, z)))
        return distances

    def distance(self, points: Tensor) -> Tensor:
        """The solid's function at 3 × n points: at most the distance to it; negative inside."""
        parts = self.part_distances(points)
        nearest = parts.amin(0)
        # exp of less than −60 adds nothing to 1, and numbers that are nearly 0 take a CPU many times as long.
        shares = parts.sub_(nearest).mul_(-1 / self.blend).clamp_min_(-60).exp_()
        return nearest - self.blend * shares.sum(0).log_()


def _distance(part: Part, point: tuple[Tensor, ...]) -> Tensor:
    """Distance of points to one part. Balls, capsules and horns need not be turned around their own axis."""
    offset = [p - c for p, c in zip(point, part.center, strict=True)]
    wide, high, deep = part.half
    round_about = wide == deep == 0
    squared = _squares(offset) if round_about else offset[0]
    if round_about and not high and not part.ring:
        return squared.sqrt_().sub_(part.radius)
    along = _combined(offset, part.turn[1])
    if round_about:
        across = squared.addcmul_(along, along, value=-1).clamp_min_(0)
        if part.ring:
            across = across.sqrt_().sub_(part.ring).square_()
    else:
        sideways = (_combined(offset, part.turn[axis]).abs_().sub_(part.half[axis]).clamp_min_(0) for axis in (0, 2))
        across = _squares([*sideways])
    beyond = along.abs().sub_(high).clamp_min_(0)
    away = across.addcmul_(beyond, beyond).sqrt_().sub_(part.radius)
    if part.taper:
        away = away.sub_(along.clamp_(-high, high), alpha=part.taper).mul_((1 + part.taper**2) ** -0.5)
    return away


def _combined(vectors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    total = vectors[0] * weights[0]
    for vector, weight in zip(vectors[1:], weights[1:], strict=True):
        total.add_(vector, alpha=weight)
    return total


def _squares(vectors: Sequence[Tensor]) -> Tensor:
    total = vectors[0] * vectors[0]
    for vector in vectors[1:]:
        total.addcmul_(vector, vector)
    return total


def render(
    solid: Solid,
    views: Tensor,
    lamps: Tensor,
    hues: Tensor,
    size: int,
    *,
    samples: int = 2,
    background: float = 0.5,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Render pictures of one solid, each from its own side, under its own lamp and in its own hue.

    One ray is cast through the middle of each pixel. A pixel that then differs by more than 0.1 from a neighbour is at
    an edge, and is the mean of ``samples``² rays instead. The light is the lamp's, with soft shadows and a highlight,
    and a little from everywhere, less in hollows.

    Args:
        solid: What is rendered.
        views: Azimuth and elevation of the eye in degrees, pictures × 2.
        lamps: Azimuth and elevation of the lamp in degrees, as seen by the viewer: (0, 0) is behind him, pictures × 2.
        hues: Hue of the solid in degrees, one per picture.
        size: Side of the pictures in pixels.
        samples: Side of the grid of rays through a pixel at an edge; 1 casts one ray through each pixel.
        background: Grey value around the solid.
        device: Where to compute.

    Returns:
        The pictures, pictures × 3 × size × size, in [0, 1], on that device.
    """
    if min(size, samples) < 1:
        raise AssayError(f"size={size}, samples={samples}: both must be at least 1")
    there = torch.device(device)
    seen, lit, colored = (t.float().to(there) for t in (views, lamps, hues))
    scene = _Scene(solid, seen, lit, colored, size, background)
    number, row, column = (t.flatten() for t in _grid(len(views), size, there))
    pictures = scene.colors(number, row + 0.5, column + 0.5).reshape(3, -1, size, size).movedim(0, 1).contiguous()
    if samples > 1:
        number, row, column = _edges(pictures).nonzero(as_tuple=True)
        inside = (torch.arange(samples, device=there) + 0.5) / samples
        rows, columns = (t.reshape(-1, 1) for t in torch.meshgrid(inside, inside, indexing="ij"))
        colors = scene.colors(number.repeat(samples**2), (row + rows).flatten(), (column + columns).flatten())
        pictures[number, :, row, column] = colors.reshape(3, samples**2, -1).mean(1).T
    return pictures


class _Scene:
    """A solid with the sides, lamps and hues of all pictures, which gives the colour of any ray."""

    def __init__(self, solid: Solid, views: Tensor, lamps: Tensor, hues: Tensor, size: int, background: float) -> None:
        self.solid = solid
        self.shades = torch.tensor([part.shade for part in solid.parts], device=views.device)[:, :, None]
        self.size = size
        self.near = _NEAR * 2 * _HALF_VIEW / max(size, 64)
        self.axes = _axes(views)  # pictures × 3 × 3; rows: right, up, towards the eye, in the solid's coordinates
        azimuth, elevation = torch.deg2rad(lamps).T
        seen = torch.stack([azimuth.sin() * elevation.cos(), elevation.sin(), azimuth.cos() * elevation.cos()], 1)
        self.lamps = (seen[:, :, None] * self.axes).sum(1)
        self.hues = hues
        self.background = background

    def colors(self, number: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """Colours, 3 × rays, of the rays through places (row, column) of pictures; a bounded number at a time."""
        step = _RAYS_AT_ONCE.get(number.device.type, _MANY_RAYS)
        rays = zip(*(torch.split(t, step) for t in (number, row, column)), strict=True)
        parts = [self._some_colors(*ray) for ray in rays]
        return torch.cat(parts, 1) if parts else torch.zeros(3, 0, device=number.device)

    def _some_colors(self, number: Tensor, row: Tensor, column: Tensor) -> Tensor:
        right, up, back = self.axes[number].permute(1, 2, 0)
        x, y = (2 * column / self.size - 1) * _HALF_VIEW, (1 - 2 * row / self.size) * _HALF_VIEW
        eye = back * _EYE
        ray = F.normalize(right * x + up * y - eye, dim=0)
        depth = self._march(eye, ray)
        hit = depth.isfinite().nonzero()[:, 0]
        color = torch.full((3, len(number)), self.background, device=number.device)
        if len(hit):
            points = eye[:, hit] + depth[hit] * ray[:, hit]
            color[:, hit] = self._shaded(points, ray[:, hit], number[hit])
        return color

    def _march(self, eye: Tensor, ray: Tensor) -> Tensor:
        """How far along each ray the solid is; infinite where the ray leaves the ball of radius 1 around it first."""
        towards = -(eye * ray).sum(0)
        inside = 1.0 - ((eye * eye).sum(0) - towards * towards)
        half = inside.clamp_min(0).sqrt()
        depths = torch.full_like(towards, torch.inf)
        left = (inside > 0).nonzero()[:, 0]
        ray, last = ray[:, left], (towards + half)[left]
        depth = (towards - half)[left]
        point = eye[:, left] + depth * ray
        for _ in range(_STEPS):
            if not len(left):
                break
            distance = self.solid.distance(point)
            depth, point = depth + distance, point + distance * ray
            near = distance < self.near
            depths[left[near]] = depth[near]
            go_on = (~near & (depth < last)).nonzero()[:, 0]
            left, depth, last, ray, point = left[go_on], depth[go_on], last[go_on], ray[:, go_on], point[:, go_on]
        return depths

    def _shaded(self, points: Tensor, ray: Tensor, number: Tensor) -> Tensor:
        normal = self._normal(points)
        lamp = self.lamps[number].T
        lifted = points + 0.02 * normal
        facing = (normal * lamp).sum(0).clamp_min(0)
        light = facing * self._lit(lifted, lamp)
        hollow = (self.solid.distance(points + 0.15 * normal) / 0.15).clamp(0, 1)
        up = self.axes[number][:, 1].T
        sky = (0.75 + 0.25 * (normal * up).sum(0)) * (0.35 + 0.65 * hollow)
        highlight = (normal * F.normalize(lamp - ray, dim=0)).sum(0).clamp_min(0) ** 32
        shares = torch.softmax(self.solid.part_distances(points) / -self.solid.blend, dim=0)
        saturation, brightness = (shares[:, None] * self.shades).sum(0)
        color = _rgb(self.hues[number], saturation, brightness)
        return (color * (0.34 * sky + 0.74 * light) + 0.22 * highlight * light).clamp(0, 1)

    def _normal(self, points: Tensor) -> Tensor:
        """Direction in which the distance grows, from its differences between the corners of a small tetrahedron."""
        corners = torch.tensor([[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]], device=points.device)[:, :, None]
        slope = sum(corner * self.solid.distance(points + 3e-3 * corner) for corner in corners)
        return F.normalize(torch.as_tensor(slope), dim=0)

    def _lit(self, points: Tensor, lamp: Tensor) -> Tensor:
        """Share of the lamp that each point sees: the least distance of its ray from the solid, by how far it went."""
        share = torch.ones_like(points[0])
        depth = torch.full_like(points[0], 0.03)
        for _ in range(_STEPS_TO_LAMP):
            distance = self.solid.distance(points + depth * lamp)
            share = torch.minimum(share, 6 * distance / depth)
            depth = depth + distance.clamp(0.03, 0.3)
        return share.clamp(0, 1)


def _grid(count: int, size: int, device: torch.device) -> tuple[Tensor, ...]:
    places = torch.arange(size, device=device)
    return torch.meshgrid(torch.arange(count, device=device), places, places, indexing="ij")


def _axes(views: Tensor) -> Tensor:
    """The viewer's axes in the solid's coordinates, views × 3 × 3: right, up and towards the eye."""
    azimuth, elevation = torch.deg2rad(views).T
    zero = torch.zeros_like(azimuth)
    s, c, u, k = azimuth.sin(), azimuth.cos(), elevation.sin(), elevation.cos()
    return torch.stack([c, zero, -s, -s * u, k, -c * u, s * k, u, c * k], 1).reshape(-1, 3, 3)


def _edges(pictures: Tensor) -> Tensor:
    """Which pixels differ from one of their eight neighbours by more than `_EDGE`, pictures × size × size."""
    padded = F.pad(pictures, (1, 1, 1, 1), mode="replicate")
    highest, lowest = F.max_pool2d(padded, 3, 1), -F.max_pool2d(-padded, 3, 1)
    return torch.maximum(highest - pictures, pictures - lowest).amax(1) > _EDGE


def _rgb(hue_deg: Tensor, saturation: Tensor, brightness: Tensor) -> Tensor:
    """Red, green and blue, 3 × n, of hue, saturation and brightness (HSV)."""
    turn = torch.tensor([5.0, 3.0, 1.0], device=hue_deg.device)[:, None]
    sixth = torch.remainder(turn + hue_deg / 60, 6)
    ramp = torch.minimum(sixth, 4 - sixth).clamp(0, 1)
    return brightness * (1 - saturation * ramp)
