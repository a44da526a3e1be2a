"""The layout keeps its promises: imports point one way, the public API is flat, measures keep the contract."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import torch

import assay
from assay import Measure
from assay.core.source_code import dependencies

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
    {"__init__", "__main__"},
]
LEVEL = {room: i for i, rooms in enumerate(COLUMN) for room in rooms}


FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400  # lines of a file


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imported(path: Path) -> dict[str, set[str]]:
    """The files of assay that a file imports, anywhere in it, and which names it takes from each."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in MODULES:
                    found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.relative_to(SOURCE)} has a relative import"
            for alias in node.names:
                if f"{node.module}.{alias.name}" in MODULES:
                    found.setdefault(f"{node.module}.{alias.name}", set())
                elif node.module in MODULES:
                    found.setdefault(node.module, set()).add(alias.name)
    return found


IMPORTED = {name: imported(path) for name, path in MODULES.items()}


def rooms_imported(path: Path) -> set[str]:
    """The rooms that a file imports; the package's own face counts as the room ``__init__``."""
    return {[*name.split("."), "__init__"][1] for name in IMPORTED[module_name(path)]}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_imports_point_down_the_column():
    for path in FILES:
        for target in rooms_imported(path) & LEVEL.keys():
            below = LEVEL[target] < LEVEL[room(path)]
            assert below or target == room(path), f"{path.relative_to(SOURCE)} imports {target}"


def test_only_one_place_names_a_room_above_to_import_it_when_asked():
    """An import by name would go round the test above. There is one, for what runs and measures show in a notebook."""
    naming = set()
    for path in FILES:
        above = {name for name in LEVEL if LEVEL[name] > LEVEL[room(path)]}
        texts = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
        written = [text.split(".") for text in texts if isinstance(text, str) and text.startswith("assay.")]
        if any(len(parts) > 1 and parts[1] in above for parts in written):
            naming.add(str(path.relative_to(SOURCE)))
    assert naming == {"core/showing.py"}
    asking = {name for name, targets in IMPORTED.items() if "assay.core.showing" in targets}
    assert asking == {"assay.runs.run", "assay.measures.base"}
    # The report is no part of what a cell depends on: an edit to it throws no result away.
    assert not [name for name in dependencies("assay.measures.base") if name.startswith("assay.report")]


def test_every_room_has_its_place_in_the_column_and_no_file_is_loose():
    assert {room(path) for path in FILES} <= LEVEL.keys()
    assert {p.name for p in SOURCE.iterdir() if p.is_file()} <= {"__init__.py", "__main__.py", "py.typed"}


def test_no_file_imports_itself_through_others():
    require_no_circle({name: set(targets) for name, targets in IMPORTED.items()})


@pytest.mark.parametrize("package", [name for name, path in MODULES.items() if path.name == "__init__.py"])
def test_the_files_and_sub_rooms_of_a_room_import_in_one_direction_only(package):
    """A sub-room counts as one; a room's ``__init__`` imports what it shows, and nothing in the room imports it."""

    def part(name: str) -> str:
        return "__init__" if name == package else name.removeprefix(f"{package}.").split(".")[0]

    inside = [name for name in MODULES if name == package or name.startswith(f"{package}.")]
    graph: dict[str, set[str]] = {part(name): set() for name in inside}
    for name in inside:
        graph[part(name)] |= {part(target) for target in IMPORTED[name] if target in inside} - {part(name)}
    require_no_circle(graph)


def require_no_circle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"imports go in a circle: {' ← '.join(error.args[1])}") from None


def test_no_file_reaches_for_the_private_names_of_another():
    taken = [
        f"{name} imports {private} from {target}"
        for name, targets in IMPORTED.items()
        for target, names in targets.items()
        for private in names
        if is_private(private)
    ]
    assert not taken


def test_no_file_uses_the_private_attributes_of_things_that_another_defines():
    """Found by name: what ``thing._name`` uses is defined in the same file, or nowhere in assay (torch has some)."""
    defined: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        attributes = [n for n in nodes if isinstance(n, ast.Attribute) and is_private(n.attr)]
        named = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        named |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        defined[name] = {n for n in named if is_private(n)}
        defined[name] |= {n.attr for n in attributes if isinstance(n.ctx, ast.Store)}
        # A class may use what it inherits.
        own = ("self", "cls", "super()")
        used[name] = {n.attr for n in attributes if ast.unparse(n.value) not in own}
    of_torch = {*dir(torch.Tensor), *vars(torch.nn.Module())}
    for name, attributes in used.items():
        elsewhere = set().union(*(names for other, names in defined.items() if other != name))
        assert not (attributes - defined[name] - of_torch) & elsewhere, name


def test_no_file_is_longer_than_a_reader_can_hold():
    assert not [f"{p.relative_to(SOURCE)}" for p in FILES if len(p.read_text().splitlines()) > LONGEST]


def test_reports_know_no_network_and_measures_no_file():
    for path in (SOURCE / "report").rglob("*.py"):
        assert not rooms_imported(path) & {"subject", "networks", "measures"}, path
        assert "import torch" not in path.read_text()
    for path in (SOURCE / "measures").rglob("*.py"):
        assert not rooms_imported(path) & {"runs"} and "open(" not in path.read_text(), path


def test_the_public_api_is_flat_and_documented():
    assert set(assay.__all__) == {*assay._HOME, *assay._ROOMS} and set(assay.__all__) <= set(dir(assay))
    for name in assay.__all__:
        thing = getattr(assay, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name
    assert {"Subject", "Measure", "Straightness", "curvature", "evaluate", "Run"} <= set(assay.__all__)


def test_every_measure_is_a_frozen_dataclass_with_a_name_and_a_value_column():
    for name, kind in Measure.known().items():
        if kind.__module__.startswith("assay."):
            assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen, name  # type: ignore[attr-defined]
            assert kind.name == name and kind.value and kind.higher_is and kind.__doc__, name


@pytest.mark.slow
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


def test_no_two_test_files_have_the_same_name():
    """pytest imports test files by their name alone, and refuses the second of two."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert not [name for name in set(names) if names.count(name) > 1]
