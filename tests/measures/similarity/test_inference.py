"""Resamples by weights equal resampled matrices written out; tests and intervals keep what they promise."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from assay import AssayError, bootstrap_rdms, compare_rdms, noise_ceiling, permutation_test
from assay.measures.similarity.compare import METHODS
from assay.measures.similarity.permutation import permutation_test as permute
from assay.measures.similarity.resampling import SubjectsDrawn, pair_weights, resampled
from assay.stats.bootstrap import counts
from assay.stats.multiplicity import holm as adjusted_by_holm
from assay.stimuli import RdmSet

STIMULI = 10
ENTRIES = STIMULI * (STIMULI - 1) // 2


def data(kind: str = "random", count: int = 4, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).random((count, ENTRIES))
    return np.round(5 * values) if kind == "tied" else values


def written_out(vectors: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The RDMs of a list of stimuli with repetitions, without pairs of a stimulus with itself."""
    i, j = np.triu_indices(len(drawn), 1)
    different = drawn[i] != drawn[j]
    return RdmSet(vectors).matrices[:, drawn[i[different]], drawn[j[different]]]


def score_and_ceiling_of(models, rdms, method, pooling, subjects):
    """By the plain definitions, on arrays of any number of entries, not of whole RDMs."""
    from assay.measures.similarity.ceiling import standardised
    from assay.measures.similarity.compare import similarity

    views = standardised(rdms, method) if pooling == "standardised" else rdms
    lower, upper = [], []
    for row, subject in zip(rdms, subjects, strict=True):
        others = views[subjects != subject]
        if len(others):
            lower.append(similarity(others.sum(axis=0)[None], row[None], method)[0, 0])
        upper.append(similarity(views.sum(axis=0)[None], row[None], method)[0, 0])
    return similarity(models, rdms, method).mean(axis=1), np.mean(lower), np.mean(upper)


@pytest.mark.parametrize("pooling", ["standardised", "raw"])
@pytest.mark.parametrize("kind", ["random", "tied"])
@pytest.mark.parametrize("method", [method for method in METHODS if not method.startswith("whitened")])
def test_weights_equal_resampling_written_out(method, kind, pooling):
    models, rdms = data(kind, 3, seed=1), data(kind, 4, seed=2)
    source = resampled(models, rdms, method, pooling, of_stimuli=True)
    rng = np.random.default_rng(3)
    for _ in range(5):
        drawn, subjects = np.sort(rng.integers(STIMULI, size=STIMULI)), np.sort(rng.integers(4, size=4))
        if len(np.unique(subjects)) == 1:
            continue
        expected = score_and_ceiling_of(
            written_out(models, drawn), written_out(rdms, drawn)[subjects], method, pooling, subjects
        )
        weights = pair_weights(np.bincount(drawn, minlength=STIMULI))
        copies = np.bincount(subjects, minlength=4)
        people, at = SubjectsDrawn(copies, np.arange(4)), source.at(weights)
        # Only the order of sums differs.
        np.testing.assert_allclose(people.scores(at), expected[0], atol=1e-12)
        np.testing.assert_allclose(people.ceiling(at), expected[1:], atol=1e-12)


