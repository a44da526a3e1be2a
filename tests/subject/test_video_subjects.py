"""Networks of videos as subjects: recorded frame by frame, and asked what networks of images are asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import assay
from assay.core.determinism import seeded
from assay.measures.straightness.measure import curvature
from assay.subject.stills import record_stills, visit_stills


@pytest.fixture
def subject():
    with seeded(0):
        return assay.Subject(assay.PredNet((3, 4, 5)), "prednet")


@pytest.fixture
def clips():
    rng = np.random.default_rng(0)
    return assay.stimuli.Sequences.of(
        first=rng.random((5, 3, 8, 8), dtype=np.float32), second=rng.random((7, 3, 8, 8), dtype=np.float32)
    )


def test_its_layers_are_the_states_of_all_levels_over_time(subject):
    assert not assay.Subject(torch.nn.ReLU()).video and subject.video
    recorded = subject.record(torch.rand(2, 6, 3, 8, 8))
    assert subject.layers == [f"{state}{level}" for level in range(3) for state in ("A", "Ahat", "E", "R")]
    assert recorded["R1"].shape == (2, 6, 4, 4, 4) and recorded["E2"].shape == (2, 6, 10, 2, 2)


def test_the_output_is_the_prediction_whether_or_not_its_states_are_recorded(subject):
    frames = torch.rand(2, 4, 3, 8, 8)
    assert torch.equal(subject(frames), subject.record(frames, ["Ahat0", "R2"])["Ahat0"])


def test_preprocessing_is_given_single_frames(subject):
    frames = torch.rand(2, 4, 3, 16, 16)
    small = assay.Subject(subject.module, preprocess=assay.stimuli.Resize(8))
    by_hand = assay.stimuli.Resize(8)(frames.flatten(0, 1)).unflatten(0, (2, 4))
    assert torch.equal(small(frames), subject(by_hand))


def test_straightness_follows_the_states_of_each_clip_from_rest(subject, clips):
    table = assay.Straightness(clips)(subject).set_index(["layer", "sequence"])
    for clip in clips:
        states = subject.record(torch.from_numpy(clip.array.copy())[None], ["R1", "E2"])
        for layer, path in states.items():
            # The streamed angles are summed in float32 triples: see its own tests for the precision.
            assert table.loc[(layer, clip.name), "curvature_deg"] == pytest.approx(
                curvature(path[0], batched=False), abs=1e-3
            )
    assert set(table["status"]) == {"ok"}


def test_stills_are_shown_for_some_frames_and_the_first_response_is_dropped(subject):
    pictures = torch.rand(3, 3, 8, 8)
    shown = subject.record(pictures[:, None].expand(-1, 4, -1, -1, -1), ["R1"])["R1"]
    stills = record_stills(subject, pictures, ["R1"], frames=4)["R1"]
    assert stills.shape == (3, 3 * 4, 4, 4) and torch.equal(stills, shown[:, 1:].flatten(1, 2))


def test_a_layer_with_one_number_for_each_frame_drops_the_first_too():
    class Brightness(torch.nn.Module):
        video = True

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return frames.mean((2, 3, 4)) + torch.arange(frames.shape[1])

    stills = record_stills(assay.Subject(Brightness()), torch.zeros(2, 3, 8, 8), frames=4)["output"]
    assert stills.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_stills_are_shown_to_a_network_of_images_as_they_are():
    subject = assay.Subject(torch.nn.Flatten())
    pictures = torch.rand(3, 3, 8, 8)
    assert torch.equal(record_stills(subject, pictures)["output"], pictures.flatten(1))


def test_invariance_shows_each_stimulus_as_a_still(subject, clips):
    test = assay.stimuli.NaturalVideo({"time": clips})
    table = assay.Invariance(test, firing_rate=0.2, bootstrap=0, frames=3)(subject).set_index("layer")
    assert table.loc["R1", "units"] == 2 * 4 * 4 * 4 and set(table["status"]) == {"ok"}


@pytest.mark.parametrize(("frames", "shape"), [(1, (2, 3, 8, 8)), (5, (2, 5, 3, 8, 8))])
def test_what_cannot_be_shown_as_stills_is_named(subject, frames, shape):
    with pytest.raises(assay.AssayError, match=r"frames=1|still pictures are"):
        visit_stills(subject, torch.rand(shape), lambda layer, output: None, frames=frames)
