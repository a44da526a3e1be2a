from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.augmentation import (
    PENALTIES,
    AugmentationRobustness,
    central_crop,
    erase,
    penalties,
    saturation,
    sobel,
)
from assay.stimuli import Labelled


def value(table, quantity):
    (found,) = table[table.quantity == quantity].value
    return found


def classified(n=40, kind="vgg"):
    subject = Subject(zoo.build(kind), kind)
    pictures = zoo.images(n)
    said = subject(pictures).argmax(1).numpy()
    said[::4] = (said[::4] + 1) % 10
    return subject, Labelled(pictures.numpy(), said)


# -- augmentations --------------------------------------------------------------------------------------


@given(st.tuples(*[st.floats(0, 1)] * 3), st.floats(0, 3))
def test_saturation_is_that_of_hue_saturation_and_value(rgb, factor):
    hue, sat, val = colorsys.rgb_to_hsv(*rgb)
    expected = colorsys.hsv_to_rgb(hue, min(1.0, factor * sat), val)
    x = torch.tensor(rgb, dtype=torch.float64).view(1, 3, 1, 1)
    found = saturation(x, torch.tensor([factor], dtype=torch.float64)).flatten()
    np.testing.assert_allclose(found, expected, atol=1e-9)  # hue divides by differences of channels


