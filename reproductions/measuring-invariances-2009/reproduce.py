"""Reproduce "Measuring invariances in deep networks" (Goodfellow, Le, Saxe, Lee, Ng 2009).

    python reproductions/measuring-invariances-2009/reproduce.py --device cuda --data data

Writes tables (CSV) and figures (PNG) beside this file, or under --out. The parts are ``networks`` (autoencoders),
``sweep`` (settings of the convolutional network, chosen on pictures that are not learned from) and ``cdbn``, which
takes the best of them. Four portions of them need no GPU: ``comparisons`` concludes from the tables of both and draws
them, ``filters`` trains a few networks of the first, to look at, ``untrained_autoencoders`` scores networks like those
of ``networks`` before they learn, and ``untrained`` those of ``cdbn``. The folder of data holds coil20/coil20_64.npz,
natural_sequences, videos and perhaps opencv; without it there are photographs alone. With --small it runs in about a
minute on a CPU, for the tests: too small to learn from.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from belief import DIVERGED, SWEPT, LogOdds, belief_network, combinations, on_border, prepare, reconstruction
from comparisons import (
    ALL,
    FAMILIES,
    agreement,
    compare_cells,
    depth_gains,
    left_out_choices,
    mean_interval,
    relative_gains,
    sparsity_gains,
    tested_networks,
    tests_in,
    what_learning_changes,
    what_learning_does,
    with_means,
)
from joblib import Parallel, delayed
from material import CAMERA_PICTURES, footage, learned_and_validation, rendered_objects, turned_by_hand
from scipy import stats
from torch import Tensor, nn

from assay import AssayError, Invariance, Subject, invariance_differences, top_proportion_mean
from assay.measures.gabor_fit import fit_gabor
from assay.networks import ConvolutionalDeepBeliefNetwork, StackedAutoencoder
from assay.stimuli import (
    Gratings,
    InvarianceTest,
    NaturalVideo,
    camera_video,
    load_coil20,
    natural_patches,
)
from assay.training import Greedy, population
from assay.training.layerwise import PREPARE

mpl.use("Agg")
from matplotlib import pyplot as plt

log = logging.getLogger("reproduce")
Array = np.ndarray[Any, Any]

PATCH, RECEPTIVE_FIELD = 14, 31
TOP = 0.2  # the proportion p of units
AMPLITUDE = 2**0.5 / 3  # the contrast of whitened patches: a root mean square of 1/3
TARGETS = (-0.97, -0.95, -0.9, -0.8, -0.7, -0.5, -0.3, 0.0)
DECAYS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SPARSITY = 10.0
PARTS = ("networks", "sweep", "cdbn")
PORTIONS = ("untrained_autoencoders", "untrained", "comparisons", "filters")  # that need no GPU
# Cells of the sparsity map (λ, ρ) whose filters are drawn and fitted; without ρ there is no sparsity.
LOOKED_AT = (
    (0.3, -0.7),
    (0.1, -0.8),
    (0.3, 0.0),
    (1.0, -0.7),
    (0.3, -0.8),
    (0.3, np.nan),
    (1.0, np.nan),
    (0.0, np.nan),
)
CHOSEN_BY = {"reconstruction": "criterion", "contours": "contours_combined"}  # settings, by the largest of a column
BOTH_P = ((TOP, ""), (1.0, ALL))  # the proportions of units, and the ends of the names of their columns
CALLED = {
    "rotation_2d": "2-D rotation",
    "rotation_3d": "photographed objects",
    "rotation_3d_rendered": "rendered objects",
    "turned_by_hand": "cup",
}
ALIKE, ALIKE_PATCHES = "alikeness of responses", 5000
SCORED = ("ok", "tied")  # statuses of units that have a score
STATUSES = (*SCORED, "constant", "sparse", "always on", "silent", "not finite")
COUNTS = ("unscored", "tied")  # columns of networks: the most units without a score, and tied, in any test
SPOTS_BELOW = 0.05  # cycles per pixel: the frequency of a fit below which a filter is a spot and no edge
USUAL = {"learning_rate": 5e-3, "sigma": 0.1, "target_1": 0.003, "target_2": 0.02, "decay_1": 0.003}


@dataclass(frozen=True)
class Round:
    """A grid of settings of the convolutional network, and how long networks of them learn."""

    epochs: int
    learning_rates: tuple[float, ...]
    sigmas: tuple[float, ...]
    targets_1: tuple[float, ...]
    targets_2: tuple[float, ...]
    decays_1: tuple[float, ...]

    def settings(self) -> list[list[dict[str, float]]]:
        """Return the settings of each learning rate, with which networks can learn together."""
        others = list(itertools.product(self.sigmas, self.targets_1, self.targets_2, self.decays_1))
        return [[dict(zip(SWEPT, (rate, *cell), strict=True)) for cell in others] for rate in self.learning_rates]


FIRST_ROUND = Round(12, (2e-3, 1e-2), (0.07, 0.1, 0.2, 0.3), (0.003, 0.01), (0.001, 0.003, 0.01, 0.03), (0.001, 0.1))
# Around the corner of the first in which units combine most, and three times as long.
SECOND_ROUND = Round(36, (1e-2, 2e-2), (0.3, 0.5), (0.001, 0.003), (0.001, 0.003), (0.1, 0.3))
# More weight decay where σ is small: what it works against grows with 1/σ².
THIRD_ROUND = Round(36, (5e-3, 1e-2), (0.1, 0.15, 0.2), (0.003, 0.01), (0.003, 0.01), (0.3, 1.0))


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    patches: int = 100_000
    epochs: int = 60
    batch: int = 1000
    hidden: int = 100
    targets: tuple[float, ...] = TARGETS
    decays: tuple[float, ...] = DECAYS
    map_seeds: int = 10
    depth_epochs: int = 40
    copies: int = 100
    clips: int = 14
    objects: int = 36
    frames: int = 100
    cdbn_patches: int = 4000
    cdbn_epochs: int = 60
    cdbn_longer: int = 120
    cdbn_seeds: int = 5
    maps: tuple[int, int] = (24, 100)
    sweep_patches: int = 1000
    sweep_held: int = 200
    rounds: tuple[Round, ...] = (FIRST_ROUND, SECOND_ROUND, THIRD_ROUND)
    orientations: int = 20
    phases: int = 40
    fitted_filters: int = 10  # of each network of the map
    looked_at: int = 100  # filters, of each network that is looked at
    processes: int = -1
    draws: int = 500


SMALL = Scale(
    patches=2000, epochs=2, batch=200, hidden=10, targets=(-0.9, 0.0), decays=(0.0, 0.03), map_seeds=1, depth_epochs=1,
    copies=3, clips=1, objects=3, frames=40, cdbn_patches=20, cdbn_epochs=1, cdbn_longer=2, cdbn_seeds=1, maps=(6, 8),
    sweep_patches=20, sweep_held=4, rounds=(Round(1, (5e-3,), (0.1, 0.2), (0.005,), (0.02,), (0.003,)),),
    orientations=5, phases=8, fitted_filters=1, looked_at=1, processes=1, draws=50,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--data", type=Path, help="folder of coil20, natural_sequences and videos; without it none")
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, *PORTIONS), default=PARTS)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    allow_tf32(False)
    scale = SMALL if options.small else Scale()
    (options.out / "figures").mkdir(parents=True, exist_ok=True)
    (options.out / "tables").mkdir(parents=True, exist_ok=True)
    work = Reproduction(scale, options.device, options.out, options.data)
    work.run(options.parts)


class Reproduction:
    """All parts; what one part makes the next may use."""

    def __init__(self, scale: Scale, device: str, out: Path, data: Path | None) -> None:
        self.scale, self.device, self.out, self.data = scale, device, out, data
        self.seconds: dict[str, float] = {}
        self.units: list[pd.DataFrame] = []

    def run(self, parts: tuple[str, ...] = PARTS) -> None:
        if "networks" in parts:
            self.sparsity_map()
            self.filters()
            self.depth()
            self.untrained_autoencoders()
            self.off_centre()
            self.comparisons()
        elif "untrained_autoencoders" in parts:
            self.untrained_autoencoders()
        if "filters" in parts and "networks" not in parts:
            self.filters()
        if "sweep" in parts:
            self.sweep()
        if "cdbn" in parts:
            self.cdbn()
        elif "untrained" in parts:
            self.untrained()
        if "comparisons" in parts and "networks" not in parts:
            self.comparisons()
            self.of_learning()
        where = torch.cuda.get_device_name() if self.device.startswith("cuda") else "CPU"
        rows = [{"stage": k, "seconds": round(v, 1), "where": where} for k, v in self.seconds.items()]
        self.save_beside(pd.DataFrame(rows), "seconds", ["stage", "where"])
        if self.units:
            self.save_beside(pd.concat(self.units), "units", ["part", "signs", "layer", "transformation"])

    def save_beside(self, table: pd.DataFrame, name: str, keys: list[str]) -> None:
        """Save a table with the rows of earlier runs, of other stages, parts or machines."""
        if (self.out / "tables" / f"{name}.csv").exists():
            both = pd.concat([self.saved(name), table], ignore_index=True)
            table = both.drop_duplicates(keys, keep="last")
        self.save(table, name)

    @cached_property
    def pictures(self) -> tuple[list[Array], list[Array]]:
        """The pictures that networks learn from, and those by which settings are chosen."""
        with self.timed("pictures"):
            return learned_and_validation(self.data)

    def cut(self, size: int, count: int, seed: int) -> Array:
        """Patches to learn from, without their means."""
        return natural_patches(size, count, seed, pictures=self.pictures[0], centred=True)

    @cached_property
    def patches(self) -> Array:
        """What autoencoders learn from."""
        return self.cut(PATCH, self.scale.patches, 0)

    # -- tests ------------------------------------------------------------------------------------------

    @cached_property
    def tests(self) -> list[InvarianceTest]:
        """The tests of autoencoders."""
        with self.timed("stimuli"):
            return self.make_tests(PATCH, 48)

    def make_tests(self, patch: int, frame: int) -> list[InvarianceTest]:
        s = self.scale
        moving = camera_video(frame, s.frames, clips=s.clips, speed=1.5, turn_deg=5.0, pictures=CAMERA_PICTURES)
        clips = dict(moving)
        if self.data is not None:
            clips["rotation_3d"] = load_coil20(self.data / "coil20" / "coil20_64.npz")
        clips["rotation_3d_rendered"] = rendered_objects(frame, s.frames, s.objects)
        parts = list(NaturalVideo(clips, patch=patch).parts())
        if self.data is not None:
            real = turned_by_hand(self.data, 2 * s.frames) | {"footage": footage(self.data, s.frames)}
            parts += NaturalVideo(real, patch=patch, places=9).parts()
        gratings = Gratings(patch, orientations=s.orientations, phases=s.phases, mean=0.0, amplitude=AMPLITUDE)
        return [gratings, *map(Held, parts)]

    def scored(
        self, part: str, networks: list[StackedAutoencoder], signs: str, tests: list[InvarianceTest]
    ) -> pd.DataFrame:
        """The scores of all networks, whose units are shown every test in one pass; the units are counted by status."""
        shape, arguments = (1, PATCH, PATCH), Arguments(networks)
        subject = Subject(arguments, "together", preprocess=without_mean, example=shape, device=self.device)
        frames = []
        for test in tests:
            found = Invariance(test, layers=arguments.layers, signs=signs, batch_size=1024).per_unit(subject)
            found["network"], found["unit"] = found["unit"] // self.scale.hidden, found["unit"] % self.scale.hidden
            frames.append(found)
        units = pd.concat(frames, ignore_index=True)
        counts = unit_counts(units)
        counts.insert(0, "part", part)
        counts.insert(1, "signs", signs)
        self.units.append(counts)
        return network_scores(units)

    # -- (a) ----------------------------------------------------------------------------------------------

    def sparsity_map(self) -> None:
        """One layer, target mean activation × weight decay; beside it networks without sparsity (their Fig. 3).

        Units of sparse networks keep the sign +1, those of others choose theirs, as in the paper; a second table has
        the same networks with the rules exchanged, since a sign that is chosen raises scores.
        """
        s = self.scale
        grid = [(d, t, seed) for d, t, seed in itertools.product(s.decays, s.targets, range(s.map_seeds))]
        sparse = [
            StackedAutoencoder(PATCH**2, (s.hidden,), d, SPARSITY, t, seed=seed).to(self.device) for d, t, seed in grid
        ]
        plain_grid = [(d, np.nan, seed) for d, seed in itertools.product(s.decays, range(s.map_seeds))]
        plain = [StackedAutoencoder(PATCH**2, (s.hidden,), d, seed=seed).to(self.device) for d, _, seed in plain_grid]
        with self.timed("map: training"):
            learn([*sparse, *plain], self.patches, Greedy(s.epochs, s.batch, 2e-3))
        with self.timed("map: scoring"):
            by_rule = []
            for rules in (("positive", "choose"), ("choose", "positive")):
                tables = []
                families = zip(("sparse", "plain"), (sparse, plain), (grid, plain_grid), rules, strict=True)
                for family, networks, cells, signs in families:
                    scores = self.scored(f"a, {family}", networks, signs, self.tests)
                    labels = pd.DataFrame(cells, columns=["weight_decay", "target", "seed"])
                    labels["network"] = range(len(cells))
                    tables.append(labels.merge(scores.drop(columns="layer"), on="network"))
                by_rule.append(pd.concat(tables, ignore_index=True).drop(columns="network"))
        self.map, other_rule = by_rule
        self.save(other_rule, "a_other_signs")
        self.map_networks = [*sparse, *plain]
        with self.timed("map: Gabor fits"):
            self.describe_filters()
        self.save(self.map, "a_sparsity_map")

    def describe_filters(self) -> None:
        """Of every network: median r² of Gabor fits to some of its filters, and how alike all of them are."""
        rows, some = [], []
        for network in self.map_networks:
            filters = network.filters(0).cpu().numpy()
            rows.append({"alikeness": alikeness(filters)})
            some.append(filters[: self.scale.fitted_filters].reshape(-1, PATCH, PATCH))
        fits = Parallel(n_jobs=self.scale.processes)(delayed(fit_gabor)(filters) for filters in some)
        r2 = [fit["r2"].median() for fit in fits]
        self.map = self.map.join(pd.DataFrame(rows).assign(gabor_r2=r2))

    def draw_map(self, scores: pd.DataFrame) -> None:
        """The means over the initialisations of every cell; the last row is without sparsity."""
        kept = scores.assign(target=scores["target"].map(lambda t: "none" if np.isnan(t) else f"{t:g}"))
        figure, axes = plt.subplots(1, 3, figsize=(16, 4.6), constrained_layout=True)
        titles = {"mean": "mean over tests, p = 0.2", "mean_all": "mean over tests, p = 1", "gabor_r2": "Gabor r²"}
        for axis, (column, title) in zip(axes, titles.items(), strict=True):
            means = kept.groupby(["target", "weight_decay"], sort=False)[column].mean().unstack()
            image = axis.imshow(means, cmap="viridis", aspect="auto")
            axis.set_xticks(range(len(means.columns)), [f"{d:g}" for d in means.columns])
            axis.set_yticks(range(len(means.index)), means.index)
            axis.set_xlabel("weight decay λ")
            axis.set_ylabel("target mean activation ρ")
            axis.set_title(title)
            for (i, j), value in np.ndenumerate(means.to_numpy()):
                shown = f"{value:.2f}" if column == "gabor_r2" else f"{value:.0f}"
                dark = value < np.nanmean(means.to_numpy())
                axis.text(j, i, shown, ha="center", va="center", color="white" if dark else "black", fontsize=8)
            figure.colorbar(image, ax=axis)
        self.draw(figure, "a_sparsity_map")

    def filters(self) -> None:
        """All filters of one network of each cell that is looked at: drawn, and fitted with Gabor functions."""
        s = self.scale
        networks = [
            StackedAutoencoder(PATCH**2, (s.hidden,), decay).to(self.device)
            if np.isnan(target)
            else StackedAutoencoder(PATCH**2, (s.hidden,), decay, SPARSITY, target).to(self.device)
            for decay, target in LOOKED_AT
        ]
        with self.timed(f"filters of {len(networks)} networks: training"):
            learn(networks, self.patches, Greedy(s.epochs, s.batch, 2e-3))
        filters = [network.filters(0).reshape(-1, PATCH, PATCH).cpu() for network in networks]
        with self.timed(f"filters of {len(networks)} networks: Gabor fits"):
            fits = Parallel(n_jobs=s.processes)(delayed(fit_gabor)(of[: s.looked_at]) for of in filters)
        labelled = [
            fit.assign(weight_decay=decay, target=target) for (decay, target), fit in zip(LOOKED_AT, fits, strict=True)
        ]
        self.save(pd.concat(labelled, ignore_index=True), "a_filters")
        figure, axes = plt.subplots(len(networks), 1, figsize=(13, 10), constrained_layout=True)
        for axis, (decay, target), of in zip(axes, LOOKED_AT, filters, strict=True):
            axis.imshow(tile(of, 2, 32), cmap="gray")
            axis.set_title(f"λ = {decay:g}, " + ("no sparsity" if np.isnan(target) else f"ρ = {target:g}"), fontsize=9)
            axis.axis("off")
        self.draw(figure, "a_filters")

    # -- (b) ----------------------------------------------------------------------------------------------

    def depth(self) -> None:
        """Three layers, weight decay alone: all combinations, then copies of the best at each depth (their Fig. 4)."""
        s = self.scale
        grid = list(itertools.product(s.decays, repeat=3))
        networks = [StackedAutoencoder(PATCH**2, (s.hidden,) * 3, d, seed=0).to(self.device) for d in grid]
        how = Greedy(s.depth_epochs, s.batch, 2e-3)
        with self.timed(f"grid of {len(grid)} networks: training"):
            learn(networks, self.patches, how)
        with self.timed(f"grid of {len(grid)} networks: scoring"):
            scores = self.scored("b, grid", networks, "choose", self.tests)
        labels = pd.DataFrame(grid, columns=["decay_1", "decay_2", "decay_3"])
        labels["network"] = range(len(grid))
        self.grid = labels.merge(scores, on="network").merge(self.alike(networks), on=["network", "layer"])
        self.grid = self.grid.drop(columns="network")
        self.save(self.grid, "b_weight_decay_grid")
        copies = []
        for depth, chosen_by in itertools.product(range(1, 4), ("mean", f"mean{ALL}")):
            mine = self.grid[self.grid["layer"] == f"stack.{depth - 1}"]
            decays = tuple(mine.loc[mine[chosen_by].idxmax(), ["decay_1", "decay_2", "decay_3"]].astype(float))[:depth]
            made = [StackedAutoencoder(PATCH**2, (s.hidden,) * depth, decays, seed=1 + i) for i in range(s.copies)]
            with self.timed(f"{s.copies} copies of depth {depth}: training"):
                learn([n.to(self.device) for n in made], self.patches, how)
            with self.timed(f"{s.copies} copies of depth {depth}: scoring"):
                found = self.scored(f"b, copies of depth {depth} by {chosen_by}", made, "choose", self.tests)
            found = found.merge(self.alike(made), on=["network", "layer"])
            found = found[found["layer"] == f"stack.{depth - 1}"].drop(columns="layer")
            found.insert(0, "depth", depth)
            found.insert(1, "chosen_by", chosen_by)
            found.insert(2, "weight_decay", str(decays))
            copies.append(found)
            if depth == 3 and chosen_by == "mean":
                self.draw_filters(made[0])
        self.copies = pd.concat(copies, ignore_index=True)
        self.save(self.copies, "b_copies")
        keys = ["depth", "chosen_by", "weight_decay"]
        names = [c for c in self.copies.columns if c not in (*keys, *COUNTS, "network")]
        long = self.copies.melt(keys, names, "test", "score")
        rows = []
        for group_of, group in long.groupby([*keys, "test"]):
            mean, low, high = mean_interval(group["score"].to_numpy())
            rows.append(dict(zip([*keys, "test"], group_of, strict=True)) | {"score": mean, "low": low, "high": high})
        self.save(pd.DataFrame(rows), "b_depth")

    def untrained_autoencoders(self) -> None:
        """The control of (a) and (b): networks of three layers before they learn, by both rules of signs.

        The initial weights of the first layer are those of the networks of (a) of the same seed.
        """
        s = self.scale
        made = (StackedAutoencoder(PATCH**2, (s.hidden,) * 3, seed=seed) for seed in range(s.map_seeds))
        networks = [network.to(self.device) for network in made]
        tables = []
        for name, signs in (("fixed", "positive"), ("chosen", "choose")):
            with self.timed("untrained autoencoders: scoring"):
                table = self.scored("a and b, untrained", networks, signs, self.tests)
            table.insert(0, "signs", name)
            table.insert(1, "depth", table.pop("layer").str.removeprefix("stack.").astype(int) + 1)
            tables.append(table.rename(columns={"network": "seed"}))
        self.save(pd.concat(tables, ignore_index=True), "ab_untrained")

    def alike(self, networks: list[StackedAutoencoder]) -> pd.DataFrame:
        """How alike the units of each layer of each network respond to patches: their mean absolute correlation."""
        shown = torch.from_numpy(self.patches[:ALIKE_PATCHES]).to(self.device)
        rows = []
        for number, network in enumerate(networks):
            h = shown.flatten(1)
            for i, layer in enumerate(network.stack):
                with torch.no_grad():
                    h = layer(h)
                rows.append({"network": number, "layer": f"stack.{i}", ALIKE: alikeness(h.T.cpu().numpy())})
        return pd.DataFrame(rows)

    def draw_depth(self, by_depth: pd.DataFrame, tests: list[str]) -> None:
        figure, axes = plt.subplots(2, 1, figsize=(9, 7), constrained_layout=True)
        for axis, (p, end) in zip(axes, BOTH_P, strict=True):
            names = [f"{name}{end}" for name in (*tests, "mean")]
            for i, depth in enumerate((1, 2, 3)):
                mine = by_depth[(by_depth["depth"] == depth) & (by_depth["chosen_by"] == f"mean{end}")]
                mine = mine.set_index("test").loc[names]
                place = np.arange(len(names)) + (i - 1) * 0.27
                error = np.stack([mine["score"] - mine["low"], mine["high"] - mine["score"]])
                axis.bar(place, mine["score"], 0.25, yerr=error, capsize=2, label=f"depth {depth}")
            axis.set_xticks(
                range(len(names)), [CALLED.get(name, name) for name in (*tests, "mean")], rotation=20, ha="right"
            )
            axis.set_ylabel(f"score, p = {p:g}")
        axes[0].set_title("means of copies, with 95 % intervals over initial weights")
        axes[0].set_ylim(0, 120)
        axes[0].legend(frameon=False, ncols=3)
        self.draw(figure, "b_depth")

    def draw_filters(self, network: StackedAutoencoder) -> None:
        figure, axes = plt.subplots(3, 1, figsize=(8, 4.4), constrained_layout=True)
        for i, axis in enumerate(axes):
            axis.imshow(tile(network.filters(i).reshape(-1, PATCH, PATCH), 2, 24), cmap="gray")
            axis.set_title(f"layer {i + 1}" + (" (linear combinations)" if i else ""), fontsize=9)
            axis.axis("off")
        self.draw(figure, "b_filters")

    # -- (c) ----------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Settings of the convolutional network: how they reconstruct, what they combine, and how they score.

        Two are chosen, by pictures that are not learned from, among those whose units are at most twice as active as
        they should be in both layers: that which explains most of the variance of both layers' inputs, on the average,
        and that with most contours and combinations of them (the share of oriented filters in the first layer times
        that of units in the second that combine). Neither choice knows a score.
        """
        s = self.scale
        pictures, tests = self.cut(64, s.sweep_patches, 1), self.belief_tests
        held = natural_patches(64, s.sweep_held, 2, pictures=self.pictures[1], centred=True)
        shown = torch.from_numpy(held).to(self.device)
        rows, filters = [], []
        for epochs, settings in [(grid.epochs, settings) for grid in s.rounds for settings in grid.settings()]:
            how = Greedy(epochs, 50, settings[0]["learning_rate"])
            with self.timed(f"sweep: training {len(settings)} networks at a time, {epochs} epochs"):
                networks = self.trained(settings, pictures, how)
            with self.timed("sweep: scoring"):
                for setting, network in zip(settings, networks, strict=True):
                    row = setting | {"epochs": epochs}
                    if network is None:
                        rows.append(row | DIVERGED)
                        continue
                    scores = mean_scores(network, tests)
                    rows.append(row | reconstruction(network, shown) | combinations(network) | scores)
                    filters.append((len(rows) - 1, network.filters(0)[:, 0].cpu()))
        swept = pd.DataFrame(rows).assign(patches=s.sweep_patches)
        with self.timed("sweep: Gabor fits"):
            fits = Parallel(n_jobs=s.processes)(delayed(fit_gabor)(of) for _, of in filters)
        for (row, _), fit in zip(filters, fits, strict=True):
            swept.loc[row, "gabor_r2"] = fit["r2"].median()
            swept.loc[row, "oriented"] = ((fit["r2"] > 0.8) & (fit["frequency"] > SPOTS_BELOW)).mean()
        swept = with_choices(swept)
        self.save(swept.sort_values("criterion", ascending=False), "c_cdbn_sweep")

    @cached_property
    def belief_tests(self) -> list[InvarianceTest]:
        """The tests of convolutional networks, as large as what one unit of the second layer sees."""
        with self.timed("CDBN: stimuli"):
            return self.make_tests(RECEPTIVE_FIELD, 64)

    def trained(
        self, settings: list[dict[str, float]], pictures: Array, how: Greedy
    ) -> list[ConvolutionalDeepBeliefNetwork | None]:
        """One network for each setting, all trained at once; None for those whose learning diverges."""
        networks = [belief_network(self.scale.maps, **setting).to(self.device) for setting in settings]
        try:
            learn(networks, pictures, how)
        except AssayError:
            if len(settings) == 1:
                return [None]
            half = len(settings) // 2
            return [
                network for some in (settings[:half], settings[half:]) for network in self.trained(some, pictures, how)
            ]
        return list(networks)

    def chosen_settings(self) -> dict[str, dict[str, float]]:
        """The settings that the sweep chose, in this run or an earlier one; the usual one where there was none."""
        path = self.out / "tables" / "c_cdbn_sweep.csv"
        if not path.exists():
            return {"usual": USUAL}
        swept = pd.read_csv(path)
        rows = {name: swept[swept[name]] for name in CHOSEN_BY}
        return {name: {key: float(row.iloc[0][key]) for key in SWEPT} for name, row in rows.items() if len(row)}

    def cdbn(self) -> None:
        """Layer 1 against layer 2 of a convolutional deep belief network, every test (their Table 1)."""
        s = self.scale
        pictures, tests = self.belief_pictures, self.belief_tests
        frames, pairs, filters, kinds = [], [], [], []
        longest: dict[str, ConvolutionalDeepBeliefNetwork] = {}
        for chosen, setting in self.chosen_settings().items():
            log.info("CDBN, %s: %s", chosen, setting)
            for epochs, count in ((s.cdbn_epochs, s.cdbn_seeds), (s.cdbn_longer, 1)):
                networks = [belief_network(s.maps, **setting, seed=seed).to(self.device) for seed in range(count)]
                with self.timed(f"CDBN: training, {epochs} epochs, {count} at a time"):
                    learn(networks, pictures, Greedy(epochs, 50, setting["learning_rate"]))
                longest[chosen] = networks[0]
                for seed, network in enumerate(networks):
                    run = {"setting": chosen, "seed": seed, "epochs": epochs}
                    filters.append((run, network.filters(0)[:, 0].cpu()))
                    kinds.append(run | combinations(network) | {"on_border": on_border(filters[-1][1])})
                    with self.timed("CDBN: scoring"):
                        compare_layers(network, tests, run, frames, pairs)
        with self.timed("CDBN: Gabor fits"):
            found = Parallel(n_jobs=s.processes)(delayed(fit_gabor)(of) for _, of in filters)
        fits = [fit.assign(**run) for (run, _), fit in zip(filters, found, strict=True)]
        self.save(pd.concat(frames, ignore_index=True), "c_cdbn_layers")
        self.save(pd.concat(pairs, ignore_index=True), "c_cdbn")
        self.save(pd.DataFrame(kinds), "c_cdbn_combinations")
        self.save(pd.concat(fits, ignore_index=True), "c_cdbn_gabor_fits")
        self.draw_cdbn(longest)
        self.untrained()

    @cached_property
    def belief_pictures(self) -> Array:
        """The pictures that convolutional networks learn from, and that untrained ones are prepared with."""
        return self.cut(64, self.scale.cdbn_patches, 1)

    def untrained(self) -> None:
        """The control of (c): the same networks before they learn, on the same tests; and what learning changes.

        The weights are the initial ones of the networks that `cdbn` trains, and the layers are prepared as learning
        prepares them, with the same pictures.
        """
        pictures, tests = torch.from_numpy(self.belief_pictures[:PREPARE]).to(self.device), self.belief_tests
        frames, pairs = [], []
        for chosen, setting in self.chosen_settings().items():
            for seed in range(self.scale.cdbn_seeds):
                network = belief_network(self.scale.maps, **setting, seed=seed).to(self.device)
                prepare(network, pictures)
                with self.timed("CDBN, untrained: scoring"):
                    run = {"setting": chosen, "seed": seed, "epochs": 0}
                    compare_layers(network, tests, run, frames, pairs)
        self.save(pd.concat(frames, ignore_index=True), "c_untrained_layers")
        self.save(pd.concat(pairs, ignore_index=True), "c_untrained")
        self.of_learning()

    def of_learning(self) -> None:
        """What learning changes in convolutional networks, and what layer 2 gains: from the saved tables."""
        trained = self.saved("c_cdbn")
        trained = trained[trained["epochs"] == self.scale.cdbn_epochs]
        untrained = self.saved("c_untrained")
        self.save(what_learning_changes(trained, untrained), "c_learned")
        gains = {"trained": trained, "untrained": untrained}
        named = [relative_gains(scores).assign(networks=networks) for networks, scores in gains.items()]
        self.save(pd.concat(named, ignore_index=True), "c_gains")

    def draw_cdbn(self, networks: dict[str, ConvolutionalDeepBeliefNetwork]) -> None:
        size = (8 * len(networks), 5)
        figure, axes = plt.subplots(2, len(networks), figsize=size, constrained_layout=True, height_ratios=(1, 2))
        for (chosen, network), column in zip(networks.items(), axes.reshape(2, -1).T, strict=True):
            for i, (axis, rows) in enumerate(zip(column, (2, 4), strict=True)):
                axis.imshow(tile(network.filters(i)[:, 0], rows, 12), cmap="gray")
                combined = " (linear combinations)" if i else ""
                axis.set_title(f"setting by {chosen}: layer {i + 1}{combined}", fontsize=9)
                axis.axis("off")
        self.draw(figure, "c_cdbn_filters")

    # -- (d) ----------------------------------------------------------------------------------------------

    def off_centre(self) -> None:
        """Is rotation off the centre translation in disguise?"""
        s = self.scale
        turning = {
            "rotation_2d": camera_video(48, s.frames, clips=s.clips, turn_deg=5.0, pictures=CAMERA_PICTURES)[
                "rotation_2d"
            ]
        }
        off = Held(NaturalVideo(turning, patch=PATCH, places=4))
        sparse = [n for n, t in zip(self.map_networks, self.map["target"], strict=True) if not np.isnan(t)]
        away = self.scored("d, off the centre", sparse, "positive", [off])["rotation_2d"].to_numpy()
        known = self.map[self.map["target"].notna()]
        pairs = {
            "rotation at the centre v rotation off the centre": (known["rotation_2d"], away),
            "rotation at the centre v translation": (known["rotation_2d"], known["translation"]),
            "rotation off the centre v translation": (away, known["translation"]),
        }
        rows = []
        for name, (x, y) in pairs.items():
            good = np.isfinite(x) & np.isfinite(y)
            rows.append({"pair": name, "spearman": stats.spearmanr(x[good], y[good])[0], "networks": int(good.sum())})
        self.save(pd.DataFrame(rows), "d_rotation_centre")

    def comparisons(self) -> None:
        """Which cells differ, what depth gains, and whether the tests rank networks alike: from the saved tables."""
        names = ("a_sparsity_map", "a_other_signs", "b_weight_decay_grid", "b_copies", "b_depth")
        scores, other_signs, grid, copies, by_depth = map(self.saved, names)
        with self.timed("comparisons"):
            self.save(compare_cells(scores, other_signs), "a_cells")
            self.save(sparsity_gains(scores, other_signs), "a_gains")
            self.save(what_learning_does(scores, other_signs, self.saved("ab_untrained")), "a_learned")
            left_out = left_out_choices(grid)
            self.save(left_out, "b_left_out")
            self.save(depth_gains(copies, left_out), "b_depth_gains")
            self.save(agreement(scores, other_signs, grid, self.scale.draws), "d_agreement")
        tests = tests_in(scores)
        self.draw_map(scores)
        self.draw_depth(by_depth, tests)
        self.draw_agreement(scores, other_signs, grid, tests)

    def draw_agreement(
        self, scores: pd.DataFrame, other_signs: pd.DataFrame, grid: pd.DataFrame, tests: list[str]
    ) -> None:
        figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), constrained_layout=True)
        for axis, (p, end) in zip(axes, BOTH_P, strict=True):
            names = [f"{name}{end}" for name in tests]
            every = with_means(tested_networks(scores, other_signs, grid, names, sparse_choose=False), names)
            gratings, video = every["mean of gratings"], every["mean of video"]
            for family in FAMILIES:
                mine = every["family"] == family
                axis.scatter(gratings[mine], video[mine], s=8, alpha=0.6, label=family)
            axis.set_xlabel(f"mean over tests of gratings, p = {p:g}")
            axis.set_ylabel(f"mean over tests of video, p = {p:g}")
            axis.set_title(f"{len(every)} networks, Spearman ρ = {stats.spearmanr(gratings, video)[0]:.2f}")
        axes[0].legend(frameon=False, fontsize=8)
        self.draw(figure, "d_agreement")

    # -- writing ------------------------------------------------------------------------------------------

    def save(self, table: pd.DataFrame, name: str) -> None:
        table.to_csv(self.out / "tables" / f"{name}.csv", index=False, float_format="%.4g")
        log.info("%s\n%s\n", name, table.head(24).to_string())

    def saved(self, name: str) -> pd.DataFrame:
        """A table of this run or of an earlier one, as it was written."""
        return pd.read_csv(self.out / "tables" / f"{name}.csv")

    def draw(self, figure: Any, name: str) -> None:
        figure.savefig(self.out / "figures" / f"{name}.png", dpi=110)
        plt.close(figure)

    def timed(self, what: str) -> Timed:
        return Timed(what, self.seconds, self.device)


