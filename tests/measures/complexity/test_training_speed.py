from __future__ import annotations

from math import exp

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from assay import AssayError, Subject
from assay.measures.complexity.training_speed import (
    TrainingSpeed,
    moving_sum_of_losses,
    sum_of_losses,
    time_to_loss,
)

LOSSES = st.lists(st.floats(1e-6, 10), min_size=1, max_size=8)


def subject(**columns):
    return Subject(nn.Identity(), "net", history=pd.DataFrame(columns))


def values(measure, network):
    return measure(network).set_index("quantity")["value"]


# -- closed forms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.0])
def test_an_exponential_loss_reaches_its_target_when_its_logarithm_says(rate):
    epochs = np.arange(1, 40)
    found = time_to_loss(epochs, 3 * np.exp(-rate * epochs), 0.05)
    assert found == pytest.approx(np.log(3 / 0.05) / rate, rel=1e-12)


def test_the_first_time_counts_and_a_loss_of_zero_is_reached_when_it_is_there():
    times = np.array([1, 2, 3, 4])
    assert time_to_loss(times, np.array([1.0, 0.1, 0.9, 0.01]), 0.1) == 2.0
    assert time_to_loss(times, np.array([0.01, 1.0, 1.0, 1.0]), 0.1) == 1.0
    assert time_to_loss(times, np.array([1.0, 1.0, 0.0, 0.0]), 0.1) == 3.0
    assert np.isnan(time_to_loss(times, np.array([1.0, 0.5, 0.3, 0.2]), 0.1))


@given(LOSSES, st.floats(0.01, 1))
def test_the_moving_sum_is_the_recursion_of_an_exponential_moving_average(losses, decay):
    running = 0.0
    for loss in losses:
        running = decay * running + loss
    # The same products in another order.
    assert moving_sum_of_losses(np.array(losses), decay) == pytest.approx(running, rel=1e-9)
    assert moving_sum_of_losses(np.array(losses), 1.0) == pytest.approx(sum_of_losses(np.array(losses)), rel=1e-12)
    assert sum_of_losses(np.array(losses), 1) == losses[-1]


@given(LOSSES, st.floats(1e-5, 5))
def test_the_time_is_between_the_epochs_on_either_side_of_the_target(losses, target):
    times = np.arange(1, len(losses) + 1)
    found = time_to_loss(times, np.array(losses), target)
    reached = [t for t, loss in zip(times, losses, strict=True) if loss <= target]
    assert np.isnan(found) if not reached else max(reached[0] - 1, 1) <= found <= reached[0]


# -- the measure ----------------------------------------------------------------------------------------------


def test_times_are_of_the_loss_after_epochs_and_sums_of_the_loss_of_steps():
    epochs = np.arange(1, 11)
    found = values(
        TrainingSpeed(decay=0.5),
        subject(epoch=epochs, steps=30 * epochs, running_loss=11.0 - epochs, loss=np.exp(-0.5 * epochs)),
    )
    to, then = np.log(10) / 0.5, np.log(10) / 0.5
    expected = {
        "epochs to 0.1": to,
        "epochs from 0.1 to 0.01": then,
        "steps to 0.1": 30 * to,
        "steps from 0.1 to 0.01": 30 * then,
        "sum of losses": 55.0,
        "sum of losses, last epoch": 1.0,
        "moving sum of losses": sum((11 - t) * 0.5 ** (10 - t) for t in range(1, 11)),
    }
    assert found.to_dict() == pytest.approx(expected, rel=1e-12)


def test_a_history_of_either_loss_alone_serves_and_epochs_are_counted_where_they_are_not_given():
    losses = [1.0, 0.1, 0.01]
    one, other = (values(TrainingSpeed(), subject(**{name: losses})) for name in ("loss", "running_loss"))
    assert one.to_dict() == other.to_dict() and "steps to 0.1" not in one
    assert one["epochs to 0.1"] == 2 and one["sum of losses"] == pytest.approx(1.11)