def test_grey_pictures_have_no_saturation():
    x = torch.rand(4, 1, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(saturation(x, torch.full((4,), 1.5)), x)


@pytest.mark.slow
def test_a_crop_of_a_ramp_is_a_flatter_ramp():
    x = torch.arange(20.0).expand(1, 1, 20, 20)
    cropped = central_crop(x)  # a border of 1; 18 pixels become 20
    assert cropped.shape == x.shape
    # Pixel i is at 1 + (i + 0.5)·0.9 − 0.5 of the old ones, except where that is outside of them.
    torch.testing.assert_close(cropped[0, 0, 7, 1:-1], 0.95 + 0.9 * torch.arange(1.0, 19.0))


def test_sobel_of_a_ramp_is_its_slope_and_of_rows_is_nothing():
    ramp = 0.1 * torch.arange(6.0).expand(2, 3, 5, 6)
    # A slope of 0.1 over two pixels, weighed 1 + 2 + 1, over 4; at reflected edges there is none.
    torch.testing.assert_close(sobel(ramp)[..., 1:-1], torch.full((2, 3, 5, 4), 0.7))
    torch.testing.assert_close(sobel(ramp)[..., 0], torch.full((2, 3, 5), 0.5))
    torch.testing.assert_close(sobel(ramp.transpose(2, 3)), torch.full((2, 3, 6, 5), 0.5))


def test_erase_puts_zeros_in_the_box_of_each_picture():
    erased = erase(torch.ones(2, 3, 4, 5), torch.tensor([[0, 1, 2, 3], [3, 4, 1, 1]]))
    expected = torch.ones(2, 3, 4, 5)
    expected[0, :, 0:2, 1:4] = 0
    expected[1, :, 3, 4] = 0
    assert torch.equal(erased, expected)


def test_penalties_are_the_change_of_confidence_or_the_price_of_another_class():
    before = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    after = torch.tensor([[1.0, 0.0], [1.0, 0.0], [5.0, 6.0]])
    change = 1 / (1 + np.exp(-2)) - 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(penalties(before, after, 3.0), [change, 3, 0], atol=1e-6)  # float32


def test_penalties_are_those_of_the_released_code():
    # x1 … x7 of runner_up_solution/complexity.py in github.com/sumukhaithal6/pgdl.
    assert list(PENALTIES) == ["flip", "saturation", "crop", "sobel", "brightness", "flip saturation", "erase"]
    assert list(PENALTIES.values()) == [6, 1, 2, 3, 1, 12, 2]


# -- the measure ----------------------------------------------------------------------------------------


def test_every_augmentation_is_compared_with_the_picture_itself():
    subject, data = classified()
    measure = AugmentationRobustness(data, samples=None)
    table = measure(subject)
    x, labels = data.shown(), torch.tensor(data.labels)
    before = subject(x)
    accuracy = (before.argmax(1) == labels).double().mean().item()
    assert value(table, "accuracy") == pytest.approx(accuracy)
    for name, changed in {"flip": x.flip(3), "crop": central_crop(x), "sobel": sobel(x), "brightness": x + 0.5}.items():
        after = subject(changed)
        drop = accuracy - (after.argmax(1) == labels).double().mean().item()
        assert value(table, f"{name} drop") == pytest.approx(drop)
        expected = penalties(before, after, PENALTIES[name]).double().mean().item()
        assert value(table, f"{name} penalty") == pytest.approx(expected, rel=1e-4)  # float32, other batches
    assert value(table, "penalty") == pytest.approx(sum(value(table, f"{name} penalty") for name in PENALTIES))
    assert value(table, "mean drop") == pytest.approx(np.mean([value(table, f"{name} drop") for name in PENALTIES]))
    assert (table.n == 40).all() and (table.status == "ok").all() and (table.low <= table.value).all()
    found = measure.predictors(table)
    assert found["augmentation penalty"] == value(table, "penalty") and len(found) == 2 + 7


class Brightest(nn.Module):
    """Tells on which half of the picture its brightest pixel is."""

    def forward(self, x: Tensor) -> Tensor:
        halves = x.amax((1, 2))
        left, right = halves.chunk(2, dim=1)
        return torch.stack([left.amax(1), right.amax(1)], 1)


def test_a_network_that_depends_on_what_an_augmentation_changes_pays_its_whole_penalty():
    x = np.zeros((10, 3, 8, 8), np.uint8)
    x[:5, 0, 4, 1] = 255
    x[5:, 0, 4, 6] = 255
    data = Labelled(x, np.arange(10) // 5)
    table = AugmentationRobustness(data, ("flip", "brightness", "flip saturation"), bootstrap=50)(Subject(Brightest()))
    assert value(table, "accuracy") == 1
    assert value(table, "flip drop") == 1 and value(table, "flip penalty") == 6
    assert value(table, "flip saturation penalty") == 12
    assert value(table, "brightness drop") == 0
    assert value(table, "brightness penalty") == pytest.approx(0, abs=1e-6)  # both halves gain 0.5
    assert value(table, "penalty") == pytest.approx(18, abs=1e-6)


def test_factors_and_boxes_are_each_pictures_own_and_do_not_depend_on_the_batch_size():
    data = Labelled(np.random.default_rng(0).uniform(0.1, 0.9, (9, 3, 32, 32)), np.arange(9))
    shown = []
    for size in (2, 9):
        network = nn.Flatten()
        seen: list[Tensor] = []
        network.register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[0].clone()))
        AugmentationRobustness(data, ("saturation", "erase"), batch_size=size, bootstrap=0)(Subject(network))
        # After the check (and the dry runs that find layers): per batch the pictures, saturated, erased.
        batches = seen[-3 * -(-9 // size) :]
        shown.append([torch.cat(batches[i::3]) for i in range(3)])
    for ours, theirs in zip(*shown, strict=True):
        assert torch.equal(ours, theirs)
    plain, saturated, erased = shown[0]
    gone = (erased == 0).all(1)
    assert torch.equal(torch.where(gone[:, None], plain, erased), plain)
    heights, widths = gone.any(2).sum(1), gone.any(1).sum(1)
    assert (gone.sum((1, 2)) == heights * widths).all()  # boxes
    # Sides from √(0.02·0.3·1024) = 2.5 to √(0.4·1024/0.3) = 37, less than the picture's.
    assert min(heights.min(), widths.min()) >= 2 and max(heights.max(), widths.max()) < 32
    assert len(set(zip(heights.tolist(), widths.tolist(), strict=True))) > 1
    spread = [p.amax(1) - p.amin(1) for p in (saturated, plain)]
    most = (spread[0] / spread[1]).amax((1, 2))  # the factor, where it is not cut off at full saturation
    assert (most + 1e-5 >= 0.6).all() and (most < 1.6 + 1e-5).all() and most.std() > 0.05


def test_intervals_are_of_the_mean_over_pictures():
    rng = np.random.default_rng(0)
    data = Labelled(rng.random((400, 1, 6, 6)), rng.integers(0, 2, 400))
    table = AugmentationRobustness(data, ("flip",), bootstrap=400)(Subject(Brightest())).set_index("quantity")
    found = table.loc["accuracy"]
    half = 1.96 * np.sqrt(found.value * (1 - found.value) / 400)
    # 400 resamples give the half-width to 5 %.
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.2)


def test_bad_pictures_settings_and_networks_are_errors():
    subject, data = classified(4)
    with pytest.raises(AssayError, match="unknown augmentation 'flop'; did you mean 'flip'"):
        AugmentationRobustness(data, ("flop",))
    with pytest.raises(AssayError, match="give at least one, none twice"):
        AugmentationRobustness(data, ("flip", "flip"))
    for shape in ((4,), (2, 8, 8), (3, 1, 8)):
        with pytest.raises(AssayError, match="give pictures of 1 or 3 channels"):
            AugmentationRobustness(Labelled(np.zeros((2, *shape)), np.arange(2)))
    beyond = Labelled(2 * data.inputs, data.labels)
    with pytest.raises(AssayError, match=r"values outside \[0, 1\], which have no saturation"):
        AugmentationRobustness(beyond)
    assert len(AugmentationRobustness(beyond, ("flip",))(subject))
    with pytest.raises(AssayError, match="cannot take"):
        AugmentationRobustness(data)(Subject(nn.Linear(3, 10)))
    with pytest.raises(AssayError, match=r"distinguishes 2 classes, and the data .*have 10"):
        AugmentationRobustness(Labelled(data.inputs, np.array([0, 1, 2, 9]))).check(Subject(Brightest()))


def test_the_network_is_left_as_found():
    subject, data = classified(6)
    state = torch.random.get_rng_state()
    AugmentationRobustness(data)(subject)
    assert subject.module.training and torch.equal(torch.random.get_rng_state(), state)
