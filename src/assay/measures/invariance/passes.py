"""The passes of a test through a subject: all stimuli once, and again those that the first pass leaves open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.invariance.firing import SCORED, SLACK, Signs, firing_count
from assay.measures.invariance.unit_responses import (
    NearMaximal,
    UnitResponses,
    Units,
    joined,
    kept_of,
    near_from_responses,
    replace_units,
    responses_of,
)
from assay.measures.invariance.unit_streams import LayerStream
from assay.stimuli.invariance_test import ClosedTest, InvarianceTest, OpenTest
from assay.subject.layers import Layers
from assay.subject.stills import FRAMES, visit_stills
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
_LOOK_AGAIN = 1 << 27  # responses of units with many ties kept at a time


class Passes:
    """Shows the stimuli of a test to a subject, as often as invariance scores need; settings as in `Invariance`.

    After `show`, ``responses`` has what each layer's units responded to: to all stimuli, then, where there are
    ``halves`` of them, to those of each half. ``layers`` has the names of all layers asked for, and ``repeats`` those
    that are the same as an earlier one.

    Args:
        halves: The half, 0 or 1, that each stimulus is in; None where none is held out.
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
        halves: Array | None = None,
        frames: int = FRAMES,
        details: bool = False,
    ) -> None:
        self.test = test
        self.halves = halves
        self.subject = subject
        self.chosen = chosen
        self.size = size
        self.firing_rate = firing_rate
        self.near_max = near_max
        self.signs = signs
        self.units = units
        self.frames = frames
        self.details = details
        self.responses: dict[str, list[UnitResponses]] = {}
        self.layers: list[str] = []
        self.repeats: dict[str, str] = {}
        self._not_per_stimulus: set[str] = set()
        require_enough(test, firing_rate)

    def show(self) -> None:
        """Show all stimuli once, and keep of every layer the largest responses of its units."""
        n, shown = len(self.test), 0
        everything = np.arange(n)
        members = [everything[part] for part in self._parts(everything)]  # once for all layers
        streams: dict[str, list[LayerStream]] = {}
        for batch in self._batches():
            inside = self._parts(np.arange(shown, shown + len(batch)))
            rows = [torch.from_numpy(np.flatnonzero(part)).to(self.subject.device) for part in inside]
            visitor = partial(self._extend, streams, members, rows, len(batch))
            visit_stills(self.subject, batch, visitor, self.chosen, frames=self.frames, repeats=False)
            shown += len(batch)
            report(f"{self.subject.name}: stimuli", shown, n)
        for layer in list(streams):  # what a stream held is let go at its end
            parts = [stream.finished() for stream in streams.pop(layer)]
            self.responses[layer] = parts if len(parts) == 1 else [joined(parts, everything, self.firing_rate), *parts]
        self.layers = self.subject.choose(self.chosen)
        self.repeats = self.subject.repeats(self.chosen)

    def _parts(self, stimuli: Array) -> list[Array]:
        """Which of some stimuli are in each part whose responses are kept apart: all of them, or those of each half."""
        if self.halves is None:
            return [np.ones(len(stimuli), dtype=bool)]
        return [self.halves[stimuli] == half for half in (0, 1)]

    def _extend(
        self,
        streams: dict[str, list[LayerStream]],
        members: list[Array],
        rows: list[Tensor],
        count: int,
        layer: str,
        output: Tensor,
    ) -> None:
        """Add what a layer did with a batch of ``count`` stimuli to the responses of its units, part by part."""
        if not self._fits(layer, output, count, streams):
            return
        if layer not in streams:
            kept = kept_of(len(self.test), self.firing_rate)
            streams[layer] = [LayerStream(of, self.firing_rate, self.signs, self.details, kept) for of in members]
        responses = responses_of(output, self.units)
        for of_part, stream in zip(rows, streams[layer], strict=True):
            if len(of_part):
                stream.extend(responses, None if len(of_part) == count else of_part)

    def near(self) -> dict[str, dict[str, list[dict[int, NearMaximal]]]]:
        """Find Z of all units, with local rates, for each transformation, layer, part of the stimuli and sign."""
        transformations = {name: _Transformation(self.test, name) for name in self.test.transformations}
        nears: dict[str, dict[str, list[dict[int, NearMaximal]]]] = {name: {} for name in transformations}
        unknown: dict[str, dict[str, list[Array]]] = {name: {} for name in transformations}
        for name, transformation in transformations.items():
            for layer, kept in self.responses.items():
                rates = [self._from_kept(of, transformation, self._with_details(i)) for i, of in enumerate(kept)]
                nears[name][layer], unknown[name][layer] = ([*of] for of in zip(*rates, strict=True))
        again = {
            layer: np.flatnonzero(np.any([part for of in unknown.values() for part in of[layer]], axis=0))
            for layer in self.responses
        }
        for layer, units, responses in self._look_again(again):
            for name, transformation in transformations.items():
                for i, part in enumerate(self.responses[layer]):
                    asked = unknown[name][layer][i][units]
                    for sign, near in nears[name][layer][i].items():
                        replacement = near_from_responses(
                            responses[:, asked],
                            part.stimuli,
                            sign,
                            self.firing_rate,
                            self.near_max,
                            transformation.eligible,
                            transformation.table,
                            self._with_details(i),
                        )
                        nears[name][layer][i][sign] = replace_units(near, units[asked], replacement)
        if isinstance(self.test, OpenTest):
            for name, near_by_layer in nears.items():
                self._show_transforms(self.test, name, near_by_layer)
        return nears

    def _with_details(self, part: int) -> bool:
        """Whether details are kept of a part: of all stimuli, and not of each half."""
        return self.details and part == 0

    def _from_kept(
        self, kept: UnitResponses, transformation: _Transformation, details: bool
    ) -> tuple[dict[int, NearMaximal], Array]:
        """Z of each sign from the largest responses, and the units for which those are too few to tell."""
        nears: dict[int, NearMaximal] = {}
        unknown = np.zeros(len(kept.finite), dtype=bool)
        met = np.zeros_like(unknown)
        for sign in kept.signs:
            near, beyond = kept.near(sign, self.near_max, transformation.eligible)
            if transformation.table is not None:
                near = kept.with_local_rates(sign, near, transformation.table, details)
            nears[sign] = near
            unknown |= beyond
            met |= np.isin(near.status, SCORED) & (near.firing <= (1 + SLACK) * kept.asked)
        return nears, unknown & ~met & kept.finite

    def _batches(self) -> Iterator[Tensor]:
        for batch in self.test.batches(self.size):
            yield torch.from_numpy(batch).to(self.subject.device)

    def _fits(self, layer: str, output: Tensor, count: int, known: Collection[str]) -> bool:
        if self.subject.is_per_sample(layer) and len(output) == count and layer not in self._not_per_stimulus:
            return True
        if layer in known:
            raise AssayError(f"layer {layer!r} of {self.subject.name!r} has not one entry per stimulus in every batch")
        self._not_per_stimulus.add(layer)
        return False

    def _look_again(self, wanted: dict[str, Array]) -> Iterator[tuple[str, Array, Array]]:
        """Show all stimuli again, for all responses of units with many ties; a bounded number of units at a time."""
        step = max(_LOOK_AGAIN // len(self.test), 1)
        portions = [(layer, u) for layer, units in wanted.items() for u in _portions(units, step)]
        while portions:
            now: dict[str, Array] = {}
            while portions and portions[0][0] not in now and sum(map(len, now.values())) < step:
                layer, units = portions.pop(0)
                now[layer] = units
            responses = self._responses_of_units(now)
            for layer, units in now.items():
                yield layer, units, responses[layer]

    def _responses_of_units(self, wanted: dict[str, Array]) -> dict[str, Array]:
        """All responses of the given units of each layer (stimuli × units), from one more pass over the stimuli."""
        responses: dict[str, list[Array]] = {layer: [] for layer in wanted}

        def visit(layer: str, output: Tensor) -> None:
            columns = torch.from_numpy(wanted[layer]).to(output.device)
            picked = responses_of(output, self.units).index_select(1, columns)
            responses[layer].append((picked if picked.dtype == torch.float64 else picked.float()).cpu().numpy())

        for batch in self._batches():
            visit_stills(self.subject, batch, visit, list(wanted), frames=self.frames)
        # Each layer's parts are let go as they are joined, so that no response is held twice for long.
        return {layer: np.concatenate(responses.pop(layer)) for layer in wanted}

    def _show_transforms(
        self, test: OpenTest, transformation: str, near_by_layer: dict[str, list[dict[int, NearMaximal]]]
    ) -> None:
        """Show the stimuli in any unit's Z at all magnitudes, and set the local rates of the units."""
        driving = [near.stimulus for parts in near_by_layer.values() for nears in parts for near in nears.values()]
        wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *driving]))
        if not len(wanted):
            return
        lookups = {
            layer: _FiringOnTransforms(
                [(sign, near, self._with_details(i)) for i, nears in enumerate(parts) for sign, near in nears.items()],
                wanted,
            )
            for layer, parts in near_by_layer.items()
        }
        one = torch.from_numpy(test.pictures(wanted[:1])).to(self.subject.device)
        magnitudes = test.trajectory(transformation, one).shape[1]
        step = max(self.size // magnitudes, 1)

        def visit(first: int, layer: str, output: Tensor) -> None:
            lookups[layer].count(responses_of(output, self.units), first, magnitudes)

        for start in range(0, len(wanted), step):
            stimuli = torch.from_numpy(test.pictures(wanted[start : start + step])).to(self.subject.device)
            transforms = test.trajectory(transformation, stimuli).flatten(0, 1)
            visit_stills(self.subject, transforms, partial(visit, start), list(lookups), frames=self.frames)
            report(f"{self.subject.name}: {transformation}", min(start + step, len(wanted)), len(wanted))
        for layer, lookup in lookups.items():
            places = [(nears, sign) for nears in near_by_layer[layer] for sign in nears]
            for (nears, sign), (local, fires) in zip(places, lookup.found(), strict=True):
                nears[sign] = replace(nears[sign], local=local, fires=fires)


def require_enough(test: InvarianceTest, firing_rate: float) -> None:
    """Refuse a test of too few stimuli for the firing rate, by an error that names its transformations."""
    try:
        firing_count(len(test), firing_rate)
    except AssayError as error:
        raise AssayError(f"the {test.name} test of {', '.join(test.transformations)}: {error}") from None


class _Transformation:
    """The stimuli that may be in Z under one transformation, and their trajectories where the test knows them."""

    def __init__(self, test: InvarianceTest, transformation: str) -> None:
        self.table = test.trajectories(transformation) if isinstance(test, ClosedTest) else None
        among = test.among(transformation) if isinstance(test, ClosedTest) else None
        self.eligible = np.isin(np.arange(len(test)), among) if among is not None else np.ones(len(test), dtype=bool)


class _FiringOnTransforms:
    """Counts, for the pairs (unit, z) of a layer, how often the unit fires on the transforms of z.

    Args:
        asked: Pairs of units with a sign, and whether to keep on which transforms they fire.
        shown: The numbers of the stimuli whose transforms are shown.
    """

    def __init__(self, asked: Sequence[tuple[int, NearMaximal, bool]], shown: Array) -> None:
        sizes = [len(near.unit) for _, near, _ in asked]
        self.ends = np.cumsum(sizes)
        self.detailed = [details for _, _, details in asked]
        place = np.searchsorted(shown, np.concatenate([near.stimulus for _, near, _ in asked]))
        self.order = np.argsort(place, kind="stable")
        self.place = place[self.order]
        self.unit = np.concatenate([near.unit for _, near, _ in asked])[self.order]
        limit = np.concatenate([near.thresholds[near.unit] for _, near, _ in asked])[self.order]
        self.limit = torch.from_numpy(limit)
        self.sign = torch.from_numpy(np.repeat([sign for sign, _, _ in asked], sizes)[self.order])
        kept = np.repeat(self.detailed, sizes)[self.order]
        self.kept = np.where(kept, kept.cumsum() - 1, -1)  # the row of each pair in ``along``
        self.fired = torch.zeros(len(place), dtype=torch.int64)
        self.magnitudes = 0

    def begin(self, responses: Tensor, magnitudes: int) -> None:
        """Find where the responses of each pair are in a flat table of all responses."""
        device, units = responses.device, responses.shape[1]
        self.magnitudes = magnitudes
        self.row = magnitudes * units
        self.column = torch.from_numpy(self.place * self.row + self.unit).to(device)
        self.step = units * torch.arange(magnitudes, device=device)[:, None]
        self.limit, self.sign = self.limit.to(responses), self.sign.to(responses)  # thresholds are responses
        self.fired = self.fired.to(device)
        self.along = torch.zeros((int(self.kept.max(initial=-1)) + 1, magnitudes), dtype=torch.bool, device=device)

    def count(self, responses: Tensor, first: int, magnitudes: int) -> None:
        """Add the responses to all magnitudes of the stimulus at place ``first``, then of the next, and so on."""
        if not self.magnitudes:
            self.begin(responses, magnitudes)
        low, high = self.place.searchsorted((first, first + len(responses) // magnitudes)).tolist()
        if low == high:
            return
        # Magnitudes first: along a row of responses the memory is read in order.
        places = self.column[low:high] - first * self.row + self.step
        values = responses.reshape(-1).index_select(0, places.reshape(-1)).view_as(places)  # twice as fast as take
        fires = values.mul_(self.sign[low:high]) > self.limit[low:high]
        torch.sum(fires, 0, out=self.fired[low:high])
        if len(self.along):
            kept = self.kept[low:high]
            pairs = torch.from_numpy(np.flatnonzero(kept >= 0)).to(fires.device)
            self.along[torch.from_numpy(kept[kept >= 0]).to(fires.device)] = fires.T[pairs]

    def found(self) -> list[tuple[Array, Array | None]]:
        """For each that was asked the local rate of its pairs, in their order, and on which transforms they fire."""
        local = np.empty(len(self.order))
        local[self.order] = self.fired.cpu().numpy() / max(self.magnitudes, 1)
        rows = np.empty(len(self.order), dtype=np.int64)
        rows[self.order] = self.kept
        along = self.along.cpu().numpy() if self.magnitudes else None
        parts = zip(np.split(local, self.ends[:-1]), np.split(rows, self.ends[:-1]), self.detailed, strict=True)
        return [(rates, along[of] if details and along is not None else None) for rates, of, details in parts]


def _portions(units: Array, step: int) -> list[Array]:
    return [units[i : i + step] for i in range(0, len(units), step)]
