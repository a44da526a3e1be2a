"""Complexity measures of one network against other libraries."""

from __future__ import annotations

from math import sqrt

import kornia
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import davies_bouldin_score
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

import zoo
from assay import Subject
from assay.measures.complexity.affine import affine_layers
from assay.measures.complexity.augmentation import saturation, sobel
from assay.measures.complexity.clusters import davies_bouldin_index
from assay.measures.complexity.margins import output_margins, quartile_signature
from assay.measures.complexity.norms import path_norm, spectral_norm


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_davies_bouldin_index_is_scikit_learns(dtype):
    x, labels = load_digits(return_X_y=True)
    x = x.astype(dtype)
    # Ours is in float64 throughout; scikit-learn's distances are of the data's precision.
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    for rows in (slice(None), slice(0, 40), slice(100, 1000, 7)):
        assert davies_bouldin_index(x[rows], labels[rows]) == pytest.approx(
            davies_bouldin_score(x[rows], labels[rows]), rel=tolerance
        )


def test_folded_batch_norms_are_torchs_own_and_the_path_norm_that_of_the_fused_squared_network():
    net = zoo.build("vgg").double().eval()
    fused = []
    for module in net[0]:
        if isinstance(module, nn.BatchNorm2d):
            fused[-1] = fuse_conv_bn_eval(fused[-1], module)
        else:
            fused.append(module)
    whole = nn.Sequential(*fused, *list(net)[1:]).eval()
    found = affine_layers(Subject(net), zoo.SHAPE)
    layers = [m for m in whole if isinstance(m, nn.Conv2d | nn.Linear)]
    for mine, theirs in zip(found.layers, layers, strict=True):
        # The same few multiplications in another order.
        torch.testing.assert_close(mine.weight, theirs.weight.detach(), rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(mine.bias, theirs.bias.detach(), rtol=1e-12, atol=1e-14)
    ours = path_norm(Subject(net), zoo.SHAPE)
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.square_()
        squared = whole(torch.ones(1, *zoo.SHAPE, dtype=torch.float64)).sum().item()
    assert ours == pytest.approx(sqrt(squared), rel=1e-12)


def test_spectral_norm_is_numpys_largest_singular_value():
    for shape in ((20, 7), (7, 20), (16, 3, 5, 5)):
        weight = np.random.default_rng(0).normal(size=shape)
        expected = np.linalg.svd(weight.reshape(len(weight), -1), compute_uv=False)[0]
        assert spectral_norm(weight) == pytest.approx(expected, rel=1e-12)


def test_margins_are_torchs_multi_margin_loss_beyond_the_margin():
    # With two classes the hinge loss Σ max(0, c − γ)/2 is linear in γ where c is large.
    scores = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(9) % 2
    hinge = nn.MultiMarginLoss(margin=100.0, reduction="none")(scores, labels)
    torch.testing.assert_close(output_margins(scores, labels), 100 - 2 * hinge)


def test_quartiles_and_fences_are_matplotlibs_box_plot():
    from matplotlib.cbook import boxplot_stats

    values = np.random.default_rng(0).standard_cauchy(200)
    (box,) = boxplot_stats(values)
    expected = [box[key] for key in ("whislo", "q1", "med", "q3", "whishi")]
    np.testing.assert_allclose(quartile_signature(values), expected, rtol=1e-12)


def test_saturation_is_kornias_in_hue_saturation_and_value():
    x = torch.rand(5, 3, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    factors = torch.tensor([0.0, 0.6, 1.0, 1.3, 1.6], dtype=torch.float64)
    expected = kornia.enhance.adjust_saturation(x, factors)
    torch.testing.assert_close(saturation(x, factors), expected, rtol=0, atol=1e-6)  # kornia adds 1e-8 to divisors


def test_sobel_is_kornias_horizontal_gradient_inside_the_picture():
    x = torch.rand(2, 3, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = kornia.filters.spatial_gradient(x, mode="sobel", normalized=False)[:, :, 0] / 4 + 0.5
    inside = (..., slice(1, -1), slice(1, -1))  # at the edge kornia repeats and TensorFlow's Sobel reflects
    torch.testing.assert_close(sobel(x)[inside], expected[inside])
