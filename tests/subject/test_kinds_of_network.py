"""Every measure of every kind of network: it works, or says in one sentence why not."""

from __future__ import annotations

import pandas as pd
import pytest
from torch import nn

import kinds_of_network as kit
from assay import AssayError, Measure, Subject

SAME_AS_PLAIN = ("`torch.compile`", "`nn.DataParallel`", "`torch.export.ExportedProgram`", "TorchScript")
PLAIN = "convolutional, in-place ReLU"


@pytest.fixture(scope="module")
def outcomes():
    return kit.outcomes()  # an exception that is no AssayError is a failure


@pytest.mark.hf
@pytest.mark.slow
def test_the_page_says_what_works_now(outcomes):
    assert kit.PAGE.read_text(encoding="utf-8") == kit.page(outcomes), "python tests/kits/kinds_of_network.py"


@pytest.mark.hf
@pytest.mark.slow
def test_reasons_are_one_sentence(outcomes):
    for kind, row in outcomes.items():
        for measure, outcome in row.items():
            assert "\n" not in outcome.note and "Traceback" not in outcome.note, (kind, measure)
            assert outcome.table is not None or len(outcome.note) > 20, (kind, measure)


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("kind", SAME_AS_PLAIN)
def test_what_is_wrapped_around_a_network_changes_no_number(outcomes, kind):
    for measure, outcome in outcomes[kind].items():
        plain = outcomes[PLAIN][measure].table
        if plain is None:  # it is no network of videos
            assert measure == "next-frame error" and outcome.table is None
            continue
        if kind == "TorchScript" or outcome.table is None:  # fewer layers
            continue
        pd.testing.assert_frame_equal(outcome.table, plain, rtol=1e-4, atol=1e-6, check_exact=False)


def test_the_page_has_every_measure_there_is():
    asked = {type(measure()).name for _, measure in kit.measures(kit.pictures(), None)}
    assert asked == {name for name, kind in Measure.known().items() if kind.__module__.startswith("assay.")}


@pytest.mark.parametrize("overwritten", ["__getattr__", "named_modules", "named_parameters", "__hash__"])
def test_a_module_whose_own_code_raises_is_said_to_be_the_users(overwritten):
    def fails(*_, **__):
        raise RuntimeError("mine")

    odd = type("Odd", (nn.Module,), {overwritten: fails})()
    with pytest.raises(AssayError, match=r"'Odd' cannot be used as a module of torch: .* RuntimeError: mine"):
        Subject(odd)
