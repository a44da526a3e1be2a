from __future__ import annotations

import pytest
import torch

from assay import AssayError
from assay.stimuli import Chain, Crop, Grey, Normalize, Resize, ResizeShorter, transform_named


def test_imagenet_statistics_and_grey_weights():
    x = torch.ones(1, 3, 2, 2)
    expected = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    torch.testing.assert_close(Normalize()(x)[0, :, 0, 0], torch.tensor(expected))
    assert Normalize()(torch.ones(1, 1, 2, 2)).shape == (1, 3, 2, 2)
    torch.testing.assert_close(Grey()(x), torch.ones(1, 1, 2, 2))
    assert Grey()(x[:, :1]).shape == (1, 1, 2, 2)


def test_transforms_by_name():
    made = transform_named("grey, resize=4")
    assert made(torch.rand(2, 3, 8, 8)).shape == (2, 1, 4, 4)
    with pytest.raises(AssayError, match="unknown transform 'imagenett'; did you mean 'imagenet'"):
        transform_named("imagenett")


def test_transforms_as_plans_write_them_are_applied_in_order():
    made = transform_named(
        [{"resize": {"shorter": 8}}, {"crop": 6}, "grey", {"normalize": {"mean": [0.5], "std": 0.25}}]
    )
    assert made == Chain((ResizeShorter(8), Crop(6), Grey(), Normalize((0.5,), (0.25,))))
    assert made(torch.rand(2, 3, 16, 24)).shape == (2, 1, 6, 6)
    assert transform_named({"resize": 8, "crop": 4}) == Chain((Resize(8), Crop(4)))
    assert transform_named("none") is None and transform_named("none, grey") == Grey()
    assert transform_named("cifar10") == Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    assert transform_named("torch:sigmoid") is torch.sigmoid


def test_the_crop_is_the_centre():
    x = torch.arange(36.0).reshape(1, 1, 6, 6)
    assert torch.equal(Crop(2)(x), x[..., 2:4, 2:4])
    with pytest.raises(AssayError, match="crop 7 is larger than the pictures, 6×6"):
        Crop(7)(x)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("resize", "'resize' needs a setting, such as resize: 224"),
        ({"imagenet": 3}, "'imagenet' takes no setting, write it as a word"),
        ({"normalise": {}}, "did you mean 'normalize'"),
        ({"normalize": {"mean": [0.5]}}, "expected normalize: {mean"),
        ({"normalize": {"mean": [0.5], "std": [0]}}, "every std must be above 0"),
        ({"normalize": {"mean": [0.5, 0.5], "std": [1]}}, "2 means and 1 stds"),
        ({"normalize": {"mean": ["x"], "std": [1]}}, "one number for each channel"),
        ({"crop": "big"}, "crop is 'big', expected a number of pixels"),
        ("math:pi", "is no function"),
        ("no_such_module:f", "cannot import 'no_such_module'"),
        (3, "3 is no transform"),
    ],
)
def test_a_transform_that_is_none_is_one_sentence(words, sentence):
    with pytest.raises(AssayError) as error:
        transform_named(words)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_pictures_of_another_number_of_channels_are_refused():
    with pytest.raises(AssayError, match="normalize has 3 means, the pictures have 4 channels"):
        Normalize()(torch.rand(1, 4, 2, 2))


def test_whole_numbers_are_not_normalised():
    with pytest.raises(AssayError, match="normalize takes floating-point pictures, not"):
        Normalize()(torch.zeros(2, 3, 4, 4, dtype=torch.int64))
