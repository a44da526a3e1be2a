from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.clusters import ClusterSeparation, davies_bouldin_index
from assay.stimuli import Labelled


def blobs(seed=0, n=40, classes=4, dimensions=5):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    return rng.normal(size=(classes, dimensions))[labels] * 3 + rng.normal(size=(n, dimensions)), labels


# -- the index ------------------------------------------------------------------------------------------


def test_three_clusters_by_hand():
    # Scatter 1, 2 and 0 (one point); centroids at 0, 8 and 5 on a line.
    x = np.array([-1.0, 1.0, 6.0, 10.0, 5.0])[:, None]
    labels = np.array([7, 7, 3, 3, 9])
    ratios = {(0, 1): 3 / 8, (0, 2): 1 / 5, (1, 2): 2 / 3}
    worst = [max(ratios[0, 1], ratios[0, 2]), max(ratios[0, 1], ratios[1, 2]), max(ratios[0, 2], ratios[1, 2])]
    assert davies_bouldin_index(x, labels) == pytest.approx(np.mean(worst))


def test_two_gaussian_blobs_have_the_ratio_of_mean_radius_to_distance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40_000, 2))
    x[20_000:, 0] += 10
    # The mean of a Rayleigh is √(π/2), with a standard error of 0.66/√20,000 in each; DB = 2·√(π/2)/10.
    index = davies_bouldin_index(x, np.arange(40_000) // 20_000)
    assert index == pytest.approx(np.sqrt(np.pi / 2) / 5, rel=0.02)


@given(st.integers(0, 50), st.floats(0.01, 100), st.floats(-50, 50))
def test_the_index_ignores_scale_shift_rotation_order_and_names(seed, scale, shift):
    x, labels = blobs(seed)
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    order = rng.permutation(len(x))
    changed = davies_bouldin_index((scale * x @ rotation + shift)[order], 10 - labels[order])
    assert changed == pytest.approx(davies_bouldin_index(x, labels), rel=1e-9)


def test_coinciding_centroids_are_infinitely_alike_and_coinciding_points_undefined():
    x = np.array([[-1.0], [1.0], [-2.0], [2.0], [9.0]])
    assert davies_bouldin_index(x, np.array([0, 0, 1, 1, 2])) == np.inf
    assert np.isnan(davies_bouldin_index(np.ones((4, 2)), np.array([0, 0, 1, 1])))


def test_points_that_have_no_index_are_errors():
    with pytest.raises(AssayError, match="at least 2 clusters, there is 1"):
        davies_bouldin_index(np.eye(3), np.zeros(3, int))
    with pytest.raises(AssayError, match="3 points and 2 labels"):
        davies_bouldin_index(np.eye(3), np.zeros(2, int))
    with pytest.raises(AssayError, match="NaN or infinite"):
        davies_bouldin_index(np.full((2, 2), np.nan), np.arange(2))


# -- the measure ----------------------------------------------------------------------------------------


def pictures(n=60, classes=3):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % classes
    return Labelled(rng.random((n, *zoo.SHAPE)) + 0.2 * labels[:, None, None, None], labels)


def test_one_round_of_everything_is_the_index_of_the_pooled_first_convolution():
    subject, data = Subject(zoo.build("vgg")), pictures()
    (row,) = ClusterSeparation(data, rounds=1, images=60, batch_size=7)(subject).itertuples()
    maps = F.max_pool2d(subject.record(data.shown(), "0.0")["0.0"], 4).flatten(1)
    assert maps.shape == (60, 8 * 4 * 4)
    # The mean does not depend on the order of the sample, but for rounding.
    assert row.value == pytest.approx(davies_bouldin_index(maps, data.labels), rel=1e-5)
    assert (row.layer, row.n, row.status) == ("0.0", 1, "ok")


def test_rounds_are_draws_and_the_value_their_mean():
    subject, data = Subject(zoo.build("resnet")), pictures()
    (row,) = ClusterSeparation(data, layer="layer1", rounds=5, images=20, seed=3)(subject).itertuples()
    features = F.max_pool2d(subject.record(data.shown(), "layer1")["layer1"], 4).flatten(1)
    rng = np.random.default_rng(3)
    drawn = [rng.permutation(60)[:20] for _ in range(5)]
    found = [davies_bouldin_index(features[d], data.labels[d]) for d in drawn]
    assert row.value == pytest.approx(np.mean(found), rel=1e-5)
    assert min(found) <= row.low < row.value < row.high <= max(found) and row.n == 5
    assert ClusterSeparation(data).predictors(ClusterSeparation(data)(subject)).keys() == {"davies-bouldin index"}


def test_classes_set_apart_have_a_lower_index():
    near, far = (
        Labelled(np.random.default_rng(0).random((60, 1, 8, 8)) + gap * (np.arange(60) % 3)[:, None, None, None],
                 np.arange(60) % 3)
        for gap in (0.1, 1.0)
    )  # fmt: skip
    subject = Subject(nn.Sequential(nn.Conv2d(1, 4, 3)))
    assert ClusterSeparation(far)(subject).value.item() < ClusterSeparation(near)(subject).value.item()


def test_layers_that_are_no_maps_or_small_ones():
    data = Labelled(blobs()[0], blobs()[1])
    subject = Subject(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)))
    assert ClusterSeparation(data)(subject).layer.item() == "0"
    assert ClusterSeparation(data)(Subject(nn.Linear(5, 4))).layer.item() == "output"
    small = Labelled(np.random.default_rng(0).random((20, 1, 3, 2)), np.arange(20) % 2)
    assert ClusterSeparation(small)(Subject(nn.Sequential(nn.Conv2d(1, 2, 1)))).status.item() == "ok"


