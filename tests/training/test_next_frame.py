"""Training on footage: what it draws, that it resumes and runs side by side to the same bits, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import assay
from assay.core.checkpoints import read_checkpoint, write_checkpoint
from assay.core.determinism import seeded
from assay.core.progress import listening
from assay.networks.prednet import PredNet
from assay.stimuli.footage import load_footage
from assay.training.footage_steps import Footage, FootageSteps, draw
from assay.training.next_frame import NextFrame, train_next_frame, train_next_frame_many

SHORT = NextFrame(epochs=4, sequences=6, batch_size=2, length=4, learning_rate=3e-3)


def network(seed=0, channels=(3, 4), **sizes):
    with seeded(seed):
        return PredNet(channels, **sizes)


def clips(*lengths, shape=(3, 8, 8)):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, 256, (n, *shape), generator=generator, dtype=torch.uint8) for n in lengths]


FOOTAGE = clips(9, 6)


def weights(module):
    return [p.detach().clone() for p in module.parameters()]


def assert_same(one, other):
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_sequences_begin_wherever_they_fit_into_one_clip():
    assert Footage(clips(5, 3, 4)).starts(3).tolist() == [0, 1, 2, 5, 8, 9]


def test_all_places_come_before_any_comes_again_and_a_seed_decides_the_order():
    starts = torch.arange(10)
    drawn = draw(starts, 25, seed=3)
    assert sorted(drawn[:10].tolist()) == sorted(drawn[10:20].tolist()) == list(range(10))
    assert torch.equal(drawn, draw(starts, 25, seed=3)) and not torch.equal(drawn, draw(starts, 25, seed=4))


def test_floating_point_frames_are_the_bytes_they_came_from():
    as_floats = [clip.float() / 255 for clip in FOOTAGE]
    assert torch.equal(Footage(as_floats).frames, Footage(FOOTAGE).frames)
    by_name = Footage({"a": FOOTAGE[0].numpy(), "b": FOOTAGE[1]})
    assert by_name.names == ["a", "b"] and torch.equal(by_name.frames, Footage(FOOTAGE).frames)


def test_the_learning_rate_falls_to_a_tenth_half_way_and_the_losses_weigh_levels():
    default = NextFrame()
    assert [default.rate(epoch) for epoch in (0, 74, 75, 149)] == [1e-3, 1e-3, 1e-4, 1e-4]
    assert (default.epochs, default.sequences, default.batch_size, default.length) == (150, 500, 4, 10)
    assert default.level_weights(3) == (1, 0, 0) and NextFrame(loss="L_all").level_weights(3) == (1, 0.1, 0.1)


@pytest.mark.parametrize("stop_after", [1, 3])
def test_an_interrupted_training_continues_to_the_same_bits(tmp_path, stop_after):
    whole, broken = network(), network()
    straight = train_next_frame(whole, FOOTAGE, SHORT)

    class Killed(Exception):
        pass

    def kill(moment):
        if moment.epoch == stop_after:
            raise Killed

    path = tmp_path / "training.safetensors"
    with pytest.raises(Killed):
        train_next_frame(broken, FOOTAGE, SHORT, checkpoint=path, every_s=0, callback=kill)
    resumed = network()  # a new process has the network as it was before training
    moments = []
    result = train_next_frame(
        resumed, FOOTAGE, SHORT, checkpoint=path, every_s=0, callback=lambda moment: moments.append(moment.epoch)
    )
    assert_same(whole, resumed)
    assert result.losses == straight.losses and moments == list(range(stop_after, 5))
    # The finished file holds the result: nothing is trained again.
    assert train_next_frame(network(), FOOTAGE, SHORT, checkpoint=path, callback=kill) == result
    with pytest.raises(assay.AssayError, match="another training"):
        train_next_frame(network(), clips(9, 7), SHORT, checkpoint=path)


def test_a_stopped_training_on_footage_stops_where_it_would_have_without_being_killed(tmp_path):
    def stop():
        return assay.training.StopWhenConverged(assay.training.LiveLoss(every=1), window=2, sd=10)

    def kill(moment):
        if moment.epoch == 2:
            raise KeyboardInterrupt

    longer, path = dataclasses.replace(SHORT, epochs=6), str(tmp_path / "training.safetensors")
    with pytest.raises(KeyboardInterrupt):
        both = assay.training.Together(kill, stop())
        train_next_frame(network(), FOOTAGE, longer, checkpoint=path, every_s=0, callback=both)
    both = assay.training.Together(lambda moment: None, stop())
    resumed = train_next_frame(network(), FOOTAGE, longer, checkpoint=path, callback=both)
    assert resumed == train_next_frame(network(), FOOTAGE, longer, callback=stop()) and resumed.epochs == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors, progress: progress.update(losses=[0.1] * 9), "of 4 epochs"),
        (lambda tensors, progress: progress.update(losses=[0.1] * 4), "of 4 epochs"),
        (lambda tensors, progress: progress.update(losses="12"), "'12'"),
        (lambda tensors, progress: progress.update(losses=[None]), "TypeError"),
        (lambda tensors, progress: progress.update(status="foo"), "status 'foo'"),
        (lambda tensors, progress: progress.pop("losses"), "KeyError: 'losses'"),
        (lambda tensors, progress: tensors.clear(), "its weights are not those of PredNet"),
        (lambda tensors, progress: tensors.update({"weights.gates.0.bias": torch.zeros(1)}), "its weights"),
        (lambda tensors, progress: tensors.update({"optimizer.gates.0.bias.exp_avg": torch.zeros(3)}), "a moment of"),
        (lambda tensors, progress: [tensors.pop(name) for name in list(tensors) if "optimizer" in name], "no state of"),
    ],
)
def test_a_checkpoint_that_was_changed_by_hand_is_refused(tmp_path, change, said):
    def kill(moment):
        if moment.epoch == 2:
            raise KeyboardInterrupt

    path = tmp_path / "training.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train_next_frame(network(), FOOTAGE, SHORT, checkpoint=path, every_s=0, callback=kill)
    tensors, progress = read_checkpoint(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    change(tensors, progress)
    path.unlink()
    write_checkpoint(path, tensors, progress)
    with pytest.raises(assay.AssayError) as error:
        train_next_frame(network(), FOOTAGE, SHORT, checkpoint=path)
    assert "training.safetensors does not hold what this training writes" in str(error.value)
    assert said in str(error.value)


def test_networks_side_by_side_are_trained_as_each_alone():
    makes = [
        lambda: network(0),
        lambda: network(1, (3, 5, 4), gate_size=5),
        lambda: network(2, prediction_size=1, target_size=1),
    ]
    recipes = [SHORT, dataclasses.replace(SHORT, loss="L_all", seed=2), dataclasses.replace(SHORT, epochs=2)]
    together = [make() for make in makes]
    done = []
    results = train_next_frame_many(
        iter(together), FOOTAGE, recipes, at_once=2, on_done=lambda number, *_: done.append(number)
    )
    assert sorted(done) == [0, 1, 2]
    for make, recipe, trained, result in zip(makes, recipes, together, results, strict=True):
        alone = make()
        assert train_next_frame(alone, FOOTAGE, recipe) == result
        assert_same(alone, trained)


def test_a_callback_sees_every_epoch_and_may_halt_the_training():
    moments = []

    def watch(moment):
        moments.append((moment.epoch, moment.step, moment.loss))
        return moment.epoch == 2

    result = train_next_frame(network(), FOOTAGE, SHORT, callback=watch)
    assert result.status == "halted" and result.epochs == 2
    assert moments == [(1, 3, result.losses[0]), (2, 6, result.losses[1])]


def test_measuring_during_training_changes_nothing():
    held_out = assay.stimuli.Sequences.of(clip=clips(8)[0].numpy())
    live = assay.training.LiveMeasure(lambda module: assay.NextFrameError(held_out)(module)["mse"].item(), "mse", 1)
    watched, alone = network(), network()
    train_next_frame(watched, FOOTAGE, SHORT, callback=live)
    train_next_frame(alone, FOOTAGE, SHORT)
    assert_same(watched, alone)
    assert len(live.values) == 4 and watched.training


def test_half_precision_learns_what_full_precision_learns():
    full, half = network(channels=(3, 4, 5)), network(channels=(3, 4, 5))
    exact = train_next_frame(full, FOOTAGE, SHORT)
    rounded = train_next_frame(half, FOOTAGE, dataclasses.replace(SHORT, precision="bfloat16"))
    assert rounded.losses == pytest.approx(exact.losses, rel=0.01)  # bfloat16 keeps 8 bits: 0.4 % of each number
    assert all(p.dtype == torch.float32 for p in half.parameters())


def test_progress_is_reported_in_epochs():
    seen = []
    with listening(lambda what, done, total: seen.append((what, done, total))):
        train_next_frame(network(), FOOTAGE, SHORT)
    assert seen[-1] == ("training on footage, in epochs", 4, 4) and len(seen) >= 4


def test_a_training_that_diverges_says_so():
    wrong = network()
    with torch.no_grad():
        wrong.predictions[0].weight.fill_(float("nan"))
    assert train_next_frame(wrong, FOOTAGE, SHORT).status == "diverged"


def with_nan():
    clip = torch.rand(6, 3, 8, 8)
    clip[2, 0, 1, 1] = torch.nan
    return clip


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: train_next_frame(network(), {"good": FOOTAGE[0], "street": with_nan()}, SHORT), "'street' has NaN"),
        (lambda: train_next_frame(network(), {"cut": clips(3)[0]}, SHORT), "clip 'cut' has 3 frames"),
        (lambda: train_next_frame(network(), clips(6, shape=(3, 9, 8)), SHORT), "multiples of 2"),
        (lambda: train_next_frame(network(), clips(6, shape=(1, 8, 8)), SHORT), "B×T×3×H×W"),
        (lambda: train_next_frame(network(), [*clips(6), *clips(6, shape=(3, 8, 16))], SHORT), "in one size"),
        (lambda: train_next_frame(network(), [torch.full((6, 3, 8, 8), 3.0)], SHORT), "from 3 to 3"),
        (lambda: train_next_frame(network(), [np.zeros((6, 3, 8, 8), np.int64)], SHORT), "torch.int64"),
        (lambda: train_next_frame(network(), [torch.zeros(6, 8, 8)], SHORT), "T×C×H×W"),
        (lambda: train_next_frame(network(), [], SHORT), "no clips"),
        (lambda: train_next_frame(torch.nn.Linear(2, 2), FOOTAGE, SHORT), "errors(frames, levels)"),
        (lambda: train_next_frame(network(), FOOTAGE, dataclasses.replace(SHORT, loss=(1, 1, 1))), "has 2 levels"),
        (lambda: train_next_frame_many([network()], FOOTAGE, [SHORT, SHORT]), "give as many"),
        (lambda: NextFrame(loss="L_1"), "unknown loss 'L_1'"),
        (lambda: NextFrame(loss=(0.0, 0.0)), "all 0"),
        (lambda: NextFrame(batch_size=5, sequences=4), "batch_size=5"),
        (lambda: NextFrame(length=1), "length=1"),
        (lambda: NextFrame(learning_rate=0), "learning_rate=0"),
        (lambda: NextFrame(precision="half"), "unknown precision"),
    ],
)
def test_what_cannot_be_trained_is_named(ask, said):
    with pytest.raises(assay.AssayError) as error:
        ask()
    assert said in str(error.value)


@pytest.mark.slow
def test_after_learning_from_real_footage_it_beats_copying_the_last_frame_of_another_clip(shared_data):
    # Every 8th frame: what changes from frame to frame is then large enough to be learned in seconds.
    videos = shared_data / "videos"
    bikes = load_footage(videos / "bikes.mp4", (16, 16))["bikes"]
    cockatoo = load_footage(videos / "cockatoo.mp4", (16, 16))["cockatoo"]
    held_out = assay.stimuli.Sequences.of(**{f"from {k}": cockatoo[k::8].numpy() for k in range(0, 8, 2)})
    learner = network(0, (3, 8))
    recipe = NextFrame(epochs=8, sequences=200, batch_size=8, length=4, learning_rate=1e-2)
    error = assay.NextFrameError(held_out, length=4)
    before = error.summary(error(learner)).iloc[0]
    train_next_frame(learner, [bikes[k::8] for k in range(8)], recipe)
    after = error.summary(error(learner)).iloc[0]
    assert after["mse"] < 0.95 * after["copy_last_mse"] < before["mse"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_recorded_steps_side_by_side_are_the_plain_steps_of_each(monkeypatch, precision):
    recipes = [dataclasses.replace(SHORT, precision=precision, seed=seed) for seed in range(3)]
    recorded = [network(seed, (3, 8, 8)).cuda() for seed in range(3)]
    results = train_next_frame_many(recorded, clips(20, 12, shape=(3, 16, 16)), recipes, at_once=3)
    monkeypatch.setattr(FootageSteps, "_record", lambda self: None)
    for seed, (recipe, trained, result) in enumerate(zip(recipes, recorded, results, strict=True)):
        alone = network(seed, (3, 8, 8)).cuda()
        assert train_next_frame(alone, clips(20, 12, shape=(3, 16, 16)), recipe) == result
        assert_same(alone, trained)
