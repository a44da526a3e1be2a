"""The statistics of the periphery model: counted, on pictures whose values are known, and against plain arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch

from assay import AssayError, Subject
from assay.networks import Periphery
from assay.networks.front_ends.texture_pyramid import Layout
from assay.networks.front_ends.texture_statistics import labels

SIZE = 64
LABELS = labels(Layout(SIZE, 4, 4))
WEIGHTS = {
    "mean": 2, "variance": 1, "skew": 1, "kurtosis": 1, "band-pass variance": 40, "edge mean": 10,
    "edge variance": 80, "edge stop": 100, "edge correlation": 80, "phase correlation": 400,
}  # fmt: skip
A4 = 2 / math.sqrt(5)  # the largest gain of one of four orientations


def statistics(picture, **settings):
    """The statistics without their weights, by name."""
    model = Periphery(len(picture), **settings)
    values = model(torch.tensor(picture[None, None], dtype=torch.float32))[0].double().numpy()
    weights = [WEIGHTS[label.kind] * math.sqrt(2) ** label.level for label in LABELS]
    return dict(zip(model.names, values / weights, strict=True))


def of_kind(values, kind):
    return {label.name: values[label.name] for label in LABELS if label.kind == kind}


def test_there_are_150_statistics_of_the_published_kinds():
    assert Counter(label.kind for label in LABELS) == {
        "mean": 1, "variance": 6, "skew": 5, "kurtosis": 5, "band-pass variance": 1, "edge mean": 16,
        "edge variance": 16, "edge stop": 16, "edge correlation": 36, "phase correlation": 48,
    }  # fmt: skip
    names = Periphery(SIZE).names
    assert len(names) == len(set(names)) == 150 and names == tuple(label.name for label in LABELS)
    between = [label for label in LABELS if " and " in label.name and "° and" not in label.name]
    assert Counter(label.kind for label in between) == {"edge correlation": 12, "phase correlation": 24}


def test_every_statistic_is_multiplied_by_its_weight_and_the_root_of_two_for_each_level():
    picture = torch.rand(1, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    plain = Periphery(SIZE, weights=dict.fromkeys(WEIGHTS, 1.0), level_gain=1.0)(picture)
    expected = torch.tensor([WEIGHTS[label.kind] * math.sqrt(2) ** label.level for label in LABELS])
    torch.testing.assert_close(Periphery(SIZE)(picture), plain * expected)


def test_a_flat_picture_has_moments_and_no_edges():
    values = statistics(np.full((SIZE, SIZE), 0.6), periodic=True)
    assert values["mean of the picture"] == pytest.approx(0.6)
    for kind, power in (("variance", 2), ("skew", 3), ("kurtosis", 4)):
        assert list(of_kind(values, kind).values()) == pytest.approx([0.6**power] * (5 + (power == 2)), rel=1e-5)
    for label in LABELS:
        if "edge" in label.kind or label.kind in ("phase correlation", "band-pass variance"):
            assert values[label.name] == pytest.approx(0, abs=1e-6)


AMPLITUDES, PHASES = (0.05, 0.1, 0.08, 0.12, 0.07), (0.0, 0.4, -1.1, 2.0, 0.9)


def waves(size=SIZE):
    """A ground, the wave of the highest frequency, and one at the middle of each level: all other levels give it 0."""
    x = np.arange(size)
    found = [0.5]
    for level, (amplitude, phase) in enumerate(zip(AMPLITUDES, PHASES, strict=True)):
        found.append(amplitude * np.cos(2 * np.pi * (size >> (level + 1)) * x / size + phase))
    return found


@pytest.mark.parametrize("direction", ["across columns", "across rows"])
def test_waves_at_the_middle_of_every_level_have_known_statistics_of_every_kind(direction):
    """At r = 2^−level low- and high-pass are 1, so that a wave of amplitude A has edges of A·a·|cos³| everywhere."""
    ground, highest, *levels = waves()
    line = ground + highest + sum(levels)
    picture = np.tile(line, (SIZE, 1))
    values = statistics(picture if direction == "across columns" else picture.T, periodic=True)

    assert values["mean of the picture"] == pytest.approx(line.mean())
    assert values["variance of the picture"] == pytest.approx((line**2).mean(), rel=1e-5)
    assert values["variance of the high-pass"] == pytest.approx(AMPLITUDES[0] ** 2, rel=1e-4)
    for level in range(1, 6):
        low = ground + sum(levels[level - 1 :], np.zeros(SIZE))
        low = low[:: 2 ** (level - 1)]  # the pixels that it has
        assert values[f"variance of low-pass {level}"] == pytest.approx(np.mean(low**2), rel=1e-5)
        assert values[f"skew of low-pass {level}"] == pytest.approx(np.mean(low**3), rel=1e-5)
        assert values[f"kurtosis of low-pass {level}"] == pytest.approx(np.mean(low**4), rel=1e-5)

    wave = 0 if direction == "across columns" else math.pi / 2
    angles = {f"{45 * k}°": math.cos(wave - math.pi * k / 4) ** 3 for k in range(4)}
    tight = {"rel": 1e-4, "abs": 1e-6}  # float32 through two transforms
    for level in range(1, 5):
        strength = {angle: AMPLITUDES[level] * A4 * gain for angle, gain in angles.items()}
        for angle, a in strength.items():
            assert values[f"edge mean {level}, {angle}"] == pytest.approx(abs(a), **tight)
            assert values[f"edge variance {level}, {angle}"] == pytest.approx(a**2, **tight)
            assert values[f"edge stop {level}, {angle}"] == pytest.approx(0, abs=1e-8)  # equal everywhere
        for (j, a), (k, b) in combinations(strength.items(), 2):
            assert values[f"edge correlation {level}, {j} and {k}"] == pytest.approx(abs(a * b), **tight)
            assert values[f"phase correlation {level}, {j} and {k}"] == pytest.approx(a * b / 2, **tight)
        if level == 4:
            continue
        # The coarser wave has half the frequency; with its phase doubled it keeps step with the finer one.
        lag = 2 * PHASES[level + 1] - PHASES[level]
        for angle, a in strength.items():
            b = AMPLITUDES[level + 1] * A4 * angles[angle]
            assert values[f"edge correlation {level} and {level + 1}, {angle}"] == pytest.approx(abs(a * b), **tight)
            name = f"phase correlation {level} and {level + 1}, {{}} {angle}"
            assert values[name.format("real")] == pytest.approx(abs(a * b) / 2 * math.cos(lag), **tight)
            # Below its gain's sign a band holds the negative frequency, which runs backwards.
            expected = math.copysign(abs(a * b) / 2 * math.sin(lag), a * math.sin(lag))
            assert values[name.format("imaginary")] == pytest.approx(expected, **tight)


def gain(cycles_x, cycles_y, level, k):
    """The gain of one plane wave in the real band k of a level, by the formulas."""
    r, turn = math.hypot(cycles_x, cycles_y) / (SIZE / 2), math.atan2(cycles_y, cycles_x)

    def low(r):
        return 1.0 if r <= 0.5 else 0.0 if r >= 1 else math.cos(math.pi / 2 * math.log2(2 * r))

    radial = low(r * 2 ** (level - 1)) * math.sqrt(1 - low(r * 2**level) ** 2)
    return radial * A4 * math.cos(turn - math.pi * k / 4) ** 3


@pytest.mark.parametrize(("level", "k"), [(level, k) for level in (1, 2, 3) for k in range(4)])
def test_edge_stop_of_an_edge_whose_strength_changes_along_it_is_known(level, k):
    """Two waves of one direction across, and of ±ν along, make an edge of strength |g₁ + g₂·exp(2iνs)|."""
    turn = k * math.pi / 4
    u = np.array([round(math.cos(turn)), round(math.sin(turn))])
    v = np.array([-u[1], u[0]])
    # On a diagonal u has the length √2: three quarters as many cycles are in the same level.
    across = (SIZE >> (level + 1)) * (3 if k % 2 else 4) // 4
    first, second = across * u + v, across * u - v
    rows, columns = np.mgrid[:SIZE, :SIZE]

    def wave(cycles):
        return np.cos(2 * np.pi * (cycles[0] * columns + cycles[1] * rows) / SIZE)

    values = statistics(0.5 + 0.2 * wave(first) + 0.1 * wave(second), periodic=True)
    step = 2 ** (level - 1)
    turned = 2 * np.pi * ((first - second)[0] * columns + (first - second)[1] * rows)[::step, ::step] / SIZE
    magnitude = np.abs(0.2 * gain(*first, level, k) + 0.1 * gain(*second, level, k) * np.exp(-1j * turned))
    down, left = round(2**level * math.cos(turn)), round(2**level * math.sin(turn))
    side, total = len(magnitude), 0.0
    for i in range(side):
        for j in range(side):
            if 0 <= i + down < side and 0 <= j - left < side:
                total += (magnitude[i, j] - magnitude[i + down, j - left]) ** 2
    assert values[f"edge mean {level}, {45 * k}°"] == pytest.approx(magnitude.mean(), rel=1e-4)
    assert values[f"edge stop {level}, {45 * k}°"] == pytest.approx(total / side**2, rel=1e-3, abs=1e-9)
    assert total > 0


def plain_statistics(picture, margin):
    """All statistics by loops over the definitions, in NumPy and float64: every image by a transform of its own."""
    size = len(picture)
    spectrum = np.fft.fftshift(np.fft.fft2(np.pad(picture, margin)))
    whole = len(spectrum)
    axis = (np.arange(whole) - whole // 2) / (whole // 2)
    x, y = np.meshgrid(axis, axis)
    r, theta = np.hypot(x, y), np.arctan2(y, x)

    def low(level):
        scaled = r * 2.0**level
        ramp = np.cos(np.pi / 2 * np.log2(2 * np.clip(scaled, 0.5, 1)))
        return np.where(scaled <= 0.5, 1, np.where(scaled >= 1, 0, ramp))

    def image(filtered, reduction):
        side, keep = whole // reduction, size // reduction
        start = (whole - side) // 2
        cut = filtered[start : start + side, start : start + side] / reduction**2
        inside = slice(margin // reduction, margin // reduction + keep)
        return np.fft.ifft2(np.fft.ifftshift(cut))[inside, inside]

    def edge(level, k, reduction):
        cosine = np.cos(theta - np.pi * k / 4)
        directed = 2 * A4 * np.where(cosine > 1e-9, cosine, 0) ** 3
        z = image(spectrum * low(level - 1) * np.sqrt(1 - low(level) ** 2) * directed, reduction)
        return z.imag, z.real, np.abs(z)

    found = {"mean of the picture": picture.mean(), "variance of the picture": (picture**2).mean()}
    found["variance of the high-pass"] = (image(spectrum * np.sqrt(1 - low(0) ** 2), 1).real ** 2).mean()
    for level in range(1, 6):
        passed = image(spectrum * low(level - 1), 2 ** (level - 1)).real
        for kind, power in (("variance", 2), ("skew", 3), ("kurtosis", 4)):
            found[f"{kind} of low-pass {level}"] = (passed**power).mean()
    for level in range(1, 5):
        own = 2 ** (level - 1)
        for k in range(4):
            a, b, m = edge(level, k, own)
            name = f"{level}, {45 * k}°"
            found |= {f"edge mean {name}": m.mean(), f"edge variance {name}": (m**2).mean()}
            down, left = (round(2**level * f(np.pi * k / 4)) for f in (math.cos, math.sin))
            total = 0.0
            for i in range(len(m)):
                for j in range(len(m)):
                    if 0 <= i + down < len(m) and 0 <= j - left < len(m):
                        total += (m[i, j] - m[i + down, j - left]) ** 2
            found[f"edge stop {name}"] = total / m.size
            for other in range(k + 1, 4):
                c, _, n = edge(level, other, own)
                found[f"edge correlation {name} and {45 * other}°"] = (m * n).mean()
                found[f"phase correlation {name} and {45 * other}°"] = (a * c).mean()
            if level < 4:
                c, d, n = edge(level + 1, k, own)
                found[f"edge correlation {level} and {level + 1}, {45 * k}°"] = (m * n).mean()
                found[f"phase correlation {level} and {level + 1}, imaginary {45 * k}°"] = (b * 2 * c * d / n).mean()
                found[f"phase correlation {level} and {level + 1}, real {45 * k}°"] = (a * 2 * c * d / n).mean()
    return found


@pytest.mark.parametrize("periodic", [False, True])
def test_all_statistics_of_a_picture_without_symmetry_are_those_of_plain_loops(periodic):
    random = np.random.default_rng(0)
    picture = np.clip(random.normal(0.5, 0.2, (SIZE, SIZE)).cumsum(1) / 40, 0, 1)
    values = statistics(picture, periodic=periodic)
    expected = plain_statistics(picture, 0 if periodic else 32)
    assert set(expected) == set(values)
    for name, value in expected.items():
        # Float32 through two transforms: 10⁻⁷ of the picture's mean of about 0.4, whatever the size of a band.
        assert values[name] == pytest.approx(value, rel=2e-4, abs=2e-8), name


def test_layers_are_the_pyramid_and_the_statistics():
    assert Subject(Periphery(SIZE), example=(1, SIZE, SIZE)).layers == ["pyramid", "statistics"]


def test_numbers_of_levels_and_orientations_can_be_chosen():
    model = Periphery(32, levels=2, orientations=3)
    assert model(torch.rand(2, 1, 32, 32)).shape == (2, len(model.names))


def test_a_picture_of_a_batch_has_the_statistics_it_has_alone():
    pictures = torch.rand(3, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    model = Periphery(SIZE)
    torch.testing.assert_close(model(pictures)[1:2], model(pictures[1:2]), rtol=1e-5, atol=1e-6)


def test_gradients_are_finite_for_a_black_picture():
    black = torch.zeros(1, 1, SIZE, SIZE, requires_grad=True)
    Periphery(SIZE)(black).sum().backward()
    assert torch.isfinite(black.grad).all()


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(AssayError, match="size=100: 4 levels need a size divisible by 32"):
        Periphery(100)
    with pytest.raises(AssayError, match=r"no kind of statistic 'edge means'.*edge mean"):
        Periphery(SIZE, weights={"edge means": 1.0})
    with pytest.raises(AssayError, match="grey frames N×1×64×64"):
        Periphery(SIZE)(torch.rand(1, 3, SIZE, SIZE))
    with pytest.raises(AssayError, match="levels=0, orientations=4"):
        Periphery(SIZE, levels=0)
