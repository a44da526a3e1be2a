"""What jobs share with each other, sent to another process once: for the side that sends and the one that receives.

The streamed object of a job is replaced by that of the next; kept ones stay (see `assay.runs.jobs.Job`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from assay.runs.jobs import Job

Sent: TypeAlias = tuple[bool, bytes | None, int | None, bytes | None]
"""Whether there is a streamed object, its bytes if new; the number of the kept one, and its bytes if new."""


class Pickled:
    """Objects as bytes: of those that jobs share, the last streamed one and all kept ones, each pickled once.

    Args:
        dumps: Makes bytes of an object.
    """

    def __init__(self, dumps: Callable[[Any], bytes]) -> None:
        self.dumps = dumps
        self.kept: dict[int, tuple[Any, bytes]] = {}
        self.streamed: tuple[Any, bytes] = (None, b"")

    def of_streamed(self, thing: Any) -> bytes:
        """The bytes of the streamed object of a job."""
        if self.streamed[0] is not thing:
            self.streamed = (thing, self.dumps(thing))
        return self.streamed[1]

    def of_kept(self, thing: Any) -> bytes:
        """The bytes of the kept object of a job."""
        if id(thing) not in self.kept:
            self.kept[id(thing)] = (thing, self.dumps(thing))
        return self.kept[id(thing)][1]


class Sender:
    """Remembers what another process has already got.

    Args:
        pickled: Where bytes come from; several senders may have the same.
    """

    def __init__(self, pickled: Pickled) -> None:
        self.pickled = pickled
        self.streamed: Any = None
        self.kept: set[int] = set()

    def shared(self, job: Job) -> Sent:
        """What the other process needs to know of what a job shares; raises what pickling does."""
        streamed = kept = None
        if job.streamed is not None and job.streamed is not self.streamed:
            streamed = self.pickled.of_streamed(job.streamed)
        if job.kept is not None and id(job.kept) not in self.kept:
            kept = self.pickled.of_kept(job.kept)
        if job.streamed is not None:
            self.streamed = job.streamed
        if job.kept is not None:
            self.kept.add(id(job.kept))
        return job.streamed is not None, streamed, None if job.kept is None else id(job.kept), kept


@dataclass(frozen=True)
class _Unloaded:
    """Bytes that no object has been made of yet, because that failed: the next job that shares it tries again."""

    data: bytes


class Receiver:
    """Has the objects that were sent.

    Args:
        loads: Makes an object of bytes.
    """

    def __init__(self, loads: Callable[[bytes], Any]) -> None:
        self.loads = loads
        self.streamed: Any = None
        self.kept: dict[int, Any] = {}

    def shared(self, sent: Sent) -> tuple[Any, Any]:
        """The streamed and the kept object of a job; raises what loading does, for every job that shares it."""
        there, streamed, number, kept = sent
        if streamed is not None:
            self.streamed = _Unloaded(streamed)
        if kept is not None and number is not None:
            self.kept[number] = _Unloaded(kept)
        if there:
            self.streamed = self._loaded(self.streamed)
        if number is not None:
            self.kept[number] = self._loaded(self.kept[number])
        return self.streamed if there else None, None if number is None else self.kept[number]

    def _loaded(self, thing: Any) -> Any:
        return self.loads(thing.data) if isinstance(thing, _Unloaded) else thing
