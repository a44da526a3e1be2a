from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from assay import AssayError
from assay.measures.gabor_fit import fit_gabor, gabor


@pytest.mark.slow
def test_gabor_functions_are_found_and_noise_is_not():
    rng = np.random.default_rng(0)
    made = np.stack(
        [
            gabor(
                14, *rng.uniform(-3, 3, 2), rng.uniform(0, np.pi), rng.uniform(0.08, 0.3), rng.uniform(0, 6), 2.5, 3.0
            )
            for _ in range(6)
        ]
    )
    assert (fit_gabor(made * 7 + 2)["r2"] > 0.99).all()
    assert fit_gabor(made + 0.1 * rng.normal(size=made.shape))["r2"].median() > 0.85
    assert fit_gabor(rng.normal(size=(6, 14, 14)))["r2"].median() < 0.25
    blobs = ndimage.gaussian_filter(rng.normal(size=(4, 14, 14)), (0, 2, 2))
    assert fit_gabor(blobs)["r2"].median() < 0.97


def test_constant_filters_have_no_fit_and_odd_shapes_are_refused():
    assert np.isnan(fit_gabor(np.ones((1, 8, 8)))["r2"][0])
    with pytest.raises(AssayError, match="side"):
        fit_gabor(np.ones((2, 8, 9)))
