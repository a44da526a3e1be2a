"""The passes of a test through a subject: all stimuli once, and again what the first pass could not tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.invariance.firing import SCORED, SLACK, Signs, firing_count
from assay.measures.invariance.unit_responses import (
    Near,
    UnitResponses,
    Units,
    near_from_responses,
    replace_units,
    responses_of,
)
from assay.stimuli.invariance_test import ClosedTest, InvarianceTest, OpenTest
from assay.subject.layers import Layers
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
_LOOK_AGAIN = 1 << 27  # responses of units with many ties kept at a time


class Passes:
    """The pass of a test through a subject, and what is needed beyond it; the settings are those of `Invariance`.

    After `show`, ``responses`` has what each layer's units responded to, ``layers`` the names of all layers asked for,
    and ``repeats`` those that are the same as an earlier one.
    """

    def __init__(
        self,
        test: InvarianceTest,
        subject: Subject,
        chosen: Layers,
        size: int,
        *,
        firing_rate: float,
        near_max: int | float,
        signs: Signs,
        units: Units,
    ) -> None:
        self.test, self.subject, self.chosen, self.size = test, subject, chosen, size
        self.firing_rate, self.near_max, self.signs, self.units = firing_rate, near_max, signs, units
        self.responses: dict[str, UnitResponses] = {}
        self.layers: list[str] = []
        self.repeats: dict[str, str] = {}
        self._not_per_stimulus: set[str] = set()
        firing_count(len(test), firing_rate)

    def show(self) -> None:
        """Show all stimuli; every layer keeps what drives its units."""
        n, shown = len(self.test), 0
        for batch in self._batches():

            def visit(layer: str, output: Tensor, count: int = len(batch)) -> None:
                if self._fits(layer, output, count):
                    if layer not in self.responses:
                        self.responses[layer] = UnitResponses(n, self.firing_rate, self.signs)
                    self.responses[layer].extend(responses_of(output, self.units))

            self.subject.visit(batch, visit, self.chosen, repeats=False)
            shown += len(batch)
            report(f"{self.subject.name}: stimuli", shown, n)
        self.layers = self.subject.choose(self.chosen)
        self.repeats = self.subject.repeats(self.chosen)

    def near(self) -> dict[str, dict[str, dict[int, Near]]]:
        """Per transformation, layer and sign: Z of all units, with local rates."""
        asked = {
            transformation: _Transformation(self.test, transformation) for transformation in self.test.transformations
        }
        found = {
            t: {layer: self._from_kept(kept, a) for layer, kept in self.responses.items()} for t, a in asked.items()
        }
        again = {layer: np.flatnonzero(np.any([found[t][layer][1] for t in asked], axis=0)) for layer in self.responses}
        nears = {t: {layer: by_sign for layer, (by_sign, _) in layers.items()} for t, layers in found.items()}
        for layer, units, responses in self._look_again(again):
            for t, a in asked.items():
                mine = found[t][layer][1][units]
                for sign in nears[t][layer]:
                    more = near_from_responses(
                        responses[:, mine], sign, self.firing_rate, self.near_max, a.eligible, a.table
                    )
                    nears[t][layer][sign] = replace_units(nears[t][layer][sign], units[mine], more)
        if isinstance(self.test, OpenTest):
            for t, layers in nears.items():
                self._show_transforms(self.test, t, layers)
        return nears

    def _from_kept(self, kept: UnitResponses, asked: _Transformation) -> tuple[dict[int, Near], Array]:
        """By sign what the largest responses tell, and which units they tell too little of."""
        nears: dict[int, Near] = {}
        unknown = np.zeros(len(kept.finite), dtype=bool)
        met = np.zeros_like(unknown)
        for sign in kept.signs:
            near, beyond = kept.near(sign, self.near_max, asked.eligible)
            if asked.table is not None:
                near = replace(near, local=kept.local_rates(sign, near, asked.table))
            nears[sign] = near
            unknown |= beyond
            met |= np.isin(near.status, SCORED) & (near.firing <= (1 + SLACK) * kept.asked)
        return nears, unknown & ~met & kept.finite

    def _batches(self) -> Iterator[Tensor]:
        for batch in self.test.batches(self.size):
            yield torch.from_numpy(batch).to(self.subject.device)

    def _fits(self, layer: str, output: Tensor, count: int) -> bool:
        if self.subject.is_per_sample(layer) and len(output) == count and layer not in self._not_per_stimulus:
            return True
        if layer in self.responses:
            raise AssayError(f"layer {layer!r} of {self.subject.name!r} has not one entry per stimulus in every batch")
        self._not_per_stimulus.add(layer)
        return False

    def _look_again(self, wanted: dict[str, Array]) -> Iterator[tuple[str, Array, Array]]:
        """All responses of units whose ties are many, layer by layer, a bounded number of units at a time."""
        step = max(_LOOK_AGAIN // len(self.test), 1)
        portions = [(layer, u) for layer, units in wanted.items() for u in _portions(units, step)]
        while portions:
            now: dict[str, Array] = {}
            while portions and portions[0][0] not in now and sum(map(len, now.values())) < step:
                layer, units = portions.pop(0)
                now[layer] = units
            held: dict[str, list[Array]] = {layer: [] for layer in now}

            def visit(layer: str, output: Tensor, now: Any = now, held: Any = held) -> None:
                columns = torch.from_numpy(now[layer]).to(output.device)
                picked = responses_of(output, self.units).index_select(1, columns)
                held[layer].append((picked if picked.dtype == torch.float64 else picked.float()).cpu().numpy())

            for batch in self._batches():
                self.subject.visit(batch, visit, list(now))
            for layer, units in now.items():
                yield layer, units, np.concatenate(held[layer])

    def _show_transforms(self, test: OpenTest, transformation: str, found: dict[str, dict[int, Near]]) -> None:
        """Show the stimuli that drive any unit at all magnitudes, and see whether the units go on firing."""
        shown = [near.stimulus for nears in found.values() for near in nears.values()]
        wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *shown]))
        if not len(wanted):
            return
        lookups = {
            layer: [_FiringOnTransforms(s, near, wanted) for s, near in nears.items()] for layer, nears in found.items()
        }
        one = torch.from_numpy(test.pictures(wanted[:1])).to(self.subject.device)
        magnitudes = test.trajectory(transformation, one).shape[1]
        step = max(self.size // magnitudes, 1)
        for start in range(0, len(wanted), step):
            stimuli = torch.from_numpy(test.pictures(wanted[start : start + step])).to(self.subject.device)

            def visit(layer: str, output: Tensor, first: int = start) -> None:
                responses = responses_of(output, self.units)
                for lookup in lookups[layer]:
                    lookup.count(responses, first, magnitudes)

            self.subject.visit(test.trajectory(transformation, stimuli).flatten(0, 1), visit, list(lookups))
            report(f"{self.subject.name}: {transformation}", min(start + step, len(wanted)), len(wanted))
        for layer, by_sign in lookups.items():
            for lookup in by_sign:
                found[layer][lookup.sign] = replace(found[layer][lookup.sign], local=lookup.locals())


class _Transformation:
    """What one transformation asks of the stimuli: which may be in Z, and their trajectories if they are known."""

    def __init__(self, test: InvarianceTest, transformation: str) -> None:
        self.table = test.trajectories(transformation) if isinstance(test, ClosedTest) else None
        among = test.among(transformation) if isinstance(test, ClosedTest) else None
        self.eligible = np.isin(np.arange(len(test)), among) if among is not None else np.ones(len(test), dtype=bool)


class _FiringOnTransforms:
    """The pairs (unit, z) of a layer and sign in the order of z, and how often the unit fires on transforms of z."""

    def __init__(self, sign: int, near: Near, shown: Array) -> None:
        self.sign = sign
        place = np.searchsorted(shown, near.stimulus)
        self.order = np.argsort(place, kind="stable")
        self.place, self.unit = place[self.order], near.unit[self.order]
        self.limit = torch.from_numpy(sign * near.thresholds[self.unit])
        self.fired = torch.zeros(len(place), dtype=torch.int64)
        self.magnitudes = 0

    def begin(self, responses: Tensor, magnitudes: int) -> None:
        """Where in a flat table of all responses those of each pair are."""
        device, units = responses.device, responses.shape[1]
        self.magnitudes, self.row = magnitudes, magnitudes * units
        self.column = torch.from_numpy(self.place * self.row + self.unit).to(device)
        self.step = units * torch.arange(magnitudes, device=device)[:, None]
        self.limit = self.limit.to(responses)  # thresholds are responses: nothing is lost
        self.fired = self.fired.to(device)

    def count(self, responses: Tensor, first: int, magnitudes: int) -> None:
        """Responses to all magnitudes of the stimulus at place ``first``, then of the next, …"""
        if not self.magnitudes:
            self.begin(responses, magnitudes)
        low, high = self.place.searchsorted((first, first + len(responses) // magnitudes)).tolist()
        if low == high:
            return
        # Magnitudes first: along a row of responses the memory is read in order.
        places = self.column[low:high] - first * self.row + self.step
        values = responses.reshape(-1).index_select(0, places.reshape(-1)).view_as(places)  # twice as fast as take
        limit = self.limit[low:high]
        torch.sum(values > limit if self.sign > 0 else values < limit, 0, out=self.fired[low:high])

    def locals(self) -> Array:
        """Local rates in the order of the pairs given."""
        back = np.empty(len(self.order))
        back[self.order] = self.fired.cpu().numpy() / max(self.magnitudes, 1)
        return back


def _portions(units: Array, step: int) -> list[Array]:
    return [units[i : i + step] for i in range(0, len(units), step)]