def test_what_is_wrong_with_rounds_is_said():
    labels = np.array([0] * 58 + [1, 1])
    data = Labelled(np.random.default_rng(0).normal(size=(60, 5)), labels)
    subject = Subject(nn.Sequential(nn.Linear(5, 6)))
    (row,) = ClusterSeparation(data, images=10)(subject).itertuples()
    rng = np.random.default_rng(0)
    ones = [labels[rng.permutation(60)[:10]].sum() for _ in range(10)]
    assert row.n == 10 - ones.count(0) and 0 < ones.count(0) < 10
    assert row.status == (
        f"{ones.count(0)} rounds with one class left out, {ones.count(1)} rounds with a class of one image"
    )
    (row,) = ClusterSeparation(Labelled(data.inputs[:3], np.array([0, 0, 1])), rounds=1)(subject).itertuples()
    assert row.status == "1 round with a class of one image"
    constant = nn.Sequential(nn.Linear(5, 6))
    nn.init.zeros_(constant[0].weight)
    (row,) = ClusterSeparation(data)(Subject(constant)).itertuples()
    assert row.status == "undefined" and np.isnan(row.value)


def test_bad_settings_data_and_networks_are_errors():
    data = pictures()
    with pytest.raises(AssayError, match="have one class"):
        ClusterSeparation(Labelled(np.eye(3), np.ones(3, int)))
    for setting in ("rounds", "images", "pool", "batch_size"):
        with pytest.raises(AssayError, match=f"{setting}=0 must be at least"):
            ClusterSeparation(data, **{setting: 0})
    with pytest.raises(AssayError, match="'Flatten' has no weights: give layer=…"):
        ClusterSeparation(data)(Subject(nn.Flatten()))
    with pytest.raises(AssayError, match="chooses 2 layers"):
        ClusterSeparation(data, layer="layer?")(Subject(zoo.build("resnet")))
    with pytest.raises(AssayError, match="cannot take"):
        ClusterSeparation(data).check(Subject(nn.Linear(5, 6)))
    broken = nn.Conv2d(3, 2, 1)
    nn.init.constant_(broken.weight, float("inf"))
    with pytest.raises(AssayError, match="layer '0' of 'Sequential' gives no finite tensor"):
        ClusterSeparation(data)(Subject(nn.Sequential(broken)))


def test_the_network_is_left_as_found():
    net = zoo.build("vgg")
    state = torch.random.get_rng_state()
    ClusterSeparation(pictures())(Subject(net))
    assert net.training and torch.equal(torch.random.get_rng_state(), state)
    assert not any(m._forward_hooks for m in net.modules())
