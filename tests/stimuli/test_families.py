from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.stimuli import Family, Images, ParametricTest, load_images
from assay.stimuli.families import NAMED

PICTURES = torch.rand(3, 2, 9, 9, generator=torch.Generator().manual_seed(0))


def test_rotation_by_quarter_turns_is_exact():
    # kornia samples bilinearly at rounded coordinates: 1e-5.
    moved = Family("rotation", (0.0, 90.0, 180.0, 270.0))(PICTURES)
    for i in range(4):
        torch.testing.assert_close(moved[:, i], torch.rot90(PICTURES, i, (2, 3)), atol=1e-5, rtol=0)


def test_translation_by_whole_pixels_is_a_shift():
    right = Family("translation_x", (0.0, 2.0))(PICTURES)[:, 1]
    down = Family("translation_y", (3.0,))(PICTURES)[:, 0]
    torch.testing.assert_close(right[..., 2:], PICTURES[..., :-2], atol=1e-5, rtol=0)
    torch.testing.assert_close(down[..., 3:, :], PICTURES[..., :-3, :], atol=1e-5, rtol=0)


def test_the_neutral_magnitude_leaves_a_picture_alone():
    neutral = {"scale": 1.0, "contrast": 1.0}
    for name in NAMED:
        same = Family(name, (neutral.get(name, 0.0),))(PICTURES)[:, 0]
        torch.testing.assert_close(same, PICTURES, atol=1e-5, rtol=0)


def test_brightness_contrast_and_blur_do_what_they_say():
    torch.testing.assert_close(Family("brightness", (0.25,))(PICTURES)[:, 0], PICTURES + 0.25)
    flat = Family("contrast", (0.0,))(PICTURES)[:, 0]
    torch.testing.assert_close(flat, PICTURES.mean((1, 2, 3), keepdim=True).expand_as(flat))
    spread = Family("blur", (0.0, 1.0, 2.0))(PICTURES).flatten(2).std(2)
    assert (spread[:, 0] > spread[:, 1]).all() and (spread[:, 1] > spread[:, 2]).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Family("rotaton", (0.0,)), "unknown transformation 'rotaton'; did you mean 'rotation'"),
        (lambda: Family("rotation", ()), "magnitudes"),
        (lambda: Family("rotation", (float("nan"),)), "magnitudes"),
        (lambda: Family(lambda x, g: x[:, :1], (1.0,))(PICTURES), "makes 3×1×9×9 of a batch of 3×2×9×9"),
        (lambda: Family("rotation", (0.0,), each=True), "each is for functions of your own"),
        (
            lambda: Family("nowhere_to_be_found:turn", (0.0,)),
            "transformation 'nowhere_to_be_found:turn': cannot import",
        ),
        (lambda: Family("torch:turn_the_picture", (0.0,)), "'torch' has no 'turn_the_picture'"),
        (lambda: Family("torch:pi", (0.0,)), "not a function of pictures and magnitudes"),
        (lambda: Family("torch.nn:ReLU", (0.0,)), "not a function of pictures and magnitudes"),
        (lambda: ParametricTest(Images(np.zeros((2, 4, 4))), ()), "families is empty"),
        (lambda: ParametricTest(Images(np.zeros((2, 4, 4))), (Family("blur", (1.0,)),) * 2), "two families"),
        (lambda: Images(np.zeros((2, 4))), "N×C×H×W"),
        (lambda: Images(np.full((2, 4, 4), np.nan)), "NaN"),
        (lambda: Images(np.zeros((2, 4, 4)), labels=np.zeros(3)), "2 images and 3 labels"),
        (lambda: load_images("/nowhere"), "does not exist"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError) as error:
        call()
    assert sentence.split(";")[0] in str(error.value)


def roll(picture, pixels):
    return picture.roll(round(pixels), -1)


def test_a_function_of_one_picture_and_one_number_is_called_for_each():
    moved = Family(roll, (0, 1, -2), each=True)(PICTURES)
    for i, pixels in enumerate((0, 1, -2)):
        assert torch.equal(moved[:, i], PICTURES.roll(pixels, -1))


