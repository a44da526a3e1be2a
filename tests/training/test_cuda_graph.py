"""Recording steps as CUDA graphs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from assay.training.cuda_graph import RecordedStep, recording


class Circle:
    """Something that only a sweep of the garbage collector frees, as it frees older graphs."""

    def __init__(self, freed: list[bool]) -> None:
        self.freed, self.myself = freed, self

    def __del__(self) -> None:
        self.freed.append(True)


def much_garbage(times: int) -> list[Any]:
    """Allocate so much that the collector runs by itself, if it may."""
    return [[] for _ in range(times * gc.get_threshold()[0])]


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands for torch's recorder, which needs a GPU: what it was given."""
    given: list[Any] = []

    @contextmanager
    def recorder(graph: Any, **options: Any) -> Iterator[None]:
        given.append((graph, options))
        yield

    monkeypatch.setattr(torch.cuda, "graph", recorder)
    return given


def test_nothing_is_freed_while_a_graph_is_recorded(graph: list[Any]) -> None:
    freed: list[bool] = []
    Circle(freed)
    with recording("graph", stream="stream"):  # type: ignore[arg-type]
        much_garbage(200)
        assert not freed
    assert graph == [("graph", {"stream": "stream"})]
    assert gc.isenabled()
    gc.collect()
    assert freed


def test_garbage_is_collected_again_after_a_failure(graph: list[Any]) -> None:
    with pytest.raises(RuntimeError, match="no"), recording("graph"):  # type: ignore[arg-type]
        raise RuntimeError("no")
    assert gc.isenabled()


def test_who_collects_no_garbage_still_does_not(graph: list[Any]) -> None:
    gc.disable()
    try:
        with recording("graph"):  # type: ignore[arg-type]
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_an_older_graph_in_a_circle_does_not_end_a_recording() -> None:
    weight = torch.nn.Parameter(torch.ones(4, device="cuda"))
    optimizer = torch.optim.Adam([weight], capturable=True)

    def step(batch: torch.Tensor) -> None:
        much_garbage(3)
        optimizer.zero_grad()
        (weight * batch).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    for _ in range(3):
        recorded: Any = RecordedStep(step, optimizer)
        recorded.myself = recorded
        recorded(torch.ones(4, device="cuda"))
        del recorded
