"""A cell is another network's, measure's or stimulus's as soon as anything that matters is other: then it is measured
anew. And it stays as long as nothing that matters changes."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from assay import Measure, Straightness, Subject, evaluate
from assay.core.source_code import dependencies, forget_modules, source_fingerprint
from assay.runs.evaluate import cell_fingerprint
from assay.stimuli import Chain, Grey, Labelled, Normalize, Sequences

HELPERS = """
SHIFT = 1.0
def shift(x):
    return x + SHIFT
"""
NETWORK = """
import torch
from torch import nn
from . import helpers
from .helpers import shift
SCALE = 2.0
TABLE = {"gain": 3.0}
def bend(x):
    return x * 0.5
class Net(nn.Module):
    power = 1.0
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3, bias=False)
        nn.init.ones_(self.fc.weight)
    def forward(self, x):
        return shift(bend(self.fc(x)) * SCALE * TABLE["gain"]) ** self.power + helpers.SHIFT
"""
MEASURE = """
from dataclasses import dataclass
import pandas as pd, torch
from assay import Measure
from .counting import count
@dataclass(frozen=True)
class Sum(Measure):
    name = ""
    value = "value"
    def __call__(self, subject):
        return pd.DataFrame({"value": [count(subject(torch.ones(1, 4)))]})