@pytest.mark.parametrize("resample", ["stimuli", "subjects", "both"])
def test_draws_are_those_of_the_one_bootstrap_and_repeat_by_seed(resample):
    models, rdms = data(count=2, seed=1), data(count=5, seed=2)
    found = bootstrap_rdms(models, rdms, resample=resample, draws=20, seed=7)
    again = bootstrap_rdms(models[:1], rdms, resample=resample, draws=20, seed=7)
    np.testing.assert_allclose(found.draws[:, :1], again.draws, atol=1e-14)  # resamples do not depend on the models
    assert not np.array_equal(found.draws, bootstrap_rdms(models, rdms, resample=resample, draws=20, seed=8).draws)
    drawn = np.repeat(np.arange(STIMULI), next(counts(STIMULI, 20, 7))[0])
    copies = np.repeat(np.arange(5), next(counts(5, 20, [7, 1]))[0])
    drawn = np.arange(STIMULI) if resample == "subjects" else drawn
    copies = np.arange(5) if resample == "stimuli" else copies
    expected = score_and_ceiling_of(
        written_out(models, drawn), written_out(rdms, drawn)[copies], "spearman", "standardised", copies
    )
    np.testing.assert_allclose(found.draws[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found.ceiling_draws[0], expected[1:], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_values_and_ceiling_are_those_of_the_whole_data(method):
    models, rdms = data(count=2, seed=1), data(count=4, seed=2)
    found = bootstrap_rdms(models, rdms, method, resample="subjects", draws=3)
    np.testing.assert_allclose(found.values, compare_rdms(models, rdms, method).mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.ceiling, noise_ceiling(rdms, method), atol=1e-12)
    subjects = ["a", "a", "b", "c"]
    found = bootstrap_rdms(models, rdms, method, resample="subjects", draws=3, subjects=subjects)
    np.testing.assert_allclose(found.ceiling, noise_ceiling(rdms, method, subjects=subjects), atol=1e-12)


def test_the_table_and_the_pairs_of_models():
    truth = data(count=1, seed=1)
    rdms = truth + 0.3 * data(count=6, seed=2)
    models = RdmSet(np.concatenate([truth, rdms[:1], data(count=1, seed=5)]), ("true", "subject", "random"))
    found = bootstrap_rdms(models, rdms, resample="stimuli", draws=300)
    table = found.table().set_index("model")
    assert list(table.columns) == [
        "value", "low", "high",
        "p_above_zero", "p_above_zero_adjusted", "p_below_ceiling", "p_below_ceiling_adjusted",
    ]  # fmt: skip
    for column in ("p_above_zero", "p_below_ceiling"):
        np.testing.assert_array_equal(table[f"{column}_adjusted"], adjusted_by_holm(table[column].to_numpy()))
        plain = found.table(correction="none")
        np.testing.assert_array_equal(plain[f"{column}_adjusted"], plain[column])
        np.testing.assert_array_equal(plain[column], table[column])
    assert (table.low < table.value).all() and (table.value < table.high).all()
    assert table.p_above_zero["true"] < 0.001 < table.p_above_zero["random"]
    assert table.p_below_ceiling["random"] < 0.05
    pairs = found.pairs(correction="none")
    assert pairs[["model", "other"]].to_numpy().tolist() == [
        ["true", "subject"], ["true", "random"], ["subject", "random"]
    ]  # fmt: skip
    np.testing.assert_allclose(pairs.p, pairs.p_adjusted)
    holm, hochberg = (found.pairs(correction=name).p_adjusted for name in ("holm", "benjamini-hochberg"))
    assert (holm >= hochberg).all() and (hochberg >= pairs.p).all()
    low, high = found.ceiling_interval()
    assert low < found.ceiling.lower <= found.ceiling.upper < high


def test_models_that_are_one_do_not_differ():
    model, rdms = data(count=1, seed=1), data(count=4, seed=2)
    row = bootstrap_rdms([model[0], model[0]], rdms, draws=50).pairs().iloc[0]
    assert row.difference == 0 and row.p == 1


def test_one_mean_rdm_has_no_ceiling_and_can_be_bootstrapped_over_stimuli():
    found = bootstrap_rdms(data(count=1, seed=1), data(seed=2).mean(axis=0), draws=50)
    assert found.ceiling is None and np.isnan(found.ceiling_draws).all()
    assert np.isfinite(found.table()[["low", "high"]]).all(axis=None) and found.df == STIMULI - 1
    assert np.isnan(found.table().p_below_ceiling).all() and np.isnan(found.ceiling_interval()).all()


def test_resamples_without_an_rdm_are_left_out():
    four = np.random.default_rng(0).random((3, 6))
    found = bootstrap_rdms(four[:1], four, draws=200)
    assert 0 < np.isnan(found.draws).sum() < 200


def test_three_stimuli_cannot_be_resampled_and_four_do_not_find_what_is_not_there():
    rng = np.random.default_rng(0)
    model, rdms = rng.random(3), rng.random((4, 3))
    for resample in ("stimuli", "both"):
        with pytest.raises(AssayError, match=f"resample='{resample}' takes 4 stimuli or more, and there are 3"):
            bootstrap_rdms(model, rdms, resample=resample)
    assert bootstrap_rdms(model, rdms, resample="subjects", draws=20).table().high[0] > -1
    models, rdm = rng.random((150, 6)), rng.random(6)
    # All against one RDM of four stimuli by chance: at the level 0.05, 150 tests have a standard error of 0.018.
    assert (bootstrap_rdms(models, rdm, draws=200).table(correction="none").p_above_zero < 0.05).mean() < 0.11


@pytest.mark.parametrize("method", METHODS)
def test_permutations_equal_permuted_matrices_written_out(method):
    model, rdms = np.random.default_rng(0).random((1, 6)), np.random.default_rng(1).random((2, 6))  # four stimuli
    orders = list(permutations(range(4)))
    matrices = RdmSet(rdms).matrices
    values = [
        compare_rdms(model, matrices[:, order][:, :, order], method).mean() for order in np.array(orders)
    ]  # all 24
    observed = compare_rdms(model, rdms, method).mean()
    exact = np.mean(np.array(values) >= observed - 1e-12)
    row = permutation_test(model, rdms, method, permutations=2000 if not method.startswith("tau") else 300).iloc[0]
    assert row.value == pytest.approx(observed, abs=1e-12)
    # A share of about a half among 2,000 (300) draws has a standard error of at most 0.011 (0.029).
    assert row.p == pytest.approx(exact, abs=0.04 if not method.startswith("tau") else 0.1)


def test_the_permutation_test_keeps_its_level_and_finds_what_is_there():
    rng = np.random.default_rng(0)
    models, rdm = rng.random((400, ENTRIES)), rng.random(ENTRIES)
    table = permute(models, rdm, permutations=99, correction="none")
    # 400 tests at the level 0.05 have a standard error of 0.011.
    assert (table.p <= 0.05).mean() == pytest.approx(0.05, abs=0.035)
    assert abs(table.chance.mean()) < 0.01
    found = permute([rdm, models[0]], rdm + 0.2 * rng.random((3, ENTRIES)), permutations=99)
    assert found.p[0] == 0.01 and found.p_adjusted[0] == 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: bootstrap_rdms(a, b, resample="stimulus"), "did you mean 'stimuli'"),
        (lambda a, b: bootstrap_rdms(a, b[:1], resample="both"), "needs two subjects or more, rdms has 1"),
        (lambda a, b: bootstrap_rdms(a, b, "whitened-cosine"), "not defined for resamples of stimuli"),
        (lambda a, b: bootstrap_rdms(a, b, draws=1), "draws=1 show no spread"),
        (lambda a, b: bootstrap_rdms(a, b[:, :36]), "models is of 10 stimuli and rdms of 9"),
        (lambda a, b: bootstrap_rdms(a, b, names=["x"]), "names has 1 entries for 2 models"),
        (
            lambda a, b: bootstrap_rdms(a, b, draws=5).table(correction="sidak"),
            "correction='sidak' is unknown",
        ),
        (lambda a, b: bootstrap_rdms(a, b, draws=5).table(confidence=95), "confidence=95 is not between 0 and 1"),
        (lambda a, b: bootstrap_rdms(a * 0 + 1, b), "RDM 0 of models is constant"),
        (lambda a, b: permutation_test(a, b, permutations=0), "permutations=0"),
        (lambda a, b: permutation_test(a, b, permutations=9.5), "permutations=9.5 is no number of draws"),
        (lambda a, b: permutation_test(a, b, seed=-1), "seed=-1 is no seed: give a whole number from 0"),
        (lambda a, b: bootstrap_rdms(a, b, draws=5, seed=-1), "seed=-1 is no seed: give a whole number from 0"),
        (lambda a, b: bootstrap_rdms(a, b, draws=5, seed=0.5), "seed=0.5 is no seed"),
        (lambda a, b: bootstrap_rdms(a, b, draws=10.5), "draws=10.5 is no number of draws: give a whole number"),
    ],
)
def test_bad_requests_are_named(call, message):
    with pytest.raises(AssayError, match=message):
        call(data(count=2, seed=1), data(seed=2))