def noisy(x, amount):
    return x + amount[:, None, None, None] * torch.rand_like(x)


STREAM = np.random.default_rng(0)


def own_stream(x, amount):  # seeded, but every call draws on
    return x + amount[:, None, None, None] * STREAM.random()


def relative(x, amount):
    return x - amount[:, None, None, None] * x.mean()


def columns(x, amount):
    return x + amount  # broadcasts over columns, where there happen to be as many magnitudes


def logarithm(x, amount):
    return x + amount.log()[:, None, None, None]


@pytest.mark.parametrize(
    ("function", "each", "sentence"),
    [
        (noisy, False, "'noisy' gives two results for the same pictures and magnitudes: it must not be random"),
        (own_stream, False, "'own_stream' gives two results for the same pictures"),
        (relative, False, "'relative' makes something else of a picture when it is shown with others"),
        (columns, False, "'columns' fails (RuntimeError: "),
        (logarithm, False, "'logarithm' gives NaN or infinite pixels at magnitude 0"),
        (lambda x, a: x.double().numpy(), False, "not a tensor"),
        (lambda x, a: (255 * x).byte(), False, "gives back torch.uint8, not floating-point pictures"),
        (lambda x, a: x / 0 if a else exit(3), True, "fails (it calls sys.exit(3)): it is called with one picture"),
        (lambda x, a: x[0], True, "makes 9×9 of 2×9×9"),
        (roll, False, "set each: true for a function of one picture"),
        (lambda x, a: x, False, "gives pictures back as they are, at all magnitudes (0, 1, 2, 3, 4, 5, 6, 7, 8)"),
        (lambda x, a: x, True, "every network would be invariant to it"),
    ],
)
def test_a_function_that_is_no_transformation_is_refused_before_it_is_used(function, each, sentence):
    family = Family(function, tuple(range(9)), each=each)  # as many magnitudes as columns
    with pytest.raises(AssayError) as error:
        ParametricTest(Images(PICTURES.numpy()), (family,))
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_pictures_that_a_function_does_not_change_are_no_reason_to_refuse_it():
    flat = np.zeros((3, 2, 9, 9), np.float32)
    test = ParametricTest(Images(flat), (Family(lambda x, a: x * (1 + a[:, None, None, None]), (0.0, 1.0)),))
    assert not test.trajectory(test.transformations[0], torch.from_numpy(flat)).any()


def test_a_function_may_round_differently_in_batches_of_another_size_and_write_into_its_copy():
    def mixed(x, amount):
        x *= 1 + 1e-7 * len(x)
        return x.double() + amount[:, None, None, None]

    test = ParametricTest(Images(PICTURES.numpy()), (Family(mixed, (0.0, 1.0)),))
    moved = test.trajectory("mixed", PICTURES)
    assert moved.dtype == torch.float32 and test.images.array.max() <= 1
    torch.testing.assert_close(moved[:, 1], PICTURES + 1, atol=1e-5, rtol=0)


def test_images_load_from_files_and_folders(tmp_path, shared_data):
    from PIL import Image

    for i in range(3):
        Image.new("RGB", (6, 6), (i, 0, 0)).save(tmp_path / f"{i}.png")
    assert load_images(tmp_path, count=2).array.shape == (2, 3, 6, 6)
    cifar = load_images(
        shared_data / "cifar10_subset" / "cifar10_subset.npz", images="test_images", labels="test_labels", count=10
    )
    assert cifar.array.shape == (10, 3, 32, 32) and cifar.array.max() <= 1 and len(cifar.labels) == 10
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not really")
    for path, images, sentence in (
        (tmp_path / "broken.npz", "images", "cannot be read"),
        (shared_data / "coil20" / "coil20_64.npz", "image", "no array 'image'"),
    ):
        with pytest.raises(AssayError, match=sentence):
            load_images(path, images=images)
