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
        (lambda: Family(lambda x, g: x[:, :1], (1.0,))(PICTURES), "made"),
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