def test_losses_that_were_not_checked_in_every_epoch_are_interpolated_over_those_that_were():
    nan = np.nan
    found = values(TrainingSpeed((0.1,)), subject(loss=[nan, exp(-2), nan, exp(-4)], running_loss=[4.0, 3, 2, 1]))
    assert found["epochs to 0.1"] == pytest.approx(np.log(10), rel=1e-12) and found["sum of losses"] == 10
    never = values(TrainingSpeed((0.1,)), subject(loss=[nan, nan], running_loss=[1.0, 0.01]))
    assert never["epochs to 0.1"] == pytest.approx(1.5)
    part = TrainingSpeed((0.1,))(subject(running_loss=[nan, 0.01])).set_index("quantity")
    assert part.status["sum of losses"] == "an epoch has no loss" and np.isnan(part.value["sum of losses"])


def test_a_loss_that_was_never_reached_is_said_with_the_lowest():
    table = TrainingSpeed()(subject(loss=[1.0, 0.05])).set_index("quantity")
    assert table.status["epochs from 0.1 to 0.01"] == "the loss never was 0.01: its lowest is 0.05"
    assert np.isnan(table.value["epochs from 0.1 to 0.01"]) and table.status["epochs to 0.1"] == "ok"


def test_directions_are_those_that_were_found_and_nothing_is_shown():
    measure = TrainingSpeed()
    table = measure(subject(loss=[1.0, 0.05, 0.001], steps=[1, 2, 3]))
    directions = {str(key): key.direction for key in measure.predictors(table)}
    assert directions == {
        "epochs to 0.1": -1,
        "steps to 0.1": -1,
        "epochs from 0.1 to 0.01": 0,
        "steps from 0.1 to 0.01": 0,
        "sum of losses": 1,
        "sum of losses, last epoch": 1,
        "moving sum of losses": 1,
    }
    assert measure.budget(table) == ""
    (evidence,) = measure.evidence(measure.measured(subject(loss=[1.0, 0.05])))
    assert evidence.value == pytest.approx(1.05)


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"accuracy": [0.5]}, "has no column 'loss' or 'running_loss' of numbers; it has accuracy"),
        ({"loss": []}, "has no epoch"),
        ({"loss": ["much"]}, "'loss' must have numbers"),
        ({"loss": [np.inf]}, "'loss' must have numbers that are finite"),
        ({"loss": [-1.0]}, "not negative"),
        ({"loss": [1.0, 0.5], "epoch": [2, 1]}, "'epoch' must increase"),
        ({"loss": [1.0, 0.5], "steps": [5, 5]}, "'steps' must increase"),
        ({"loss": [1.0, 0.5], "epoch": [1, np.nan]}, "'epoch' must increase"),
    ],
)
def test_a_history_that_cannot_be_read_is_one_sentence(columns, said):
    for ask in (TrainingSpeed().check, TrainingSpeed()):
        with pytest.raises(AssayError, match=f"the history of 'net'.*{said}"):
            ask(subject(**columns))


def test_settings_and_arrays_that_make_no_sense_are_refused():
    for losses in ((), (0.0,), (0.01, 0.1), (0.1, 0.1)):
        with pytest.raises(AssayError, match="must be positive and fall"):
            TrainingSpeed(losses)
    for decay in (0.0, 1.1, np.nan):
        with pytest.raises(AssayError, match="decay="):
            TrainingSpeed(decay=decay)
    with pytest.raises(AssayError, match="last=0"):
        sum_of_losses(np.ones(2), 0)
    for wrong in (np.zeros(0), np.array([np.nan]), np.ones((2, 2))):
        with pytest.raises(AssayError, match="finite numbers in a row"):
            sum_of_losses(wrong)
    for times, losses in (([1, 2], [1.0]), ([], []), ([1], [np.nan])):
        with pytest.raises(AssayError, match="give a finite loss for every time"):
            time_to_loss(np.array(times), np.array(losses), 0.1)
    with pytest.raises(AssayError, match="times must increase"):
        time_to_loss(np.array([2, 1]), np.ones(2), 0.1)
