"""RDMs, their comparison, noise ceilings and resamples against rsatoolbox, on random and on tied data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import assay
from assay.measures.similarity.inference import bootstrap_rdms
from assay.measures.similarity.resampling import SubjectsDrawn, pair_weights, resampled
from assay.stimuli import RdmSet

with warnings.catch_warnings():  # deprecations inside the package
    warnings.simplefilter("ignore")
    pytest.importorskip("rsatoolbox")
    import rsatoolbox.data
    import rsatoolbox.inference
    import rsatoolbox.model
    import rsatoolbox.rdm
    import rsatoolbox.util.inference_util

# Both compute in float64; what differs is the order of sums. The whitened methods agree to about 1e-15 too.
EXACT = 1e-12
METHODS = {
    "spearman": "spearman",
    "rho-a": "rho-a",
    "tau-a": "tau-a",
    "tau-b": "tau-b",
    "pearson": "corr",
    "cosine": "cosine",
    "whitened-correlation": "corr_cov",
    "whitened-cosine": "cosine_cov",
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:Noise ceiling for tau"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast"),  # its descriptors, filled with NaN
]


def rdms(kind: str, count: int, stimuli: int = 12, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).random((count, stimuli * (stimuli - 1) // 2))
    return np.round(4 * values) + 1 if kind == "tied" else values


def theirs(vectors: np.ndarray) -> rsatoolbox.rdm.RDMs:
    return rsatoolbox.rdm.RDMs(vectors.copy())


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("metric", ["correlation", "euclidean", "mahalanobis"])
def test_rdms_equal_those_of_rsatoolbox(metric, offset):
    rng = np.random.default_rng(1)
    responses = rng.normal(size=(9, 30)) + offset
    spread = rng.normal(size=(30, 60))
    precision = np.linalg.inv(spread @ spread.T / 60)
    noise = {"precision": precision} if metric == "mahalanobis" else {}
    ours = assay.rdm(responses, metric, **noise)
    data = rsatoolbox.data.Dataset(responses)
    reference = rsatoolbox.rdm.calc_rdm(data, metric, noise=precision if noise else None).dissimilarities[0]
    # Theirs subtracts squares of 1000 from one another: of sixteen digits six are gone.
    np.testing.assert_allclose(ours, reference, rtol=1e-8 if offset else 1e-10, atol=1e-8 if offset else EXACT)


@pytest.mark.parametrize("with_noise", [False, True])
@pytest.mark.parametrize("folds", [2, 5])
def test_crossnobis_distances_equal_those_of_rsatoolbox(folds, with_noise):
    rng = np.random.default_rng(2)
    stimuli, features = 6, 8
    responses = rng.normal(size=(stimuli, features)) + rng.normal(size=(folds, stimuli, features))
    spread = rng.normal(size=(features, 40))
    precision = np.linalg.inv(spread @ spread.T / 40) if with_noise else None
    data = rsatoolbox.data.Dataset(
        responses.reshape(-1, features),
        obs_descriptors={
            "stimulus": np.tile(np.arange(stimuli), folds),
            "fold": np.repeat(np.arange(folds), stimuli),
        },
    )
    reference = rsatoolbox.rdm.calc_rdm(data, "crossnobis", "stimulus", noise=precision, cv_descriptor="fold")
    ours = assay.rdm(responses, "crossnobis", precision=precision)
    np.testing.assert_allclose(ours, reference.dissimilarities[0], atol=EXACT)


@pytest.mark.parametrize("kind", ["random", "tied"])
@pytest.mark.parametrize("method", METHODS)
def test_similarities_equal_those_of_rsatoolbox(method, kind):
    a, b = rdms(kind, 3, seed=3), rdms(kind, 4, seed=4)
    reference = rsatoolbox.rdm.compare(theirs(a), theirs(b), METHODS[method])
    np.testing.assert_allclose(assay.compare_rdms(a, b, method), reference, atol=EXACT)
    np.testing.assert_allclose(assay.compare_rdms(a, b, METHODS[method]), reference, atol=EXACT)  # their names too


@pytest.mark.parametrize("kind", ["random", "tied"])
@pytest.mark.parametrize("method", METHODS)
def test_noise_ceilings_equal_those_of_rsatoolbox(method, kind):
    data = rdms(kind, 5, seed=5)
    reference = rsatoolbox.inference.boot_noise_ceiling(theirs(data), METHODS[method])
    np.testing.assert_allclose(assay.noise_ceiling(data, method), reference, atol=EXACT)
    grouped = rsatoolbox.rdm.RDMs(data[:4].copy(), rdm_descriptors={"subject": ["a", "a", "b", "b"]})
    reference = rsatoolbox.inference.boot_noise_ceiling(grouped, METHODS[method], "subject")
    np.testing.assert_allclose(assay.noise_ceiling(data[:4], method, subjects="aabb"), reference, atol=EXACT)
    grouped = rsatoolbox.rdm.RDMs(data.copy(), rdm_descriptors={"subject": list("aaabc")})  # sessions weigh in pools
    reference = rsatoolbox.inference.boot_noise_ceiling(grouped, METHODS[method], "subject")
    np.testing.assert_allclose(assay.noise_ceiling(data, method, subjects="aaabc"), reference, atol=EXACT)


@pytest.mark.parametrize("kind", ["random", "tied"])
@pytest.mark.parametrize("method", ["spearman", "rho-a", "tau-a", "tau-b", "pearson", "cosine"])
def test_a_resample_of_stimuli_gives_what_rsatoolbox_gives(method, kind):
    models, data = rdms(kind, 2, seed=6), rdms(kind, 4, seed=7)
    source = resampled(models, data, method, "standardised", of_stimuli=True)
    for seed in range(3):
        drawn = np.random.default_rng(seed).integers(12, size=12)
        sample = theirs(data).subsample_pattern("index", drawn)
        predicted = theirs(models).subsample_pattern("index", drawn)
        reference = rsatoolbox.rdm.compare(predicted, sample, METHODS[method]).mean(axis=1)
        ceiling = rsatoolbox.inference.boot_noise_ceiling(sample, METHODS[method])
        weights = pair_weights(np.bincount(drawn, minlength=12))
        people, at = SubjectsDrawn(np.ones(4, int), np.arange(4)), source.at(weights)
        np.testing.assert_allclose(people.scores(at), reference, atol=EXACT)
        np.testing.assert_allclose(people.ceiling(at), ceiling, atol=EXACT)


@pytest.mark.slow
def test_standard_errors_are_those_of_rsatoolbox_up_to_the_resamples():
    """The law of the resamples is the same; the random numbers are not, so 1,000 of them agree to a few per cent."""
    truth = rdms("random", 1, seed=8)
    data, models = truth + rdms("random", 6, seed=9), np.concatenate([truth, rdms("random", 1, seed=10)])
    ours = bootstrap_rdms(models, data, "corr", resample="both", draws=2000)
    np.random.seed(0)  # noqa: NPY002  # rsatoolbox draws from the global generator
    fixed = [rsatoolbox.model.ModelFixed(str(i), theirs(rdm[None])) for i, rdm in enumerate(models)]
    reference = rsatoolbox.inference.eval_dual_bootstrap(fixed, theirs(data), "corr", N=1000)
    errors = [ours.standard_error(np.eye(4)[i]) for i in range(2)] + [ours.standard_error(np.array([1, -1, 0, 0]))]
    expected = [*np.sqrt(reference.model_var), *np.sqrt(reference.diff_var)]
    # A standard deviation over 1,000 draws has a relative error of 1/√2000 = 2.2 %, and three of them enter.
    np.testing.assert_allclose(errors, expected, rtol=0.15)
    assert ours.df == reference.dof


def test_p_values_are_those_of_rsatoolbox_from_the_same_scores_and_errors():
    """Above 0 both are one-sided; at the ceiling ours asks whether a model is below it, theirs whether it is at it."""
    truth = rdms("random", 1, seed=8)
    data, models = truth + rdms("random", 6, seed=9), np.concatenate([truth, rdms("random", 2, seed=10)])
    ours = bootstrap_rdms(models, data, draws=100)
    table = ours.table()
    scores = ours.values[None]
    above_zero = np.array([ours.standard_error(np.eye(5)[i]) ** 2 for i in range(3)])
    to_ceiling = np.array([ours.standard_error(np.eye(5)[i] - np.eye(5)[3]) ** 2 for i in range(3)])
    tests = rsatoolbox.util.inference_util
    np.testing.assert_allclose(table.p_above_zero, tests.t_test_0(scores, above_zero, ours.df), atol=EXACT)
    reference = tests.t_test_nc(scores, to_ceiling, ours.ceiling.lower, ours.df)
    one_sided = np.where(ours.values < ours.ceiling.lower, reference / 2, 1 - reference / 2)
    np.testing.assert_allclose(table.p_below_ceiling, one_sided, atol=EXACT)


def test_sets_go_to_rsatoolbox_and_come_back():
    ours = RdmSet(rdms("random", 2, 4), ("first", "second"), ("a", "b", "c", "d"))
    package = assay.to_rsatoolbox(ours, "correlation")
    assert package.dissimilarity_measure == "correlation" and package.n_cond == 4
    back = assay.from_rsatoolbox(package)
    assert back.names == ours.names and back.stimuli == ours.stimuli
    np.testing.assert_array_equal(back.vectors, ours.vectors)
    assert assay.compare_rdms(package, back).round(12).tolist()[0][0] == 1.0
    assert assay.from_rsatoolbox(theirs(ours.vectors)).names == ()


def test_files_that_rsatoolbox_saves_are_loaded(tmp_path):
    pytest.importorskip("h5py")
    vectors = rdms("random", 3, 5)
    theirs(vectors).save(str(tmp_path / "rdms.h5"), "hdf5")
    np.testing.assert_array_equal(assay.stimuli.load_rdms(tmp_path / "rdms.h5").vectors, vectors)


def test_names_that_rsatoolbox_saves_are_loaded_and_their_order_is_checked(tmp_path):
    pytest.importorskip("h5py")
    package = rsatoolbox.rdm.RDMs(
        rdms("random", 4, 5),
        rdm_descriptors={"subject": ["anna", "anna", "ben", "ben"], "session": [1, 2, 1, 2]},
        pattern_descriptors={"conds": ["owl", "cat", "cup", "car", "hut"]},
    )
    package.save(str(tmp_path / "rdms.h5"), "hdf5")
    saved = assay.stimuli.load_rdms(tmp_path / "rdms.h5")
    assert saved.names == assay.from_rsatoolbox(package).names == ("anna 1", "anna 2", "ben 1", "ben 2")
    assert saved.stimuli == assay.from_rsatoolbox(package).stimuli == ("owl", "cat", "cup", "car", "hut")
    assert assay.from_rsatoolbox(package, names="index").names == ("0", "1", "2", "3")
    with pytest.raises(assay.AssayError, match="rdm_descriptors has no 'sesion'"):
        assay.from_rsatoolbox(package, names="sesion")
    other = rsatoolbox.rdm.RDMs(package.dissimilarities.copy(), pattern_descriptors=dict(package.pattern_descriptors))
    other.reorder(np.array([1, 0, 2, 3, 4]))
    with pytest.raises(assay.AssayError, match="the same stimuli in another order: stimulus 0 is 'owl' and 'cat'"):
        assay.compare_rdms(package, other)
    ours = RdmSet(saved.vectors, stimuli=saved.stimuli)
    np.testing.assert_allclose(
        assay.compare_rdms(ours, assay.from_rsatoolbox(other).reordered(saved.stimuli)).diagonal(), 1
    )
