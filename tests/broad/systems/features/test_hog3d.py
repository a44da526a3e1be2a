"""HOG3D: its axes and lengths, votes in closed form, and the obvious computation with loops."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.broad.systems.features.hog3d import (
    DENSE,
    HOLLYWOOD2,
    KTH,
    REDUCED,
    WANG,
    Hog3D,
    Sampling,
    dense_boxes,
    hog3d,
    integral_video,
)
from assay.broad.systems.features.polyhedra import GOLDEN, THRESHOLDS, Polar, Polyhedron, axes
from assay.core.errors import AssayError

SOLIDS = ["icosahedron", "dodecahedron"]
AXES = {solid: axes(solid).numpy() for solid in SOLIDS}
ORIENTATIONS = [Polar(), *(Polyhedron(s, f, n) for s in SOLIDS for f in (False, True) for n in (1, 2))]


def clip_of(seed, shape=(14, 20, 24)):
    return torch.from_numpy(np.random.default_rng(seed).random(shape))


# -- the obvious computation: no integral video, no sharing, one sub-block after another ----------------


def obvious(clip, centres, scales, how):
    clip = np.asarray(clip, dtype=np.float64)
    frames, height, width = clip.shape
    gx, gy, gt = np.zeros_like(clip), np.zeros_like(clip), np.zeros_like(clip)
    for t, y, x in np.ndindex(clip.shape):
        gx[t, y, x] = clip[t, y, min(x + 1, width - 1)] - clip[t, y, x]
        gy[t, y, x] = clip[t, min(y + 1, height - 1), x] - clip[t, y, x]
        gt[t, y, x] = clip[min(t + 1, frames - 1), y, x] - clip[t, y, x]
    rows = []
    for (cx, cy, ct), (sigma, tau) in zip(np.asarray(centres), np.asarray(scales), strict=True):
        sizes = (sigma * how.sigma0, sigma * how.sigma0, tau * how.tau0)
        edges = [
            [math.floor(c - size / 2 + k * size / n + 0.5 + 1e-9) for k in range(n + 1)]
            for c, size, n in zip((cx, cy, ct), sizes, (how.M * how.S, how.M * how.S, how.N * how.S), strict=True)
        ]
        cells = []
        for i, j, k in itertools.product(range(how.M), range(how.M), range(how.N)):
            cell = np.zeros(how.orientation.bins)
            for a, b, c in itertools.product(range(how.S), repeat=3):
                place = tuple(
                    slice(e[n * how.S + m], e[n * how.S + m + 1])
                    for e, n, m in zip(edges[::-1], (k, j, i), (c, b, a), strict=True)
                )
                cell += obvious_votes([gx[place].sum(), gy[place].sum(), gt[place].sum()], how.orientation)
            cells.append(cell)
        length = np.linalg.norm(np.concatenate(cells))
        if length < how.threshold:
            rows.append(np.full(how.dimensions, np.nan))
        elif how.normalise == "cells":
            rows.append(np.concatenate([c / (np.linalg.norm(c) + 0.02 * how.S**3) for c in cells]))
        else:
            cut = np.minimum(np.concatenate(cells) / length, 0.25)
            rows.append(cut / np.linalg.norm(cut))
    return np.array(rows)


def obvious_votes(g, orientation):
    g = np.array(g, dtype=np.float64)
    length = np.linalg.norm(g)
    votes = np.zeros(orientation.bins)
    if length == 0:
        return votes
    if isinstance(orientation, Polyhedron):
        for i, along in enumerate(AXES[orientation.solid] @ g):
            votes[i % orientation.bins] += max(along - THRESHOLDS[orientation.solid] * length, 0)
        return votes * length / np.linalg.norm(votes, orientation.norm)
    if tuple(g) < (0, 0, 0):  # half orientation
        g = -g
    around = math.degrees(math.acos(np.clip(g[1] / (math.hypot(g[0], g[1]) or 1), -1, 1))) if g[0] or g[1] else 0.0
    along = math.degrees(math.acos(g[2] / length))
    width, height = 180 / orientation.around, 180 / orientation.along
    left = int(around // width)
    right_share = around / width - left
    place = min(max(along / height - 0.5, 0), orientation.along - 1)
    low = min(int(place), orientation.along - 1)
    for column, share in ((left, 1 - right_share), (left + 1, right_share)):
        for row, part in ((low, 1 - (place - low)), (low + 1, place - low)):
            if part > 0:
                back = column == orientation.around  # past 180°: the first bin, with time the other way around
                at = (0, orientation.along - 1 - row) if back else (column, row)
                votes[at[0] * orientation.along + at[1]] += length * share * part
    return votes


@pytest.mark.slow
@pytest.mark.parametrize("how", [HOLLYWOOD2, KTH, WANG, replace(KTH, normalise="vector")])
@pytest.mark.requirement("F7")
def test_descriptors_equal_the_obvious_computation(how):
    clip = clip_of(1, (15, 26, 30))
    rng = np.random.default_rng(0)
    sizes = rng.uniform([12, 6], [20, 12], (2, 2))
    centres = rng.uniform(np.c_[sizes[:, :1], sizes] / 2, [30, 26, 15] - np.c_[sizes[:, :1], sizes] / 2)
    scales = sizes / [how.sigma0, how.tau0]
    expected = obvious(clip, centres, scales, how)
    # In float64 only the order of sums differs. In float32 the pixels themselves are rounded, by up to 3e-8.
    np.testing.assert_allclose(hog3d(clip, centres, scales, how), expected, atol=1e-10)
    np.testing.assert_allclose(hog3d(clip.float(), centres, scales, how), expected, atol=1e-5)


small = st.builds(
    Hog3D,
    M=st.integers(1, 3),
    N=st.integers(1, 3),
    S=st.integers(1, 3),
    sigma0=st.just(8),
    tau0=st.just(6),
    orientation=st.sampled_from(ORIENTATIONS),
    normalise=st.sampled_from(["cells", "vector"]),
)


@pytest.mark.slow
@settings(max_examples=20)
@given(small, st.integers(0, 99), st.sampled_from([0.5, 0.75, 1.0]))
def test_boxes_on_a_grid_have_the_descriptors_they_have_alone(how, seed, stride):
    """Grids share sub-blocks where they coincide; with an odd number of them, or three quarters, not all do."""
    clip = clip_of(seed)
    centres, scales = dense_boxes(clip.shape, how, Sampling(8, 6, stride, 2, 2))
    together = hog3d(clip, centres, scales, how)
    alone = torch.cat([hog3d(clip, centres[i : i + 1], scales[i : i + 1], how) for i in range(0, len(centres), 29)])
    torch.testing.assert_close(together[::29], alone, atol=1e-10, rtol=0)
    np.testing.assert_allclose(alone[-1:], obvious(clip, *(v[::29][-1:] for v in (centres, scales)), how), atol=1e-10)


def test_boxes_anywhere_and_on_a_grid_go_two_ways_to_the_same_descriptors(monkeypatch):
    from assay.broad.systems.features import hog3d as module

    clip = clip_of(0)
    centres, scales = dense_boxes(clip.shape, WANG, Sampling(8, 6, 0.5, 1, 1))
    on_grid = hog3d(clip, centres, scales, WANG)
    monkeypatch.setattr(module, "_cells_on_grid", module._cells_one_by_one)
    monkeypatch.setattr(module, "AT_ONCE", 5000)  # several parts
    torch.testing.assert_close(hog3d(clip, centres, scales, WANG), on_grid, atol=1e-10, rtol=0)


def test_integral_video_gives_the_sum_of_gradients_of_any_box():
    clip = clip_of(3, (5, 6, 7))
    sums = integral_video(clip)
    gradients = [torch.zeros_like(clip) for _ in range(3)]
    gradients[0][:, :, :-1], gradients[1][:, :-1], gradients[2][:-1] = (
        clip.diff(dim=2),
        clip.diff(dim=1),
        clip.diff(dim=0),
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        (x1, x2), (y1, y2), (t1, t2) = (np.sort(rng.integers(0, n + 1, 2)) for n in (7, 6, 5))
        box = sums[:, [x1, x2]][:, :, [y1, y2]][..., [t1, t2]].diff(dim=1).diff(dim=2).diff(dim=3).flatten()
        expected = [g[t1:t2, y1:y2, x1:x2].sum() for g in gradients]
        np.testing.assert_allclose(box, expected, atol=1e-12)


# -- reference numbers ------------------------------------------------------------------------------------


def test_icosahedron_has_20_axes_of_length_root_3():
    found = axes("icosahedron")
    corners = set(itertools.product((1.0, -1.0), repeat=3))
    for a, b in itertools.product((1 / GOLDEN, -1 / GOLDEN), (GOLDEN, -GOLDEN)):
        corners |= {(0.0, a, b), (a, b, 0.0), (b, 0.0, a)}
    assert {tuple(v + 0.0 for v in row) for row in found.tolist()} == corners
    np.testing.assert_allclose(found.norm(dim=1), math.sqrt(3), atol=1e-12)


def test_dodecahedron_has_12_axes_in_cyclic_order():
    corners = set()
    for a, b in itertools.product((1.0, -1.0), (GOLDEN, -GOLDEN)):
        corners |= {(0.0, a, b), (a, b, 0.0), (b, 0.0, a)}
    assert {tuple(v + 0.0 for v in row) for row in axes("dodecahedron").tolist()} == corners


@pytest.mark.parametrize(
    ("solid", "cosine", "threshold"),
    [("icosahedron", math.sqrt(5) / 3, 1.290994), ("dodecahedron", 1 / math.sqrt(5), 0.850651)],
)
def test_neighbour_cosines_and_thresholds(solid, cosine, threshold):
    found = axes(solid)
    unit = found / found.norm(dim=1, keepdim=True)
    between = unit @ unit.T - 2 * torch.eye(len(unit))
    np.testing.assert_allclose(between.max(dim=1).values, cosine, atol=1e-12)
    assert round(cosine, 6) == {"icosahedron": 0.745356, "dodecahedron": 0.447214}[solid]
    assert THRESHOLDS[solid] == pytest.approx(cosine * float(found.norm(dim=1)[0]), abs=1e-12)
    assert round(THRESHOLDS[solid], 6) == threshold


def test_second_half_of_the_axes_is_opposite_to_the_first():
    for solid in SOLIDS:
        first, second = axes(solid).chunk(2)
        torch.testing.assert_close(first, -second)


def test_lengths_of_the_published_settings():
    assert (HOLLYWOOD2.dimensions, KTH.dimensions, WANG.dimensions) == (300, 1000, 960)
    assert [o.bins for o in (Polar(5, 3), Polyhedron(), Polyhedron(full=True))] == [15, 10, 20]
    assert [Polyhedron("dodecahedron", full).bins for full in (False, True)] == [6, 12]


# -- votes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solid", SOLIDS)
@pytest.mark.parametrize("full", [False, True])
def test_a_ramp_along_an_axis_votes_only_for_it(solid, full):
    orientation = Polyhedron(solid, full)
    how = Hog3D(1, 1, 1, 6, 6, orientation, "vector")
    t, y, x = torch.meshgrid(*[torch.arange(8.0, dtype=torch.float64)] * 3, indexing="ij")
    for i, (a, b, c) in enumerate(axes(solid).tolist()):
        (found,) = hog3d(0.1 * (a * x + b * y + c * t), [[3, 3, 3]], [[1, 1]], how)
        expected = torch.zeros(orientation.bins, dtype=torch.float64)
        expected[i % orientation.bins] = 1
        # Neighbouring axes are exactly at the threshold; what is left is rounding.
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_polar_bins_have_their_centres_where_they_are_said_to_be():
    for k, j in itertools.product(range(5), range(3)):
        around, along = math.radians(36 * k), math.radians(30 + 60 * j)
        g = torch.tensor([math.sin(around) * math.sin(along), math.cos(around) * math.sin(along), math.cos(along)])
        expected = torch.zeros(15)
        expected[3 * k + j] = 2.0
        torch.testing.assert_close(Polar()(2 * g), expected, atol=2e-6, rtol=0)


def test_polar_votes_are_continuous_across_180_degrees():
    """There, x > 0 meets x < 0: the same orientation as (−x, −y, −t)."""
    for t in (-1.5, -0.2, 0.0, 0.7):
        left, right = (Polar()(torch.tensor([x, -1.0, t], dtype=torch.float64)) for x in (1e-9, -1e-9))
        torch.testing.assert_close(left, right, atol=1e-8, rtol=0)


def rotations(solid):
    """The 60 rotations that leave a solid as it is: all that take its first axis and a neighbour to such a pair."""
    unit = axes(solid) / axes(solid).norm(dim=1, keepdim=True)
    near = (unit @ unit.T - 2 * torch.eye(len(unit))).round(decimals=6)
    pairs = [(i, j) for i in range(len(unit)) for j in range(len(unit)) if near[i, j] == near[0].max()]

    def frame(i, j):
        return torch.stack([unit[i], unit[j], torch.linalg.cross(unit[i], unit[j])], 1)

    return [frame(i, j) @ torch.linalg.inv(frame(*pairs[0])) for i, j in pairs]


@pytest.mark.parametrize("orientation", [o for o in ORIENTATIONS if isinstance(o, Polyhedron)])
def test_rotation_by_a_symmetry_of_the_solid_permutes_bins(orientation):
    found = rotations(orientation.solid)
    assert len(found) == 60
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 50)))
    directions = axes(orientation.solid)
    for rotation in found:
        to = torch.cdist(directions @ rotation.T, directions).argmin(1)[: orientation.bins] % orientation.bins
        torch.testing.assert_close(orientation(rotation @ g)[to], orientation(g), atol=1e-10, rtol=0)


def test_turning_a_clip_by_a_symmetry_permutes_bins_and_cells():
    """(x, y, t) → (y, t, x) is a rotation about (1, 1, 1)."""
    how = Hog3D(2, 2, 2, 8, 8, Polyhedron(full=True))
    clip = clip_of(5, (9, 9, 9))
    turned = clip.permute(2, 0, 1)  # its (t, y, x) is the (x, t, y) of the clip
    plain, found = (hog3d(c, [[4, 4, 4]], [[1, 1]], how).view(2, 2, 2, 20) for c in (clip, turned))
    to = torch.cdist(axes("icosahedron")[:, [1, 2, 0]], axes("icosahedron")).argmin(1)
    torch.testing.assert_close(found.permute(2, 0, 1, 3)[..., to], plain, atol=1e-10, rtol=0)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_sign_flip_leaves_half_orientation_unchanged_and_swaps_full(orientation):
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 100)))
    g = torch.cat([g, torch.eye(3), torch.tensor([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]])], 1)
    half = not (isinstance(orientation, Polyhedron) and orientation.full)
    expected = orientation(g) if half else orientation(g).roll(orientation.bins // 2, 0)
    torch.testing.assert_close(orientation(-g), expected, atol=1e-12, rtol=0)
    if half:
        how = Hog3D(2, 2, 2, 8, 6, orientation)
        places = [[8, 8, 6], [12, 10, 5]], [[1, 1], [1, 1]]
        torch.testing.assert_close(hog3d(1 - clip_of(0), *places, how), hog3d(clip_of(0), *places, how))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_bins_carry_the_length_of_the_gradient(orientation):
    g = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 4, 25)))
    g[:, 0, 0] = 0
    norm = getattr(orientation, "norm", 1)
    np.testing.assert_allclose(np.linalg.norm(orientation(g), norm, axis=0), g.norm(dim=0), atol=1e-12)


def test_contrast_scaling_leaves_the_normalised_vector_unchanged():
    places = [[10, 10, 6], [13, 8, 7]], [[1, 1], [1.2, 1]]
    for how in (WANG, replace(HOLLYWOOD2, normalise="vector", sigma0=12, tau0=8)):
        plain, scaled = (hog3d(a * clip_of(2) + b, *places, how) for a, b in ((1, 0), (0.3, 0.5)))
        torch.testing.assert_close(plain, scaled, atol=1e-10, rtol=0)


def test_contrast_scaling_changes_normalised_cells_only_through_epsilon():
    """h/(‖h‖ + ε) of a·h: cells keep their direction, and their length is a‖h‖/(a‖h‖ + ε)."""
    how = replace(HOLLYWOOD2, sigma0=12, tau0=8)
    plain, scaled = (hog3d(a * clip_of(2), [[10, 10, 6]], [[1, 1]], how).view(20, 15) for a in (1.0, 0.3))
    length, after = plain.norm(dim=1), scaled.norm(dim=1)
    torch.testing.assert_close(plain / length[:, None], scaled / after[:, None], atol=1e-10, rtol=0)
    before = 1.28 * length / (1 - length)  # ε = 0.02·4³
    torch.testing.assert_close(after, 0.3 * before / (0.3 * before + 1.28), atol=1e-10, rtol=0)


def test_boxes_without_contrast_are_marked():
    clip = torch.full((12, 20, 40), 0.5)
    clip[:, :, 20:] = clip_of(0, (12, 20, 20)).float()
    for normalise in ("cells", "vector"):
        how = replace(HOLLYWOOD2, normalise=normalise)
        found = hog3d(clip, [[9, 9, 6], [30, 9, 6]], [[0.75, 0.75]] * 2, how)
        assert found[0].isnan().all() and found[1].isfinite().all()


# -- where boxes are ----------------------------------------------------------------------------------------


def test_dense_boxes_overlap_by_half_and_grow_by_root_2():
    centres, scales = dense_boxes((60, 168, 300))
    sizes = (scales * torch.tensor([24, 12])).numpy()
    expected = {(round(18 * math.sqrt(2) ** i, 6), round(10 * math.sqrt(2) ** j, 6)) for i in range(7) for j in (0, 1)}
    assert {tuple(row) for row in sizes.round(6)} == expected  # of the 8 widths, 18·√2⁷ = 203.6 is above 168 pixels
    smallest = centres[(np.abs(sizes - [18, 10]) < 1e-9).all(1)]
    assert len(smallest) == 32 * 17 * 11  # (300−18)/9 = 31.3, (168−18)/9 = 16.7, (60−10)/5 = 10
    np.testing.assert_allclose(np.diff(np.unique(smallest[:, 0])), 9)
    np.testing.assert_allclose(np.diff(np.unique(smallest[:, 2])), 5)
    half = scales[:, [0, 0, 1]] * torch.tensor([12, 12, 6])
    assert (centres - half).min() >= -1e-9 and (centres + half <= torch.tensor([300, 168, 60]) + 1e-9).all()


@pytest.mark.parametrize("how", [HOLLYWOOD2, KTH, WANG])
def test_dense_boxes_have_the_same_size_in_pixels_whatever_the_descriptor(how):
    for sampling in (DENSE, REDUCED):
        centres, scales = dense_boxes((12, 30, 40), how, sampling)
        expected_centres, expected = dense_boxes((12, 30, 40), HOLLYWOOD2, sampling)
        torch.testing.assert_close(centres, expected_centres)
        support, theirs = torch.tensor([how.sigma0, how.tau0]), torch.tensor([24, 12])
        torch.testing.assert_close(scales * support, expected * theirs)
        assert hog3d(clip_of(0, (12, 30, 40)), centres, scales, how).isfinite().all()


def test_a_clip_too_short_has_no_boxes_and_no_descriptors():
    centres, scales = dense_boxes((9, 100, 100))
    assert len(centres) == 0
    assert hog3d(torch.zeros(9, 100, 100), centres, scales).shape == (0, 300)


def test_boxes_may_touch_the_borders_of_the_clip():
    clip = clip_of(0, (12, 24, 24))
    assert hog3d(clip, [[12, 12, 6]], [[1, 1]]).isfinite().all()


# -- the rest ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same_descriptors():
    clip = clip_of(4, (24, 40, 60)).float()
    for how in (HOLLYWOOD2, KTH, WANG):
        places = dense_boxes(clip.shape, how)
        torch.testing.assert_close(hog3d(clip.cuda(), *places, how).cpu(), hog3d(clip, *places, how), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hog3d(torch.zeros(2, 3, 4, 5), [[1, 1, 1]], [[1, 1]]), "T×H×W"),
        (lambda: hog3d(torch.zeros(20, 30, 30, dtype=torch.uint8), [[1, 1, 1]], [[1, 1]]), "uint8"),
        (lambda: hog3d(torch.full((20, 30, 30), math.nan), [[15, 15, 9]], [[1, 1]]), "NaN"),
        (lambda: hog3d(torch.zeros(20, 30, 30), [[15, 15, 9]], [[1, 1]] * 2), "1 centres have 2 scales"),
        (
            lambda: hog3d(torch.zeros(20, 30, 30), [[15, 15, 9], [9, 15, 9]], [[1, 1]] * 2),
            "box 1 at x=-3, .* not inside",
        ),
        (lambda: hog3d(torch.zeros(20, 30, 30), [[15, 15, 9]], [[0, 1]]), "of 0×0 pixels"),
        (lambda: replace(KTH, M=0), "M=0"),
        (lambda: replace(KTH, normalise="no"), "normalise='no'"),
        (lambda: Sampling(stride=0), "stride=0"),
        (lambda: axes("cube"), "solid='cube'"),
        (lambda: Polyhedron("cube"), "solid='cube'"),
        (lambda: Polyhedron(norm=3), "norm=3"),
        (lambda: Polar(0, 3), "around=0"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