class Timed:
    """Seconds of a block, added up by name."""

    def __init__(self, what: str, kept: dict[str, float], device: str) -> None:
        self.what, self.kept, self.device = what, kept, device

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()
        took = time.perf_counter() - self.start
        self.kept[self.what] = self.kept.get(self.what, 0.0) + took
        log.info("%s: %.1f s", self.what, took)


class Held(NaturalVideo):
    """A video test whose patches are made once: many networks are shown the same."""

    def __init__(self, video: NaturalVideo) -> None:
        super().__init__(video.clips, video.reach, video.patch, video.places, video.whitened)
        object.__setattr__(self, "held", np.concatenate(list(video.batches(1024))))

    def batches(self, size: int) -> Any:
        for start in range(0, len(self.held), size):  # type: ignore[attr-defined]
            yield self.held[start : start + size]  # type: ignore[attr-defined]

    def pictures(self, numbers: Any) -> Any:
        return self.held[numbers.ravel()]  # type: ignore[attr-defined]


class Arguments(nn.Module):
    """Stacked autoencoders of one shape side by side, whose units respond with the argument of their tanh.

    Scores do not change under an increasing function of responses, but tanh itself rounds to ±1 in single precision,
    and responses that differ would tie. Unit u of network i is unit i·U + u of a layer of U units.
    """

    def __init__(self, networks: list[StackedAutoencoder]) -> None:
        super().__init__()
        depth = len(networks[0].stack)
        self.stack = nn.ModuleList(nn.Identity() for _ in range(depth))
        self.layers = [f"stack.{i}" for i in range(depth)]
        for i in range(depth):
            for name in ("weight", "bias"):
                of_all = [n.stack[i].get_parameter(f"encoder.{name}").detach() for n in networks]
                self.register_buffer(f"{name}{i}", torch.stack(of_all))

    def forward(self, x: Tensor) -> Tensor:
        """Return the representations of the last layers, samples × networks × units."""
        h = x.flatten(1).unsqueeze(1)
        for i, argument in enumerate(self.stack):
            by_network = torch.matmul(h.movedim(1, 0), self.get_buffer(f"weight{i}").mT)
            h = argument(by_network.movedim(0, 1) + self.get_buffer(f"bias{i}")).tanh()
        return h


