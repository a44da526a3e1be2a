"""What jobs share is sent once, kept or replaced as they say; what cannot be loaded is an error for each of them."""

from __future__ import annotations

import pickle

import pytest

from assay.runs.jobs import Job
from assay.runs.sharing import Pickled, Receiver, Sender


def test_shared_objects_are_sent_once_and_arrive_for_every_job():
    dumped: list[object] = []
    pickled = Pickled(lambda thing: dumped.append(thing) or pickle.dumps(thing))
    a, b, kept = ["a"], ["b"], {"kept": 1}
    jobs = [Job(1, a, kept), Job(2, a, kept), Job(3), Job(4, a), Job(5, b, kept), Job(6, a, kept)]
    for _ in range(2):  # another process, the same bytes
        sender, receiver = Sender(pickled), Receiver(pickle.loads)
        got = [receiver.shared(sender.shared(job)) for job in jobs]
        assert got == [(job.streamed, job.kept) for job in jobs]
    assert dumped.count(kept) == 1
    assert [dumped.count(one) for one in (a, b)] == [3, 2]  # only the last streamed object is remembered


class Unloadable:
    def __reduce__(self):
        return pickle.loads, (b"no pickle",)


def test_what_cannot_be_loaded_is_the_same_error_for_every_job_that_shares_it():
    sender, receiver = Sender(Pickled(pickle.dumps)), Receiver(pickle.loads)
    bad = Unloadable()
    for job in (Job(1, None, bad), Job(2, None, bad), Job(3, bad)):
        with pytest.raises(pickle.UnpicklingError):
            receiver.shared(sender.shared(job))
    assert receiver.shared(sender.shared(Job(4, ["good"]))) == (["good"], None)