"""
COUNTING = """
def count(x):
    return float(x.sum())
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the user's, imported anew after every edit as a new process would import it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "usernets"
    folder.mkdir()
    files = {
        "__init__": "",
        "helpers": HELPERS,
        "net": NETWORK,
        "asks": MEASURE,
        "counting": COUNTING,
        "other": "A = 1\n",
    }
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)

    def load(**edits):
        for name, (old, new) in edits.items():
            text = (folder / f"{name}.py").read_text()
            assert old in text
            (folder / f"{name}.py").write_text(text.replace(old, new))
        for name in [n for n in sys.modules if n.partition(".")[0] == "usernets"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        forget_modules()  # a test before this one had a package of the same name elsewhere
        return importlib.import_module("usernets.net"), importlib.import_module("usernets.asks")

    yield load
    for name in [n for n in sys.modules if n.partition(".")[0] == "usernets"]:
        del sys.modules[name]


def key(net: nn.Module, measure: Measure) -> str:
    return cell_fingerprint(Subject(net), measure, 0)


@pytest.mark.parametrize(
    "edit",
    [
        {"net": ("SCALE = 2.0", "SCALE = 4.0")},
        {"net": ("x * 0.5", "x * 0.25")},
        {"net": ('"gain": 3.0', '"gain": 5.0')},
        {"helpers": ("return x + SHIFT", "return x - SHIFT")},
        {"helpers": ("SHIFT = 1.0", "SHIFT = 7.0")},
        {"counting": ("x.sum()", "x.mean()")},
        {"asks": ("torch.ones", "torch.zeros")},
    ],
    ids=[
        "constant",
        "function",
        "dictionary",
        "other file's function",
        "other file's constant",
        "measure's",
        "measure",
    ],
)
def test_an_edit_to_code_that_is_used_makes_another_key(package, tmp_path, edit):
    net, asks = package()
    before = key(net.Net(), asks.Sum())
    assert before == key(net.Net(), asks.Sum())
    evaluate(Subject(net.Net(), "net"), asks.Sum(), tmp_path / "run")
    net, asks = package(**edit)
    assert key(net.Net(), asks.Sum()) != before
    run = evaluate(Subject(net.Net(), "net"), asks.Sum(), tmp_path / "run")
    assert run.table("Sum").value[0] == asks.Sum()(Subject(net.Net())).value[0]


def test_an_edit_to_what_is_not_used_and_a_comment_keep_the_key(package):
    net, asks = package()
    before = key(net.Net(), asks.Sum())
    net, asks = package(other=("A = 1", "A = 2"), net=("class Net", "# a comment\nclass Net"))
    assert key(net.Net(), asks.Sum()) == before


def test_values_set_while_the_code_runs_make_another_key(package, monkeypatch):
    net, asks = package()
    before = key(net.Net(), asks.Sum())
    for owner, name, value in [
        (net, "SCALE", 9.0),
        (net, "TABLE", {"gain": 9.0}),
        (net.helpers, "SHIFT", 9.0),
        (net.Net, "power", 2.0),
        (net.Net, "forward", lambda self, x: self.fc(x)),
        (net, "bend", lambda x: x * 8),
    ]:
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            assert key(net.Net(), asks.Sum()) != before, name
    assert key(net.Net(), asks.Sum()) == before


def test_hooks_are_part_of_a_network(package):
    net, asks = package()
    network = net.Net()
    before = key(network, asks.Sum())
    for register in (network.fc.register_forward_hook, network.fc.register_forward_pre_hook):
        handle = register(lambda *arguments: None)
        assert key(network, asks.Sum()) != before
        handle.remove()
        assert key(network, asks.Sum()) == before


@dataclass(frozen=True)
class Total(Measure):
    """Sum of the output for ones."""

    name: ClassVar[str] = ""
    value: ClassVar[str] = "value"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        return pd.DataFrame({"value": [float(subject(torch.ones(1, 4)).sum())]})


def closing_over(scale: float) -> nn.Module:
    class Closing(nn.Module):
        def forward(self, x):
            return scale * x

    return Closing()


def without_source(scale: float) -> nn.Module:
    space: dict[str, object] = {"nn": nn}
    exec(f"class Typed(nn.Module):\n    def forward(self, x):\n        return {scale} * x", space)
    return space["Typed"]()  # type: ignore[operator]


class Holder:
    def __init__(self, scale: float) -> None:
        self.scale, self.lock = scale, threading.Lock()


class Holding(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.holder = Holder(scale)

    def forward(self, x):
        return self.holder.scale * x


@pytest.mark.parametrize("make", [closing_over, without_source, Holding])
def test_closures_classes_without_source_and_attributes_that_cannot_be_pickled_count(make, tmp_path):
    assert key(make(2.0), Total()) == key(make(2.0), Total()) != key(make(3.0), Total())
    evaluate(Subject(make(2.0), "net"), Total(), tmp_path)
    assert evaluate(Subject(make(3.0), "net"), Total(), tmp_path).table("Total").value[0] == 12


def test_which_module_is_called_where_is_part_of_a_network(tmp_path):
    torch.manual_seed(0)
    a, b = nn.Linear(12, 12), nn.Linear(12, 12)
    frames = Sequences.of(clip=np.random.default_rng(0).random((5, 12)).astype(np.float32)[:, None, None, :])
    measure = Straightness(frames, layers="output")
    nets = [nn.Sequential(a, b, a), nn.Sequential(a, b, b), nn.Sequential(a, b, nn.Linear(12, 12))]
    assert len({key(net, measure) for net in nets}) == 3
    curved = [evaluate(Subject(net, "net"), measure, tmp_path).table("straightness").curvature_deg for net in nets[:2]]
    assert not curved[0].equals(curved[1])


def test_tied_weights_are_not_untied_ones_of_the_same_value():
    def pair(tied: bool) -> nn.Module:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        with torch.no_grad():
            net[1].weight.copy_(net[0].weight)
        if tied:
            net[1].weight = net[0].weight
        return net

    assert key(pair(True), Total()) == key(pair(True), Total()) != key(pair(False), Total())


def test_the_order_of_preprocessing_counts_and_equal_parts_need_not_be_one_object():
    net, imagenet = nn.Flatten(), Normalize.imagenet() if hasattr(Normalize, "imagenet") else Normalize((0.5,), (0.2,))
    grey = Grey()

    def of(*parts):
        return Subject(net, preprocess=Chain(parts)).fingerprint

    assert of(grey, imagenet, grey) == of(grey, imagenet, Grey()) != of(grey, imagenet, imagenet)
    assert of(grey, imagenet) != of(imagenet, grey)


def test_data_changed_in_place_are_other_data():
    inputs = np.zeros((4, 2), dtype=np.uint8)
    data = Labelled(inputs, np.array([0, 1, 0, 1]))
    before = data.fingerprint
    inputs[0, 0] = 1
    assert data.fingerprint != before


def test_a_network_that_behaves_otherwise_is_measured_anew_and_the_log_says_why(tmp_path, caplog):
    class ReadsAFile(nn.Module):
        """What no hash of code can see: a value that is read at every call."""

        def forward(self, x):
            return x * float((tmp_path / "scale").read_text())

    (tmp_path / "scale").write_text("2")
    subject = Subject(ReadsAFile(), "net")
    evaluate(subject, Total(), tmp_path / "run")
    evaluate(subject, Total(), tmp_path / "run")
    assert not caplog.records
    (tmp_path / "scale").write_text("3")
    with caplog.at_level(logging.WARNING):
        run = evaluate(Subject(ReadsAFile(), "net"), Total(), tmp_path / "run")
    assert "net × Total is measured anew: layer 'output' answers otherwise" in caplog.text
    assert run.table("Total").value[0] == 12


MEMOS = """
import pandas as pd, torch
from collections import defaultdict
from dataclasses import dataclass
from assay import Measure
CACHE = {}
COUNTS = defaultdict(int)
SEEN: list = []
SHARED = None
REGISTRY = {}
TABLE = {"gain": 3.0}
def register(name, value):
    REGISTRY[name] = value
def shared():
    global SHARED
    if SHARED is None:
        SHARED = torch.ones(1, 4)
    return SHARED
def answer(subject):
    def compute():
        SEEN.append(subject.name)
        return float(subject(shared()).sum())
    if subject.name not in CACHE:
        CACHE[subject.name] = compute()
    COUNTS[subject.name] += 1
    TABLE["seen"] = 1
    return CACHE[subject.name] * TABLE["gain"] + REGISTRY.get("shift", 0.0)
@dataclass(frozen=True)
class Remembering(Measure):
    name = ""
    value = "value"
    def __call__(self, subject):
        return pd.DataFrame({"value": [answer(subject)]})
"""


def test_what_a_measure_keeps_to_find_it_again_is_no_content_and_all_else_is(package, tmp_path, monkeypatch):
    package()
    (tmp_path / "usernets" / "memos.py").write_text(MEMOS)
    memos = importlib.import_module("usernets.memos")
    memos.TABLE["seen"] = 1
    net = nn.Linear(4, 2)
    before = key(net, memos.Remembering())
    assert evaluate(Subject(net, "net"), memos.Remembering(), tmp_path / "run").outcome.measured == 1
    assert memos.CACHE and memos.COUNTS and memos.SEEN and memos.SHARED is not None
    assert key(net, memos.Remembering()) == before
    assert evaluate(Subject(net, "net"), memos.Remembering(), tmp_path / "run").outcome.kept == 1
    memos.register("shift", 1.0)
    assert key(net, memos.Remembering()) != before, "what others register"
    memos.REGISTRY.clear()
    assert key(net, memos.Remembering()) == before
    memos.TABLE["gain"] = 4.0
    assert key(net, memos.Remembering()) != before, "a table that holds something from the start"


def test_the_log_says_why_cells_are_measured_anew(package, tmp_path, caplog):
    net, asks = package()
    evaluate(Subject(net.Net(), "net"), asks.Sum(), tmp_path / "run")
    with caplog.at_level(logging.INFO):
        changed = net.Net()
        changed.note = "another"
        evaluate(Subject(changed, "net"), asks.Sum(), tmp_path / "run")
        assert "net × Sum is measured anew: the network is another (its weights, its code" in caplog.text
        caplog.clear()
        evaluate(Subject(changed, "net"), asks.Sum(), tmp_path / "run", seed=1)
        assert "net × Sum is measured anew: the seed is 1 and was 0" in caplog.text
        caplog.clear()
        net, asks = package(asks=("torch.ones", "torch.zeros"))
        again = net.Net()
        again.note = "another"
        evaluate(Subject(again, "net"), asks.Sum(), tmp_path / "run", seed=1)
        assert "net × Sum is measured anew: the measure is another (its code, its settings" in caplog.text
        caplog.clear()
        evaluate(Subject(again, "net"), asks.Sum(), tmp_path / "run", seed=1)
        assert "anew" not in caplog.text and "1 cell kept, 0 measured, 0 failed" in caplog.text


def test_a_measure_depends_on_the_files_it_imports_and_on_no_others():
    needed = set(dependencies("assay.measures.straightness.measure"))
    assert {"assay.measures.base", "assay.subject.subject", "assay.stimuli.sequences"} <= needed
    rooms = {name.split(".")[1] for name in needed}
    imported = {name for name in needed if name.startswith("assay.networks.") and ".imported" not in name}
    assert imported <= {"assay.networks"}, "of networks only how ONNX files are read, which a subject can be"
    assert rooms <= {"core", "stats", "stimuli", "networks", "subject", "measures"}, "no report, command line or runs"
    measures = {name for name in needed if name.startswith("assay.measures.")}
    assert not any("perturbation" in name or "complexity" in name for name in measures)
    assert dependencies("torch.nn") == {} and source_fingerprint("numpy") == ""


def test_a_run_of_the_first_format_opens_and_reports(tmp_path):
    import shutil

    from assay import Run
    from assay.report import write_report

    shutil.copytree(Path(__file__).parents[1] / "data" / "run_of_format_1", tmp_path / "run")
    run = Run(str(tmp_path / "run"))
    assert run.manifest.format == 1 and run.manifest.status == "complete" and run.done == 4
    # Written together with the run, by the code that wrote it.
    means = run.table("straightness").groupby("subject").curvature_deg.mean()
    np.testing.assert_allclose(means, [118.231673, 117.255376], atol=5e-7)
    assert run.manifest.subjects["mlp0"].network == "Sequential" and not run.failures
    page = Path(write_report(run)).read_text()
    assert "mlp1" in page and "margins" in page
