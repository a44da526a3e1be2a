from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from assay import AssayError
from assay.studies import first_component, mean, product


@pytest.mark.parametrize("sign", [1, -1])
def test_of_two_scores_the_first_component_is_their_mean_z_score_times_root_2(sign):
    a, noise = np.random.default_rng(0).normal(size=(2, 30))
    b = sign * a * 1e6 + noise
    za, zb = ((x - x.mean()) / x.std() for x in (a, b))
    np.testing.assert_allclose(first_component(a, b), (za + sign * zb) / np.sqrt(2), atol=1e-12)


def test_first_component_equals_that_of_scikit_learn_up_to_its_sign():
    table = np.random.default_rng(1).normal(size=(40, 3)) @ np.random.default_rng(2).normal(size=(3, 3))
    ours = first_component(*table.T)
    theirs = PCA(1).fit_transform(StandardScaler().fit_transform(table))[:, 0]
    assert np.corrcoef(ours, table[:, 0])[0, 1] > 0
    # An eigenvector against a singular vector of 40 × 3 numbers near 1.
    np.testing.assert_allclose(ours * np.sign(ours[0]), theirs * np.sign(theirs[0]), atol=1e-10)


def test_product_and_mean():
    assert product([1, 2], [3, 4], [2, 2]).tolist() == [6, 16]
    assert mean([1, 2], [3, 4], [2, 3]).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (([1, 2, 3],), "two or more scores, received 1"),
        (([1, 2, 3], [1, 2]), r"scores\[0\] 3, scores\[1\] 2"),
        (([1, 2, 3], [1, np.nan, 3]), r"scores\[1\] is NaN or infinite for network 1 "),
        (([1, 2, 3], [0.1, 0.1, 0.1]), r"scores\[1\] is the same for all networks"),
        (([1, 1, -1, -1], [1, -1, 1, -1]), "no direction varies more than another"),
    ],
)
def test_errors_name_the_score(scores, says):
    with pytest.raises(AssayError, match=says):
        first_component(*scores)
