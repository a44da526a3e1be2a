"""Object matching: trials, similarity, ties, and what it says of networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import yaml
from torch import nn

import assay
from assay import AssayError, ObjectMatching, Subject, match
from assay.measures.matching import cosines, shares_of_the_match
from assay.networks import PredNet
from assay.stimuli import Labelled, ObjectPictures, load_coil20_pictures, novel_objects
from assay.stimuli.galleries import draw_galleries


@pytest.fixture(scope="module")
def objects():
    return novel_objects(count=6, size=16, changes=2)


def pictures_of(features, labels, **factors):
    return ObjectPictures(np.asarray(features, np.float32), np.asarray(labels), factors=factors)


def identity():
    return Subject(nn.Identity(), "identity")


def test_the_match_has_the_largest_cosine():
    rng = np.random.default_rng(0)
    probe, gallery = rng.normal(size=8), rng.normal(size=(5, 8))
    similarity = [probe @ g / np.linalg.norm(probe) / np.linalg.norm(g) for g in gallery]
    assert match(probe, gallery).argmax() == np.argmax(similarity)
    assert match(100 * probe, gallery * np.arange(1, 6)[:, None]).argmax() == np.argmax(
        similarity
    )  # lengths do not count


def test_the_similarity_over_time_is_the_mean_of_that_of_each_step():
    rng = np.random.default_rng(1)
    features = torch.from_numpy(rng.normal(size=(6, 3, 4)))
    expected = np.mean([cosines(features[:, t]) for t in range(3)], axis=0)
    assert np.allclose(cosines(features), expected, atol=1e-14)
    unit = features / features.norm(dim=2, keepdim=True)
    assert np.allclose(expected, torch.einsum("itd,jtd->ij", unit, unit).numpy() / 3, atol=1e-14)


def test_equal_similarities_share_the_match():
    assert match(np.ones(2), np.array([[2.0, 2.0], [3.0, 3.0], [1.0, 0.0], [5.0, 5.0]])).tolist() == [
        1 / 3,
        1 / 3,
        0,
        1 / 3,
    ]


def test_a_layer_that_responds_to_everything_alike_is_at_chance(objects):
    class Constant(nn.Module):
        def forward(self, x):
            return torch.ones(len(x), 7) * 0.1

    table = ObjectMatching(objects)(Subject(Constant(), "constant"))
    assert np.allclose(table["accuracy"], 1 / 6) and (table["chance"] == 1 / 6).all()
    assert (table["status"] == "ok").all()


def test_a_code_of_the_object_is_perfect_and_one_of_the_condition_is_never_right(objects):
    measure = ObjectMatching(objects, trials=4)
    by_object = measure.of_features(np.eye(6)[objects.labels]).table
    assert (by_object["accuracy"] == 1).all() and (by_object["high"] == 1).all() and (by_object["low"] < 1).all()
    alike = ObjectMatching(objects, trials=4, distractors="alike")
    condition = alike.objects.levels()
    by_condition = alike.of_features(1.0 + np.eye(20)[condition].reshape(len(objects), -1)).table
    assert np.allclose(by_condition["accuracy"], 1 / 6)  # all pictures of the gallery are taken under one condition


def test_every_gallery_has_one_picture_of_the_object_which_is_not_the_probe(objects):
    for how in ("any", "alike"):
        drawn = draw_galleries(objects, 5, 7, how, seed=3)
        shown = objects.labels[drawn.pictures]
        assert (shown[:, 0] == objects.labels[drawn.probes]).all()
        assert (shown[:, 1:] != shown[:, :1]).all()
        assert all(len(set(row)) == 5 for row in shown.tolist())  # no other object twice
        assert (drawn.pictures[:, 0] != drawn.probes).all()
        differs = objects.levels()[drawn.probes] != objects.levels()[drawn.pictures[:, 0]]
        for name, mask in zip(("rotation", "light", "color"), np.eye(3, dtype=bool), strict=True):
            assert (differs[drawn.factor == name] == mask).all()
        assert (differs[drawn.factor == "mix"].sum(1) > 1).all()
        if how == "alike":
            levels = objects.levels()[drawn.pictures]
            assert (levels == levels[:, :1]).all()


def test_the_trials_are_the_same_for_all_networks_and_others_for_another_seed(objects):
    one, same, other = (ObjectMatching(objects, seed=seed).galleries() for seed in (0, 0, 1))
    assert np.array_equal(one.pictures, same.pictures) and not np.array_equal(one.pictures, other.pictures)


def test_the_accuracy_of_a_gallery_is_that_of_match_one_by_one(objects):
    measure = ObjectMatching(objects, gallery=4, trials=3)
    subject = Subject(nn.Sequential(nn.AvgPool2d(4), nn.Flatten()), "coarse pixels")
    features = measure.features(subject, "1")[:, 0]
    drawn = measure.galleries()
    credit = [match(features[p], features[g])[0] for p, g in zip(drawn.probes, drawn.pictures, strict=True)]
    table = measure(subject).set_index("factor")
    for factor in drawn.factors:
        assert table.accuracy[factor] == pytest.approx(np.mean(np.array(credit)[drawn.factor == factor]))


def test_a_network_of_videos_is_shown_each_picture_for_frames_the_first_of_which_is_left_out(objects):
    torch.manual_seed(0)
    network = PredNet((3, 4, 8))
    subject = Subject(network, "small PredNet")
    measure = ObjectMatching(objects, frames=3, batch_size=7)
    table = measure(subject)
    assert (table["layer"] == "R2").all()  # the representation at the top
    features = measure.features(subject, "R2")
    assert features.shape == (len(objects), 2, 8 * 4 * 4)
    frames = objects.shown()[:, None].expand(-1, 3, -1, -1, -1)
    expected = subject.record(frames, ["R2"])["R2"][:, 1:].flatten(2)
    assert torch.allclose(features, expected, atol=1e-6)


def test_batches_do_not_change_the_table(objects):
    subject = Subject(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()), "network")
    tables = [ObjectMatching(objects, batch_size=n)(subject) for n in (5, 64)]
    assert np.allclose(tables[0]["accuracy"], tables[1]["accuracy"])


def test_labelled_pictures_are_objects_of_unknown_conditions():
    rng = np.random.default_rng(0)
    data = Labelled(rng.random((12, 1, 4, 4), dtype=np.float32), np.arange(12) % 3)
    table = ObjectMatching(data)(Subject(nn.Flatten(), "pixels"))
    assert table["factor"].tolist() == ["any", "all"] and table["chance"].tolist() == [1 / 3] * 2


def test_evidence_is_paired_by_object(objects):
    measure = ObjectMatching(objects)
    measured = measure.measured(Subject(nn.Flatten(), "pixels"))
    evidence = measure.evidence(measured)
    assert evidence[0].quantity == "object matching" and len(evidence[0].items) == 6
    assert np.mean(list(evidence[0].items.values())) == pytest.approx(evidence[0].value)
    assert {str(key) for key in measure.predictors(measured.table)} >= {"matching accuracy", "matching accuracy mix"}


def test_coil20_is_matched_in_galleries_of_its_20_objects(shared_data):
    coil = load_coil20_pictures(shared_data / "coil20" / "coil20_64.npz")
    measure = ObjectMatching(coil, trials=10)
    table = measure.of_features(np.asarray(coil.inputs, np.float32).reshape(len(coil), -1)).table
    assert table["factor"].tolist() == ["rotation", "all"] and (table["chance"] == 0.05).all()
    assert table["accuracy"][0] == pytest.approx(0.61, abs=1e-12)  # of pixels, as it was when it was first computed


def test_what_is_wrong_is_said(objects):
    with pytest.raises(AssayError, match=r"gallery=50 needs as many objects, and there are 6 .* give gallery=6"):
        ObjectMatching(objects, gallery=50)
    for wrong, sentence in (
        ({"gallery": 1}, "at least 2 pictures"),
        ({"trials": 0}, "trials=0"),
        ({"frames": 1}, "frames=1"),
        ({"distractors": "alyke"}, "alike"),
        ({"batch_size": 0}, "batch_size=0"),
    ):
        with pytest.raises(AssayError, match=sentence):
            ObjectMatching(objects, **wrong)
    single = pictures_of(np.ones((3, 1, 2, 2)), [0, 1, 2], rotation=[0, 0, 0])
    with pytest.raises(AssayError, match="no object has two pictures that differ in rotation"):
        ObjectMatching(single)
    uneven = pictures_of(np.ones((4, 1, 2, 2)), [0, 0, 1, 1], rotation=[0, 1, 0, 2])
    with pytest.raises(AssayError, match="has no picture under the conditions"):
        ObjectMatching(uneven, distractors="alike")
    with pytest.raises(AssayError, match="needs known conditions"):
        ObjectMatching(Labelled(np.ones((4, 1, 2, 2)), np.array([0, 0, 1, 1])), distractors="alike")
    with pytest.raises(AssayError, match="undefined: 0 for 1 of 3 pictures"):
        match(np.zeros(2), np.ones((2, 2)))
    with pytest.raises(AssayError, match="not finite for 1 of 3"):
        match(np.ones(2), np.array([[1.0, np.nan], [1.0, 2.0]]))
    with pytest.raises(AssayError, match="probe_features is"):
        match(np.ones(3), np.ones((2, 2)))
    with pytest.raises(AssayError, match="54 pictures"):
        ObjectMatching(objects).of_features(np.ones((3, 4)))


def test_silent_and_broken_layers_have_a_status_and_no_accuracy(objects):
    class Odd(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x):
            return x.flatten(1) * self.value

    measure = ObjectMatching(objects)
    silent = measure(Subject(Odd(0.0), "silent"))
    broken = measure(Subject(Odd(float("nan")), "broken"))
    assert (silent["status"] == "0 for 54 of 54 pictures").all() and silent["accuracy"].isna().all()
    assert (broken["status"] == "not finite for 54 of 54 pictures").all() and broken["low"].isna().all()


def test_shares_add_up_to_1():
    similarities = np.round(np.random.default_rng(0).random((200, 6)), 1)
    assert np.allclose(shares_of_the_match(similarities).sum(1), 1)


def test_a_plan_writes_it(tmp_path):
    plan = tmp_path / "plan.yaml"
    novel = {"novel": {"count": 3, "size": 8, "changes": 1}}
    written = {
        "run": str(tmp_path / "run"),
        "subjects": [{"source": "torch.nn:Flatten"}],
        "measures": [{"measure": "matching", "objects": novel, "trials": 2}],
    }
    plan.write_text(yaml.safe_dump(written))
    (measure,) = assay.load_plan(plan).measures.values()
    assert isinstance(measure, ObjectMatching) and measure.objects.classes == 3
    run = assay.load_plan(plan).execute()
    assert not run.failures and run.table("matching")["chance"].tolist() == [1 / 3] * 5


def test_a_layer_of_a_network_of_videos_that_is_not_over_time_counts_as_one_step(objects):
    class Pooled(torch.nn.Module):
        video = True

        def __init__(self) -> None:
            super().__init__()
            self.pooled = torch.nn.Identity()

        def forward(self, clips):
            return self.pooled(clips.flatten(2).mean(1)[:, :7])  # seven numbers, which no four steps divide

    features = ObjectMatching(objects, layer="pooled").features(Subject(Pooled()), "pooled")
    assert features.shape == (len(objects), 1, 7)
