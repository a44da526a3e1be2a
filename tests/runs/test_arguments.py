"""`evaluate` accepts what people have, and says in a sentence what it cannot use."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch import nn

import zoo
from assay import AssayError, Subject, evaluate
from measure_kit import Broken, Slow, subjects

QUICK = Slow(seconds=0.0)


def networks(n: int) -> list[nn.Module]:
    return [zoo.build("mlp", seed=i) for i in range(n)]


def test_a_bare_module_is_called_by_its_class_and_numbered(tmp_path):
    one = evaluate(networks(1)[0], QUICK, tmp_path / "one")
    assert list(one.manifest.subjects) == ["Sequential"]
    run = evaluate([*networks(2), Subject(zoo.build("mlp", seed=2), "third")], QUICK, tmp_path / "run")
    assert list(run.manifest.subjects) == ["Sequential", "Sequential-2", "third"]
    named = {s.name: s for s in subjects(2)}
    expected = evaluate(named["mlp1"], QUICK, tmp_path / "named").table("slow").value
    assert run.table("slow").query("subject == 'Sequential-2'").value.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [tuple, iter, lambda listed: (each for each in listed)])
def test_any_collection_of_subjects_and_of_measures_will_do(tmp_path, kind):
    run = evaluate(kind(networks(2)), kind([QUICK, Slow(scale=2, seconds=0.0)]), tmp_path)
    assert list(run.manifest.subjects) == ["Sequential", "Sequential-2"] and run.measures == ["slow", "slow-2"]


def test_a_mapping_names_bare_modules(tmp_path):
    run = evaluate(dict(zip("ab", networks(2), strict=True)), QUICK, tmp_path)
    assert list(run.manifest.subjects) == ["a", "b"]
    with pytest.raises(AssayError, match=r"subjects\['a'\] is called 'mlp0'"):
        evaluate({"a": subjects(1)[0]}, QUICK, tmp_path)


@pytest.mark.slow
def test_an_exported_program_is_a_network(tmp_path):
    (network,) = networks(1)
    batch = ({0: torch.export.Dim.AUTO},)
    exported = torch.export.export(network, (torch.zeros(3, *zoo.SHAPE),), dynamic_shapes=batch)
    run = evaluate({"exported": exported, "as it is": network}, QUICK, tmp_path)
    tables = [table.value.to_numpy() for _, table in run.table("slow").groupby("subject")]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-6)


def test_a_number_is_never_given_twice(tmp_path):
    labels = {"slow-2": QUICK, "slow": QUICK}
    assert evaluate(subjects(1), labels, tmp_path / "labels").measures == ["slow-2", "slow"]
    namesake = Subject(networks(1)[0], "Sequential-2")
    run = evaluate([namesake, *networks(2)], QUICK, tmp_path / "names")
    assert list(run.manifest.subjects) == ["Sequential-2", "Sequential", "Sequential-3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subjects": None}, "subjects=None is no network: give a torch module"),
        ({"subjects": "resnet18"}, "subjects='resnet18' is no network"),
        ({"subjects": 3}, "subjects=3 is no network"),
        ({"subjects": nn.Linear}, "subjects=Linear is no network"),
        ({"subjects": [nn.Linear]}, r"subjects\[0\]=Linear is no network: give a network made of it, as Linear\(\)"),
        ({"subjects": [None]}, r"subjects\[0\]=None is no network"),
        ({"subjects": [np.zeros(3)]}, r"subjects\[0\]=array.* \(ndarray\) is no network"),
        ({"measures": None}, "measures=None is no measure: give measures such as"),
        ({"measures": Slow}, r"measures=Slow is no measure: it is a class, give a measure .* as Slow\(…\)"),
        ({"measures": [Slow]}, r"measures\[0\]=Slow is no measure: it is a class"),
        ({"measures": "straightness"}, "measures='straightness' is no measure: names of measures belong in a plan"),
        ({"measures": [3]}, r"measures\[0\]=3 is no measure"),
        ({"measures": {"a": 3}}, r"measures\['a'\]=3 is no measure"),
        ({"measures": {"": QUICK}}, "the label '': a label must be a text that is not empty"),
        ({"measures": {1: QUICK}}, "the label 1: a label must be a text"),
        ({"measures": []}, "no measures to evaluate"),
        ({"seed": "0"}, "seed='0' must be a whole number"),
        ({"seed": True}, "seed=True must be a whole number"),
        ({"seed": 1.5}, "seed=1.5 must be a whole number"),
        ({"seed": -1}, "seed=-1 must be a whole number"),
        ({"seed": None}, "seed=None must be a whole number"),
        ({"run": None}, "run=None is no place for a run: give the path or URL of a folder"),
        ({"run": ""}, "run='' is no place for a run"),
        ({"run": 3}, "run=3 is no place for a run"),
        ({"processes": "2"}, "processes='2' must be a whole number"),
        ({"processes": True}, "processes=True must be a whole number"),
        ({"processes": -1}, "processes=-1 must be a whole number"),
        ({"ray": None}, "ray=None must be True, False or the address of a cluster"),
        ({"resources": 2}, "resources=2 must be assay.Resources"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_remedy(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    given = {"subjects": subjects(1), "measures": QUICK, "run": tmp_path / "run", **arguments}
    with pytest.raises(AssayError, match=message) as raised:
        evaluate(**given)
    assert "\n" not in str(raised.value) and not list(tmp_path.iterdir()), "nothing was written"


@pytest.mark.parametrize("order", [1, -1])
def test_a_recipe_must_not_have_the_name_of_a_network_of_another(tmp_path, order):
    """Else a report would take the one network for the mean of the others."""
    of_recipe, plain = (Subject(networks(1)[0], name, recipe=r) for name, r in (("a", "std"), ("std", "")))
    with pytest.raises(AssayError, match="recipe='std' of 'a' is also the name of a network that is not of this"):
        evaluate([of_recipe, plain][::order], QUICK, tmp_path)
    assert not list(tmp_path.iterdir()), "nothing was written"
    namesake = Subject(networks(1)[0], "std", recipe="std")
    assert list(evaluate([of_recipe, namesake][::order], QUICK, tmp_path).subjects) == ["a", "std"][::order]


def test_a_seed_of_numpy_is_a_seed(tmp_path):
    assert evaluate(subjects(1), QUICK, tmp_path, seed=np.int64(3)).manifest.seed == 3


def test_the_log_and_the_run_say_how_many_cells_were_kept(tmp_path, caplog):
    evaluate(subjects(3), QUICK, tmp_path)
    with caplog.at_level(logging.INFO):
        run = evaluate(subjects(4), [QUICK, Broken()], tmp_path)
    assert str(run.outcome) == "3 cells kept, 1 measured, 4 failed" and str(run.outcome) in caplog.text
