"""Human-model similarity: exact values, all layers in one pass, both scales, and input that does not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import assay
from assay import (
    AssayError,
    HumanSimilarity,
    Subject,
    bootstrap_rdms,
    compare_rdms,
    human_similarity,
    noise_ceiling,
    rdm,
)
from assay.measures.similarity.layers import layer_rdms
from assay.runs.evidence import evidence_table, read_evidence
from assay.stats.differences import difference, interval
from assay.stimuli import HumanStimuli, RdmSet
from assay.stimuli.transforms import Grey

M = 10
DRAW = np.random.default_rng(0)
IMAGES = DRAW.random((M, 3, 12, 12), dtype=np.float32)
PEOPLE = DRAW.random((4, M * (M - 1) // 2))


class Still(nn.Module):
    """A network of video that takes the mean over channels of every frame, and numbers the steps."""

    video = True

    def __init__(self) -> None:
        super().__init__()
        self.state = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(x.shape[1], dtype=x.dtype)[:, None, None]
        return self.state(x.mean(2) * (1 + steps))


class Mixed(nn.Module):
    """Layers with RDMs, and layers without: constant for some, not finite, not one per image."""

    def __init__(self) -> None:
        super().__init__()
        self.good, self.constant, self.infinite, self.turned = (nn.Identity() for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = self.good(x.flatten(1))
        self.constant(flat * (flat[:, :1] > 0.5))
        self.infinite(flat / 0)
        self.turned(flat.T)
        return flat


def network() -> Subject:
    torch.manual_seed(0)
    return Subject(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 5)), "small")


def rows(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_index("layer")


def test_layers_and_all_of_them_equal_rdms_of_the_recorded_responses():
    subject = network()
    table = rows(HumanSimilarity((IMAGES, PEOPLE), bootstrap=0)(subject))
    recorded = {name: t.flatten(1).double().numpy() for name, t in subject.record(IMAGES).items()}
    recorded["all"] = np.concatenate(list(recorded.values()), axis=1)
    for name, responses in recorded.items():
        model = rdm(responses)
        # Responses are float32 there and float64 here.
        assert table.hms[name] == pytest.approx(compare_rdms(model, PEOPLE.mean(axis=0)), abs=1e-5)
        assert table.subject_mean[name] == pytest.approx(compare_rdms(model, PEOPLE).mean(), abs=1e-5)
        assert table.features[name] == responses.shape[1]
    assert table.kind["all"] == "all" and set(table.kind[:4]) == {"layer"}
    assert (table.n == M).all() and (table.people == 4).all() and (table.status == "ok").all()


@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
@pytest.mark.parametrize("batch_size", [2, 3, 7])
def test_showing_a_few_images_at_a_time_gives_the_same(metric, batch_size):
    subject = network()
    whole = layer_rdms(subject, IMAGES, metric=metric)
    parts = layer_rdms(subject, IMAGES, metric=metric, batch_size=batch_size)
    for name, layer in whole.items():
        # A convolution of another batch size may round otherwise.
        np.testing.assert_allclose(parts[name].rdm, layer.rdm, atol=1e-6)
        assert parts[name].features == layer.features


def test_all_layers_are_centred_together_not_one_by_one():
    class Far(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.low, self.high = nn.Identity(), nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            flat = x.flatten(1)
            return self.high(self.low(flat * flat.mean(1, keepdim=True)) + 100 * flat[:, :1])

    subject = Subject(Far(), "far")
    together = np.concatenate([t.double().numpy() for t in subject.record(IMAGES).values()], axis=1)
    np.testing.assert_allclose(layer_rdms(subject, IMAGES)["all"].rdm, rdm(together), atol=1e-5)


def test_layers_that_return_the_same_tensor_have_one_rdm_and_count_once():
    inner = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU())
    found = layer_rdms(Subject(nn.Sequential(inner), "nested"), IMAGES)
    assert list(found) == ["0.0", "0.1", "0", "all"]
    assert found["0"] is found["0.1"] and found["all"].features == 2 * 200


def test_still_images_are_shown_to_a_network_of_video_for_some_frames_without_the_first():
    table = rows(HumanSimilarity((IMAGES, PEOPLE), frames=4, bootstrap=0)(Subject(Still(), "video")))
    seen = IMAGES.astype(np.float64).mean(axis=1)
    responses = np.stack([seen * (1 + step) for step in (1, 2, 3)], axis=1).reshape(M, -1)
    assert table.features["state"] == 3 * 144
    assert table.hms["state"] == pytest.approx(compare_rdms(rdm(responses), PEOPLE.mean(axis=0)), abs=1e-5)


def test_baselines_and_ceiling_are_rows_on_the_scale_that_is_theirs():
    labels = np.arange(M) % 3
    stimuli = HumanStimuli(assay.stimuli.Images(IMAGES, labels), RdmSet(PEOPLE))
    table = rows(HumanSimilarity(stimuli, bootstrap=0)(network()))
    mean = PEOPLE.mean(axis=0)
    grey = Grey()(torch.from_numpy(IMAGES)).flatten(1).numpy()
    assert table.hms["pixels"] == pytest.approx(compare_rdms(rdm(IMAGES), mean), abs=1e-12)
    assert table.hms["grey pixels"] == pytest.approx(compare_rdms(rdm(grey), mean), abs=1e-12)
    assert table.hms["categories"] == pytest.approx(compare_rdms(assay.category_rdm(labels), mean), abs=1e-12)
    assert table[table.kind == "baseline"].index.tolist() == ["pixels", "grey pixels", "retina and V1", "categories"]
    bounds = table[table.kind == "ceiling"]
    assert bounds.hms.isna().all()
    np.testing.assert_allclose(bounds.subject_mean, noise_ceiling(PEOPLE), atol=1e-12)


def test_an_image_of_one_colour_has_distances_but_no_correlations():
    images = IMAGES.copy()
    images[3] = 0.5
    undefined = rows(HumanSimilarity((images, PEOPLE), bootstrap=0)(network()))
    assert not {"pixels", "grey pixels"} & set(undefined.index)
    table = rows(HumanSimilarity((images, PEOPLE), metric="euclidean", bootstrap=0)(network()))
    expected = compare_rdms(rdm(images, "euclidean"), PEOPLE.mean(axis=0))
    assert table.hms["pixels"] == pytest.approx(expected, abs=1e-12) and "grey pixels" in table.index


def test_intervals_hold_the_values_and_networks_are_compared_in_pairs():
    measure = HumanSimilarity((IMAGES, PEOPLE), layers=[-1], bootstrap=100)
    first, second = (measure.measured(subject) for subject in (network(), Subject(nn.Flatten(), "flat")))
    defined = first.table[first.table.kind.isin(["layer", "all", "baseline"])]
    assert (defined.low <= defined.hms).all() and (defined.hms <= defined.high).all()
    assert (first.table.subject_low <= first.table.subject_mean)[:-1].all()  # all but the people themselves
    together, last = measure.evidence(first)
    assert together.better == "higher" and together.value == first.table.hms[1] and len(last.draws) == 100
    apart = difference(together, measure.evidence(second)[0])
    assert apart is not None and apart.paired and apart.n == M
    # The same resamples, whatever else is scored: the baselines of both agree to the bit.
    np.testing.assert_array_equal(first.draws[2], second.draws[2])


def test_a_number_has_one_interval_and_one_difference_wherever_they_are_shown():
    measure = HumanSimilarity((IMAGES, PEOPLE), layers=[-1], bootstrap=100)
    first, second = (measure.measured(subject) for subject in (network(), Subject(nn.Flatten(), "flat")))
    (evidence,) = read_evidence(evidence_table(measure.evidence(first)[:1]))  # as runs keep it
    row = first.table.iloc[1]
    assert interval(evidence) == pytest.approx((row.low, row.high), abs=1e-12)
    models = [subject.rdm for subject in (measure.rdms(s)["all"] for s in (network(), Subject(nn.Flatten(), "flat")))]
    pairs = bootstrap_rdms(models, PEOPLE.mean(axis=0), draws=100).pairs().iloc[0]
    apart = difference(evidence, measure.evidence(second)[0])
    assert (apart.value, *apart.interval()) == pytest.approx((pairs.difference, pairs.low, pairs.high), abs=1e-12)


def test_every_person_counts_the_same_however_many_sessions_they_had():
    sessions = HumanStimuli(IMAGES, PEOPLE, ("anna", "anna", "anna", "ben"))
    expected = (PEOPLE[:3].mean(axis=0) + PEOPLE[3]) / 2
    np.testing.assert_allclose(sessions.mean, expected, atol=1e-15)
    model = DRAW.random(M * (M - 1) // 2)
    assert human_similarity(model, sessions) == pytest.approx(compare_rdms(model, expected))
    table = rows(HumanSimilarity(sessions, bootstrap=0)(network()))
    assert table.people.eq(2).all()
    np.testing.assert_allclose(table.subject_mean[["lower bound"]], noise_ceiling(sessions.by_subject).lower)


def test_one_person_has_no_ceiling():
    table = HumanSimilarity((IMAGES, PEOPLE[:1]), bootstrap=50)(network())
    assert "ceiling" not in set(table.kind)
    np.testing.assert_allclose(table.subject_mean, table.hms)


def test_layers_without_an_rdm_have_a_status_and_do_not_spoil_the_others():
    table = rows(
        HumanSimilarity((IMAGES, PEOPLE), layers=["good", "constant", "turned"], bootstrap=0)(Subject(Mixed()))
    )
    constant = int((IMAGES.reshape(M, -1)[:, 0] <= 0.5).sum())
    assert table.status["constant"] == f"constant for {constant} of {M} images" and np.isnan(table.hms["constant"])
    assert table.status["turned"] == "not per image"
    assert table.status["good"] == "ok" and table.status["all"] == "ok" and table.features["all"] == 2 * 432
    table = rows(HumanSimilarity((IMAGES, PEOPLE), layers="infinite", bootstrap=0)(Subject(Mixed())))
    assert table.status["infinite"] == table.status["all"] == "not finite"


def test_a_layer_of_categories_scores_what_the_rdm_of_categories_does_and_an_identity_has_no_score():
    labels = torch.arange(M) % 3

    class Coded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.categories, self.identity = nn.Identity(), nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            which = (x.flatten(1)[:, None] - torch.from_numpy(IMAGES).flatten(1)).abs().sum(2).argmin(1)
            self.identity(torch.eye(M)[which] / 3)
            return self.categories(torch.eye(3)[labels[which]].repeat(1, 7) / 3)

    stimuli = HumanStimuli(assay.stimuli.Images(IMAGES, labels.numpy()), RdmSet(PEOPLE))
    for batch_size in (None, 4):
        table = rows(HumanSimilarity(stimuli, bootstrap=20, batch_size=batch_size)(Subject(Coded())))
        columns = ["hms", "low", "high", "subject_mean", "subject_low"]
        truth = table.loc[table.index == "categories"]
        assert truth.kind.tolist() == ["layer", "baseline"]
        np.testing.assert_allclose(*truth[columns].to_numpy(dtype=float), atol=1e-12)
        assert table.status["identity"] == "the same for all pairs" and np.isnan(table.hms["identity"])


def test_a_layer_called_all_is_refused():
    module = nn.Module()
    module.all = nn.Identity()
    module.forward = lambda x: module.all(x)
    with pytest.raises(AssayError, match="is called 'all'"):
        HumanSimilarity((IMAGES, PEOPLE))(Subject(module, "named"))


def asymmetric() -> np.ndarray:
    matrix = np.ones((M, M)) - np.eye(M)
    matrix[0, 1] = 2
    return matrix[None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HumanStimuli(IMAGES, asymmetric()), "RDM 0 of vectors is not symmetric"),
        (lambda: HumanStimuli(IMAGES, np.where(PEOPLE.max() == PEOPLE, np.nan, PEOPLE)), "NaN or infinite"),
        (lambda: HumanStimuli(IMAGES[:9], PEOPLE), "there are 9 images, and the RDMs are of 10 stimuli"),
        (lambda: HumanStimuli(IMAGES, PEOPLE, ("anna", "ben")), "subjects has 2 entries for 4 RDMs"),
        (
            lambda: HumanStimuli(IMAGES, RdmSet(PEOPLE, (), "abcdefghij"), names=tuple("bacdefghij")),
            "the same stimuli in another order",
        ),
        (lambda: human_similarity(PEOPLE[0], RdmSet(PEOPLE).chosen(["carl"])), "there is no RDM 'carl'"),
        (lambda: HumanSimilarity(3), "stimuli=3 is no set of images with RDMs"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), metric="mahalanobis"), "metric='mahalanobis' has no running sum"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), method="spearmen"), "method='spearmen' is unknown"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), method="whitened-cosine"), "give bootstrap=0"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), frames=1), "frames=1 must be a whole number from 2"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), batch_size=1), "batch_size=1"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), bootstrap=1), "bootstrap=1"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), bootstrap=10.5), "bootstrap=10.5"),
        (lambda: HumanSimilarity((IMAGES, PEOPLE), seed=-1), "seed=-1 must be at least 0"),
        (lambda: HumanSimilarity((IMAGES[:3], PEOPLE[:, :3])), "bootstrap=200 takes 4 stimuli or more"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(AssayError, match=message):
        make()


def test_images_and_rdms_are_loaded_from_folders(tmp_path):
    from PIL import Image

    for place in ("images", "rdms"):
        (tmp_path / place).mkdir()
    for number, picture in enumerate(IMAGES[:4]):
        Image.fromarray((picture.transpose(1, 2, 0) * 255).astype(np.uint8)).save(tmp_path / f"images/{number}.png")
    for name in ("anna", "ben"):
        np.save(tmp_path / f"rdms/{name}.npy", DRAW.random(6))
    measure = HumanSimilarity(tmp_path, bootstrap=0)
    assert measure.stimuli.by_subject.names == ("anna", "ben") and measure.stimuli.names == ("0", "1", "2", "3")
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "subjects: ['torch.nn:Flatten']\nmeasures:\n"
        "  - {measure: human-similarity, bootstrap: 0, stimuli: {images: images, rdms: rdms, people: [ben, anna]}}\n"
    )
    table = assay.load_plan(plan).execute().table("human-similarity")
    assert table.people.eq(2).all() and table.hms[0] == pytest.approx(table.hms[2])  # Flatten gives pixels
    plan.write_text(plan.read_text().replace("ben, anna", "ben, carl"))
    with pytest.raises(AssayError, match="there is no RDM 'carl'"):
        assay.load_plan(plan)


@pytest.mark.slow
def test_published_values_on_the_92_images(shared_data):
    measure = HumanSimilarity(shared_data / "kriegeskorte92", bootstrap=0)
    table = rows(measure(Subject(nn.Flatten(), "pixels themselves")))
    # The digits that are published.
    assert table.hms["pixels"] == pytest.approx(0.1065, abs=5e-5)
    assert table.hms["animacy"] == pytest.approx(0.58819, abs=5e-6)
    assert table.hms["all"] == table.hms["output"] == pytest.approx(table.hms["pixels"], abs=1e-6)
    assert table.subject_mean[["lower bound", "upper bound"]].tolist() == pytest.approx([0.37231, 0.66572], abs=5e-6)
    brain = assay.stimuli.load_brain92(shared_data / "kriegeskorte92")
    assert human_similarity(brain.monkey, brain.sessions)[0] == pytest.approx(0.43892, abs=5e-6)
    assert human_similarity(brain.monkey.vectors[0], brain.sessions, "pearson") == pytest.approx(0.49121, abs=5e-6)


def test_a_prednet_is_measured_by_its_representation_units():
    torch.manual_seed(0)
    subject = Subject(assay.PredNet((3, 4)), "prednet")
    table = rows(HumanSimilarity((IMAGES, PEOPLE), layers="R*", bootstrap=0)(subject))
    assert set(table[table.kind == "layer"].index) == {"R0", "R1"}
    videos = torch.from_numpy(IMAGES)[:, None].expand(-1, 5, -1, -1, -1)
    recorded = subject.record(videos, "R*")
    together = torch.cat([states[:, 1:].flatten(1) for states in recorded.values()], dim=1).double().numpy()
    assert table.hms["all"] == pytest.approx(compare_rdms(rdm(together), PEOPLE.mean(axis=0)), abs=1e-5)


def test_a_study_takes_the_similarity_of_all_layers_first():
    measure = HumanSimilarity((IMAGES, PEOPLE), bootstrap=0)
    table = measure(network())
    taken = measure.predictors(table)
    first, second, _ = taken
    assert first == "human-model similarity"
    assert taken[first] == rows(table).hms["all"] and taken[second] == rows(table).hms["3"]
