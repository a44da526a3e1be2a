"""The process that is connected to a Ray cluster for another one (see `assay.runs.on_ray`), and its warden."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from assay.core.errors import first_line
from assay.runs.jobs import Job, Lost
from assay.runs.process_tree import adopt_orphans, end_below, end_with_parent
from assay.runs.sharing import Receiver


def main(channel: int, place: str) -> None:
    """Connect to a cluster in a process of its own; end everything below this one when that or the user's ends.

    Args:
        channel: The socket of jobs and results, whose other end is the user's process.
        place: Address of the cluster; or the folder in which one that is started here keeps its files.
    """
    adopt_orphans()  # Ray lets its processes go: they stay below this one
    child = os.fork()
    if child == 0:
        end_with_parent()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        Connected(Connection(channel), place).serve()
        return
    watched = os.dup(channel)
    os.close(channel)
    poll = select.poll()
    poll.register(watched, 0)  # only the end of the other side is told
    while not (poll.poll(100) and _patience(child)):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
    end_below(os.getpid())
    if os.path.isdir(place):  # noqa: PTH112
        shutil.rmtree(place, ignore_errors=True)


def _patience(child: int) -> bool:
    """The user's process has let go: give the other one a moment to leave the cluster, then no more."""
    for _ in range(50):
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        select.select([], [], [], 0.1)
    return True


class Connected:
    """A process that asks for jobs, has them done by the cluster, and says what came of each."""

    def __init__(self, connection: Connection, place: str) -> None:
        from ray import cloudpickle

        self.cloudpickle: Any = cloudpickle
        self.connection = connection
        self.place = place
        self.numbers: dict[int, int] = {}  # of jobs, by the identity of each
        self.receiver = Receiver(cloudpickle.loads)

    def serve(self) -> None:
        """Do all jobs; return when there are none or nobody waits for them."""
        from assay.runs.ray_jobs import connect, nodes_of, on_cluster

        with suppress(EOFError, OSError):
            try:
                started = os.path.isdir(self.place)  # noqa: PTH112
                ray = connect(True, _temp_dir=self.place) if started else connect(self.place)
                nodes = nodes_of(ray)
            except Exception as error:  # whatever Ray raises, there is no cluster
                self._say("none", first_line(error))
                return
            self._say("ready", nodes)
            task, folders = self.cloudpickle.loads(self.connection.recv_bytes())
            try:
                for done in on_cluster(ray, task, self._jobs(nodes), folders):
                    self._say("done", (self.numbers.pop(id(done.job)), done.result))
                self._say("end", None)
            finally:
                ray.shutdown()

    def _jobs(self, nodes: list[dict[str, float]]) -> Iterator[Job]:
        warned = False
        while True:
            self._say("next", None)
            message = self.cloudpickle.loads(self.connection.recv_bytes())
            if message is None:
                return
            number, body, sent = message
            try:
                own, needs = self.cloudpickle.loads(body)
                job = Job(own, *self.receiver.shared(sent), needs)
            except Exception as error:  # code that this process cannot load: others can
                self._say("done", (number, Lost(f"Ray: {type(error).__name__}: {first_line(error)}")))
                continue
            self.numbers[id(job)] = number
            most = max((node.get("CPU", 0) for node in nodes), default=0)
            if needs.cpus > most and not warned:
                warned = True
                self._say("said", f"a job asks for {needs.cpus:g} cores, and no node has more than {most:g}: it waits")
            yield job

    def _say(self, kind: str, value: Any) -> None:
        self.connection.send_bytes(self.cloudpickle.dumps((kind, value)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
