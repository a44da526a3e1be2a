"""Noise ceilings and the similarity of subjects have the published values on the real data."""

from __future__ import annotations

import numpy as np
import pytest

from assay import (
    AssayError,
    bootstrap_rdms,
    category_rdm,
    compare_rdms,
    human_similarity,
    noise_ceiling,
    rdm,
    similarity_between_subjects,
)
from assay.stimuli import RdmSet, load_brain92


@pytest.fixture(scope="module")
def brain(shared_data):
    return load_brain92(shared_data / "kriegeskorte92")


@pytest.mark.parametrize(("pooling", "lower", "upper"), [("standardised", 0.37231, 0.66572), ("raw", 0.37856, 0.66068)])
def test_the_ceiling_of_the_four_subjects_depends_on_how_they_are_pooled(brain, pooling, lower, upper):
    ceiling = noise_ceiling(brain.subjects, "spearman", pooling=pooling)
    np.testing.assert_allclose(ceiling, (lower, upper), atol=5e-6)


def test_human_human_similarity(brain):
    found = similarity_between_subjects(brain.sessions, "pearson")
    np.testing.assert_allclose(found, (0.1901, 0.0896, 28), atol=5e-5)
    np.testing.assert_allclose(similarity_between_subjects(brain.sessions), (0.1810, 0.0862, 28), atol=5e-5)


@pytest.mark.parametrize(
    ("model", "value"),
    [("animacy", 0.58819), ("monkeyIT", 0.43892), ("HMAX", 0.22173), ("Silhouette", 0.12468), ("V1", 0.03926)],
)
def test_models_against_the_mean_human_rdm(brain, model, value):
    assert compare_rdms(brain.models[model], brain.human.mean) == pytest.approx(value, abs=5e-6)


def test_monkey_pixels_and_categories_against_the_mean_human_rdm(brain):
    human = brain.human.mean
    assert compare_rdms(brain.monkey, brain.human, "pearson")[0, 0] == pytest.approx(0.49121, abs=5e-6)
    assert compare_rdms(rdm(brain.images.array), human) == pytest.approx(0.1065, abs=5e-5)
    assert compare_rdms(category_rdm(brain.categories["animate"]), human) == pytest.approx(0.58819, abs=5e-6)


def test_equal_subjects_have_a_ceiling_of_one():
    row = np.random.default_rng(0).random(10)
    assert noise_ceiling([row, row, row]) == pytest.approx((1, 1))


def test_two_subjects_leave_each_other_out():
    a, b = np.random.default_rng(0).random((2, 10))
    for method in ("spearman", "pearson", "cosine"):
        assert noise_ceiling([a, b], method).lower == pytest.approx(compare_rdms(a, b, method))


def test_sessions_of_a_subject_are_left_out_together():
    a, b = np.random.default_rng(0).random((2, 10))
    assert noise_ceiling([a, a, b], subjects=["A", "A", "B"]).lower == pytest.approx(compare_rdms(a, b))
    with pytest.raises(AssayError, match="subjects has 2 entries for 3 RDMs"):
        noise_ceiling([a, a, b], subjects=["A", "B"])


@pytest.mark.parametrize("method", ["spearman", "rho-a", "tau-a", "tau-b"])
@pytest.mark.parametrize("pooling", ["raw", "standardised"])
def test_ratings_in_decimals_tie_as_whole_numbers_do(pooling, method):
    whole = np.random.default_rng(0).integers(1, 8, (3, 105))
    model = np.random.default_rng(1).random(105)
    for tenths, units in ((whole / 10, whole), (whole / 10 + 0.7, whole + 7)):
        found = noise_ceiling(tenths, method, pooling=pooling)
        np.testing.assert_allclose(found, noise_ceiling(units, method, pooling=pooling), atol=1e-12)
        assert human_similarity(model, tenths, method) == pytest.approx(human_similarity(model, units, method))
        assert len(np.unique(RdmSet(tenths).mean)) == len(np.unique(whole.sum(axis=0)))
        drawn, exact = (bootstrap_rdms(model, rdms, method, pooling=pooling, draws=5) for rdms in (tenths, units))
        np.testing.assert_allclose(drawn.ceiling_draws, exact.ceiling_draws, atol=1e-12)


def test_one_subject_or_a_missing_one_is_named():
    row = np.random.default_rng(0).random(10)
    with pytest.raises(AssayError, match="rdms has 1 subject: what subjects have in common takes two or more"):
        noise_ceiling([row])
    with pytest.raises(AssayError, match="RDM 1 of rdms has 10 entries that are NaN"):
        noise_ceiling([row, row * np.nan])
    with pytest.raises(AssayError, match="there is no RDM 'K0'; known: 'BE', 'KO'"):
        RdmSet([row, row[::-1]], names=("BE", "KO")).chosen(["BE", "K0"])
    with pytest.raises(AssayError, match="pooling='ranks' is unknown"):
        noise_ceiling([row, row[::-1]], pooling="ranks")