def allow_tf32(allowed: bool) -> None:
    """Whether a GPU may round the factors of products to the ten bits of TF32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def learn(networks: list[Any], pictures: Array, how: Greedy) -> None:
    """Train networks at once, with TF32 on a GPU; everything else is computed in full single precision."""
    allow_tf32(True)
    try:
        population(networks, pictures, how)
    finally:
        allow_tf32(False)


def without_mean(x: Tensor) -> Tensor:
    """Patches N×C×H×W, each without its mean, as networks have learned from them."""
    return x - x.mean((1, 2, 3), keepdim=True)


def with_choices(swept: pd.DataFrame) -> pd.DataFrame:
    """A sweep with a column for each way to choose a setting, true in one row."""
    swept = swept.assign(contours_combined=swept["oriented"] * swept["combining"])
    eligible = swept[swept["sparse"]] if swept["sparse"].any() else swept
    for name, column in CHOSEN_BY.items():
        swept[name] = swept.index == (eligible[column].idxmax() if eligible[column].notna().any() else -1)
    return swept


def belief_measure(test: InvarianceTest, **settings: Any) -> Invariance:
    """The test of both layers of a convolutional network, of each map the unit at the centre."""
    return Invariance(test, layers=LogOdds.layers, signs="positive", units="centre", top=TOP, **settings)


def belief_subject(network: ConvolutionalDeepBeliefNetwork) -> Subject:
    """A convolutional network that is shown what one unit of its second layer sees."""
    shape = (1, RECEPTIVE_FIELD, RECEPTIVE_FIELD)
    return Subject(LogOdds(network), "cdbn", preprocess=without_mean, example=shape)


def compare_layers(
    network: ConvolutionalDeepBeliefNetwork,
    tests: list[InvarianceTest],
    run: dict[str, Any],
    frames: list[pd.DataFrame],
    pairs: list[pd.DataFrame],
) -> None:
    """Append what every test says of both layers of one network, and of the difference between them."""
    for test, near_max in [(tests[0], 1), *((test, 0.1) for test in tests)]:
        found = belief_measure(test, near_max=near_max).measured(belief_subject(network))
        more = run | {"near_max": near_max}
        frames.append(found.table.drop(columns="pictures").assign(**more))
        apart = invariance_differences(found, found, *LogOdds.layers[::-1])
        pairs.append(apart.drop(columns=["layer", "other_layer"]).assign(**more))


def mean_scores(network: ConvolutionalDeepBeliefNetwork, tests: list[InvarianceTest]) -> dict[str, float]:
    """Inv_1 of both layers of a convolutional network, for every transformation."""
    scores = {}
    for test in tests:
        table = belief_measure(test, bootstrap=0)(belief_subject(network))
        for row in table.itertuples():
            scores[f"{row.transformation}_{row.order + 1}"] = row.mean_score
    return scores


def unit_counts(units: pd.DataFrame) -> pd.DataFrame:
    """Of each layer and transformation the number of networks, of their units, and of those of each status."""
    by_test = units.groupby(["layer", "transformation"], sort=False)
    counts = by_test.agg(networks=("network", "nunique"), units=("unit", "size"))
    for status in STATUSES:
        counts[status.replace(" ", "_")] = by_test["status"].agg(lambda found, status=status: (found == status).sum())
    return counts.reset_index()


def network_scores(units: pd.DataFrame) -> pd.DataFrame:
    """Inv_p of each network, layer and transformation, and their mean, at p = 0.2 and (names ending in _all) p = 1.

    Units without a score are not among those that a score is the mean of; how many there are in the test that has most
    is a column, and so is how many are tied.
    """
    groups = units.groupby(["network", "layer", "transformation"])["score"]
    by_p = []
    for p, suffix in BOTH_P:
        scores = groups.apply(lambda s, p=p: top_proportion_mean(s.to_numpy(), p)).unstack()
        scores["mean"] = scores.mean(axis=1, skipna=False)
        by_p.append(scores.add_suffix(suffix))
    kinds = units[["network", "layer", "transformation"]].assign(
        unscored=~units["status"].isin(SCORED), tied=units["status"] == "tied"
    )
    most = kinds.groupby(["network", "layer", "transformation"]).sum().groupby(["network", "layer"]).max()
    return by_p[0].join(by_p[1]).join(most[list(COUNTS)]).reset_index()


def alikeness(rows: Array) -> float:
    """The mean absolute correlation of two rows, such as the filters of units or their responses."""
    unit = rows - rows.mean(1, keepdims=True)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True).clip(1e-12)
    return float(np.abs(unit @ unit.T)[np.triu_indices(len(unit), 1)].mean())


def tile(filters: Any, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Filters beside each other, each scaled by its largest absolute weight."""
    images = filters.detach().cpu().numpy()[: rows * columns]
    images = images / np.abs(images).max((1, 2), keepdims=True).clip(1e-12)
    images = np.pad(images, ((0, rows * columns - len(images)), (1, 1), (1, 1)), constant_values=1)
    side = images.shape[1]
    return images.reshape(rows, columns, side, side).transpose(0, 2, 1, 3).reshape(rows * side, columns * side)


if __name__ == "__main__":
    main()
