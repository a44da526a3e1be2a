from __future__ import annotations

import pytest
import torch

from assay import AssayError
from assay.stimuli import Grey, Normalize, transform_named


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
