"""Reading a plan entry by entry, so that one reading names all that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from assay.core.errors import AssayError, nearest
from assay.plans.kinds import other_command
from assay.plans.places import folder_in
from assay.plans.problems import Collector
from assay.plans.settings import Node, convert

T = TypeVar("T")


def _folder(node: Node) -> str:
    written: str = convert(node, str, {})
    if not written.strip():
        node.fail("is empty: name a folder, or leave out the key")
    return folder_in(node.file, written)


class Reading:
    """The entries of a plan, or of a mapping in it; what is wrong with one is kept, and the next is read.

    Args:
        node: The mapping that is read.
        known: The keys that it may have; None where each key is checked as it is read.
        required: The keys that it must have.
        problems: Collects what is wrong; a new collector by default.

    Example:
        >>> from pathlib import Path
        >>> plan = Node({"seed": "one", "runn": "x"}, Path("plan.yaml"))
        >>> reading = Reading(plan, known=("seed", "run"), required=("seed",))
        >>> reading.take("seed", lambda node: convert(node, int, {}), 0)
        0
        >>> print(*reading.problems.sentences, sep=chr(10))
        plan.yaml:1: runn: unknown key; did you mean 'run'?
        plan.yaml:1: seed: is 'one', expected a whole number
    """

    def __init__(
        self,
        node: Node,
        known: Collection[str] | None = None,
        required: Collection[str] = (),
        problems: Collector | None = None,
    ) -> None:
        self.node = node
        self.problems = problems or Collector()
        self.entries: dict[str, Node] = {}
        read = False
        with self.problems.watching():
            self.entries = dict(node.items())
            read = True
        if known is not None and not node.path and (command := other_command(self.entries, known)):
            raise AssayError(f"{node.file} looks like a plan of '{command}': give it to that command")
        for key in required if read else ():
            if key not in self.entries:
                with self.problems.watching():
                    node.fail(f"lacks the key {key!r}")
        if known is not None:
            for key, entry in self.entries.items():
                if key not in known:
                    with self.problems.watching():
                        entry.fail(f"unknown key{nearest(key, known)}")

    def take(self, key: str, read: Callable[[Node], T], default: T) -> T:
        """Read an entry; the default where it is not there, or where something is wrong with it."""
        if key in self.entries:
            with self.problems.watching():
                return read(self.entries[key])
        return default

    def folder(self, key: str, default: str) -> str:
        """Read an entry that names the folder or URL of results, as `assay.plans.places.folder_in` understands it."""
        return self.take(key, _folder, folder_in(self.node.file, default))

    def each(self, key: str, read: Callable[[Node], T], *, may_be_empty: bool = False) -> list[T]:
        """Read every element of a list, without those that something is wrong with; it must not be empty by default."""
        if key not in self.entries:
            return []
        elements: list[Node] = []
        with self.problems.watching():
            elements = self.entries[key].elements()
            if not elements and not may_be_empty:
                self.entries[key].fail("is an empty list")
        done = []
        for element in elements:
            with self.problems.watching():
                done.append(read(element))
        return done

    def every(self, read: Callable[[str, Node], None]) -> None:
        """Read all entries, whatever their keys."""
        for key, entry in self.entries.items():
            with self.problems.watching():
                read(key, entry)
