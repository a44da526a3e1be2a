"""The layout keeps its promises: imports point one way, the public API is flat, measures keep the contract."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path

import assay
from assay import Measure

SOURCE = Path(assay.__file__).parent
# The column of rooms, from the ground up: a room imports only from itself and from rooms below it.
COLUMN = [
    {"core"},
    {"stimuli", "stats"},
    {"training"},
    {"networks"},
    {"subject"},
    {"measures"},
    {"runs"},
    {"plans"},
    {"broad", "studies"},
    {"report"},
    {"cli"},
    {"__init__"},
]
LEVEL = {room: i for i, rooms in enumerate(COLUMN) for room in rooms}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"assay.{a.name}" for a in node.names] if node.module == "assay" else [node.module]
        found |= {n.split(".")[1] for n in names if n.startswith("assay.")}
    return found


def test_imports_point_down_the_column():
    for path in SOURCE.rglob("*.py"):
        for target in imports(path) & LEVEL.keys():
            below = LEVEL[target] < LEVEL[room(path)]
            assert below or target == room(path), f"{path.relative_to(SOURCE)} imports {target}"


def test_reports_know_no_network_and_measures_no_file():
    for path in (SOURCE / "report").rglob("*.py"):
        assert not imports(path) & {"subject", "networks", "measures"}, path
        assert "import torch" not in path.read_text()
    for path in (SOURCE / "measures").rglob("*.py"):
        assert not imports(path) & {"runs"} and "open(" not in path.read_text(), path


def test_the_public_api_is_flat_and_documented():
    for name in assay.__all__:
        thing = getattr(assay, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name
    assert {"Subject", "Measure", "Straightness", "curvature", "evaluate", "Run"} <= set(assay.__all__)


def test_every_measure_is_a_frozen_dataclass_with_a_name_and_a_value_column():
    for name, kind in Measure.known().items():
        if kind.__module__.startswith("assay."):
            assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen, name  # type: ignore[attr-defined]
            assert kind.name == name and kind.value and kind.__doc__


def test_importing_assay_needs_no_optional_package():
    import subprocess
    import sys

    optional = [
        "ray",
        "onnx",
        "onnxruntime",
        "timm",
        "transformers",
        "skimage",
        "triton",
        "torchvision",
        "pptx",
        "h5py",
    ]
    code = f"import sys; import assay, assay.cli.main; print([m for m in {optional} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
