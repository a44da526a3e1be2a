"""Memos: variables of a module that a function fills itself, to find again what it computed before.

What is in them follows from the code and from what was asked before, so that it is no content of the function: else it
would be another function after every call. A variable counts as a memo of a function only where its file shows both
that it starts empty and that the function itself writes to it. A registry, which others fill, is content.
"""

from __future__ import annotations

import ast
import functools
import types
from pathlib import Path

from assay.core.source_code import source_file

_FILLING = frozenset(["add", "append", "appendleft", "extend", "insert", "setdefault", "update"])
_EMPTY_CALLS = frozenset(["dict", "list", "set", "deque", "OrderedDict", "defaultdict", "WeakKeyDictionary"])
_NONE: frozenset[str] = frozenset()


def memos(function: types.FunctionType) -> frozenset[str]:
    """The names of the variables of its module that are memos of a function, functions inside it included."""
    path = source_file(function.__globals__.get("__name__") or "")
    if path is None:
        return _NONE
    stat = path.stat()
    of_file = _memos_of_file(path, stat.st_size, stat.st_mtime_ns)
    inside = (names for place, names in of_file.items() if place.startswith(f"{function.__qualname__}."))
    return of_file.get(function.__qualname__, _NONE).union(*inside)


@functools.lru_cache(maxsize=4096)
def _memos_of_file(path: Path, size: int, mtime_ns: int) -> dict[str, frozenset[str]]:
    """The memos of every function of a file, by the full name that the function has in it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return {}
    filling = _Filling(frozenset(name for node in tree.body for name in _starting_empty(node)))
    if filling.empty:
        filling.visit(tree)
    return {place: frozenset(names) for place, names in filling.found.items()}


def _starting_empty(node: ast.stmt) -> list[str]:
    """The variables that a statement of a module sets to nothing, or to a container with nothing in it."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return []
    value = node.value
    nothing = isinstance(value, ast.Constant) and value.value is None
    display = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
    called = isinstance(value, ast.Call) and getattr(value.func, "id", getattr(value.func, "attr", "")) in _EMPTY_CALLS
    made_empty = called and isinstance(value, ast.Call) and not any(map(_holds_something, value.args))
    if not (nothing or display or made_empty):
        return []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _holds_something(argument: ast.expr) -> bool:
    """Whether an argument of a container's constructor fills it; the factory of a ``defaultdict`` does not."""
    return not isinstance(argument, (ast.Name, ast.Attribute, ast.Lambda))


class _Filling(ast.NodeVisitor):
    """Collects which of the variables that start empty each function writes to."""

    def __init__(self, empty: frozenset[str]) -> None:
        self.empty = empty
        self.found: dict[str, set[str]] = {}
        self.place: list[str] = []
        self.functions: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node, node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions.append(".".join([*self.place, node.name]))
        self._inside(node, f"{node.name}.<locals>")
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def _inside(self, node: ast.AST, place: str) -> None:
        self.place.append(place)
        self.generic_visit(node)
        self.place.pop()

    def visit_Global(self, node: ast.Global) -> None:
        self._note(*node.names)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            self._note(node.value.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        method = node.func
        if isinstance(method, ast.Attribute) and method.attr in _FILLING and isinstance(method.value, ast.Name):
            self._note(method.value.id)
        self.generic_visit(node)

    def _note(self, *names: str) -> None:
        if self.functions:
            self.found.setdefault(self.functions[-1], set()).update(self.empty.intersection(names))
