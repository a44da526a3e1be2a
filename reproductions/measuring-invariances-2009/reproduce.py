"""Reproduce "Measuring invariances in deep networks" (Goodfellow, Le, Saxe, Lee, Ng 2009).

    python reproductions/measuring-invariances-2009/reproduce.py --device cuda --data data

Writes tables (CSV) and figures (PNG) beside this file, or under --out. The parts are ``networks`` (autoencoders),
``sweep`` (settings of the convolutional network, chosen on pictures that are in no test) and ``cdbn``, which takes the
best of them. The folder of data holds coil20/coil20_64.npz, natural_sequences and videos; without it there are
photographs alone. With --small it runs in about a minute on a CPU, for the tests: too small to learn from.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from material import CAMERA_PICTURES, footage, learned_and_validation
from scipy import stats
from torch import Tensor

from assay import AssayError, Invariance, Subject, invariance_differences, top_proportion_mean
from assay.core.determinism import seeded
from assay.measures.gabor_fit import fit_gabor
from assay.networks import ConvolutionalDeepBeliefNetwork, StackedAutoencoder, Together
from assay.networks.learners.cdbn import ConvolutionalRBM
from assay.stats.bootstrap import percentile_interval, picks
from assay.stimuli import (
    Gratings,
    InvarianceTest,
    NaturalVideo,
    camera_video,
    load_coil20,
    natural_patches,
    turning_objects,
)
from assay.training import Greedy, population

mpl.use("Agg")
from matplotlib import pyplot as plt

log = logging.getLogger("reproduce")
Array = np.ndarray[Any, Any]

PATCH, RECEPTIVE_FIELD = 14, 31
TOP, ALL = 0.2, "_all"  # the proportion p of units, and the end of the names of columns at p = 1
AMPLITUDE = 2**0.5 / 3  # the contrast of whitened patches: a root mean square of 1/3
TARGETS = (-0.97, -0.95, -0.9, -0.8, -0.7, -0.5, -0.3, 0.0)
DECAYS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SPARSITY = 10.0
VIDEO = ("translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered", "footage")
PARTS = ("networks", "sweep", "cdbn")
SWEPT = ("learning_rate", "sigma", "target_1", "target_2", "decay_1")
USUAL = {"learning_rate": 5e-3, "sigma": 0.1, "target_1": 0.003, "target_2": 0.02, "decay_1": 0.003}
DECAY_2 = 1e-6
DIVERGED = {"diverged": True, "criterion": np.nan, "sparse": False}
SAMPLES = 16  # of detection units, for their mean


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    patches: int = 100_000
    epochs: int = 60
    batch: int = 1000
    hidden: int = 100
    targets: tuple[float, ...] = TARGETS
    decays: tuple[float, ...] = DECAYS
    map_seeds: int = 3
    depth_epochs: int = 40
    copies: int = 100
    clips: int = 14
    objects: int = 36
    frames: int = 100
    cdbn_patches: int = 4000
    cdbn_epochs: int = 60
    cdbn_longer: int = 120
    cdbn_seeds: int = 3
    maps: tuple[int, int] = (24, 100)
    sweep_patches: int = 1000
    sweep_epochs: int = 12
    sweep_held: int = 200
    learning_rates: tuple[float, ...] = (2e-3, 5e-3, 1e-2)
    sigmas: tuple[float, ...] = (0.07, 0.1, 0.2)
    targets_1: tuple[float, ...] = (0.003, 0.01)
    targets_2: tuple[float, ...] = (0.01, 0.03)
    decays_1: tuple[float, ...] = (0.001, 0.01)
    orientations: int = 20
    phases: int = 40
    fitted_filters: int = 10
    processes: int = -1
    draws: int = 500


SMALL = Scale(
    patches=2000, epochs=2, batch=200, hidden=10, targets=(-0.9, 0.0), decays=(0.0, 0.03), map_seeds=1, depth_epochs=1,
    copies=3, clips=1, objects=3, frames=40, cdbn_patches=20, cdbn_epochs=1, cdbn_longer=2, cdbn_seeds=1, maps=(6, 8),
    sweep_patches=20, sweep_epochs=1, sweep_held=4, learning_rates=(5e-3,), sigmas=(0.1, 0.2), targets_1=(0.005,),
    targets_2=(0.02,), decays_1=(0.003,), orientations=5, phases=8, fitted_filters=1, processes=1, draws=50,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--data", type=Path, help="folder of coil20, natural_sequences and videos; without it none")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
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

    def run(self, parts: tuple[str, ...] = PARTS) -> None:
        with self.timed("pictures"):
            self.learned, self.validation = learned_and_validation(self.data)
        if "networks" in parts:
            with self.timed("stimuli"):
                self.patches = self.cut(PATCH, self.scale.patches, 0)
                self.tests = self.make_tests(PATCH, 48)
            self.sparsity_map()
            self.depth()
            self.agreement()
        if "sweep" in parts:
            self.sweep()
        if "cdbn" in parts:
            self.cdbn()
        where = torch.cuda.get_device_name() if self.device.startswith("cuda") else "CPU"
        rows = [{"stage": k, "seconds": round(v, 1), "where": where} for k, v in self.seconds.items()]
        self.save(pd.DataFrame(rows), "seconds")

    def cut(self, size: int, count: int, seed: int) -> Array:
        """Patches to learn from, without their means."""
        return natural_patches(size, count, seed, pictures=self.learned, centred=True)

    # -- tests ------------------------------------------------------------------------------------------

    def make_tests(self, patch: int, frame: int) -> list[InvarianceTest]:
        s = self.scale
        moving = camera_video(frame, s.frames, clips=s.clips, speed=1.5, turn_deg=5.0, pictures=CAMERA_PICTURES)
        clips = dict(moving)
        if self.data is not None:
            clips["rotation_3d"] = load_coil20(self.data / "coil20" / "coil20_64.npz")
        clips["rotation_3d_rendered"] = turning_objects(frame, s.frames, count=s.objects, turn_deg=5.0)
        parts = list(NaturalVideo(clips, patch=patch).parts())
        if self.data is not None:
            parts.append(NaturalVideo({"footage": footage(self.data, s.frames)}, patch=patch, places=9))
        gratings = Gratings(patch, orientations=s.orientations, phases=s.phases, mean=0.0, amplitude=AMPLITUDE)
        return [gratings, *map(Held, parts)]

    def per_unit(self, networks: list[StackedAutoencoder], signs: Any, tests: list[Any]) -> pd.DataFrame:
        """Scores of all units of all networks, every network's in one pass."""
        shape = (1, PATCH, PATCH)
        subject = Subject(Together(networks), "together", preprocess=without_mean, example=shape, device=self.device)
        layers = [f"stack.{i}" for i in range(len(networks[0].stack))]
        frames = []
        for test in tests:
            found = Invariance(test, layers=layers, signs=signs, batch_size=1024).per_unit(subject)
            found["network"], found["unit"] = found["unit"] // self.scale.hidden, found["unit"] % self.scale.hidden
            frames.append(found)
        return pd.concat(frames, ignore_index=True)

    # -- (a) ----------------------------------------------------------------------------------------------

    def sparsity_map(self) -> None:
        """One layer, target mean activation × weight decay; beside it networks without sparsity (their Fig. 3)."""
        s = self.scale
        grid = [(d, t, seed) for d, t, seed in itertools.product(s.decays, s.targets, range(s.map_seeds))]
        sparse = [
            StackedAutoencoder(PATCH**2, (s.hidden,), d, SPARSITY, t, seed=seed).to(self.device) for d, t, seed in grid
        ]
        plain_grid = [(d, np.nan, seed) for d, seed in itertools.product(s.decays, range(s.map_seeds))]
        plain = [StackedAutoencoder(PATCH**2, (s.hidden,), d, seed=seed).to(self.device) for d, _, seed in plain_grid]
        with self.timed("map: training"):
            population([*sparse, *plain], self.patches, Greedy(s.epochs, s.batch, 2e-3))
        with self.timed("map: scoring"):
            tables = []
            for networks, cells, signs in ((sparse, grid, "positive"), (plain, plain_grid, "choose")):
                scores = network_scores(self.per_unit(networks, signs, self.tests))
                labels = pd.DataFrame(cells, columns=["weight_decay", "target", "seed"])
                labels["network"] = range(len(cells))
                tables.append(labels.merge(scores.drop(columns="layer"), on="network"))
        self.map = pd.concat(tables, ignore_index=True).drop(columns="network")
        self.map_networks = [*sparse, *plain]
        with self.timed("map: Gabor fits"):
            self.describe_filters()
        self.save(self.map, "a_sparsity_map")
        self.draw_map()

    def describe_filters(self) -> None:
        """Of every network: median r² of Gabor fits to some of its filters, and how alike all of them are."""
        rows, some = [], []
        for network in self.map_networks:
            filters = network.filters(0).cpu().numpy()
            unit = filters - filters.mean(1, keepdims=True)
            unit /= np.linalg.norm(unit, axis=1, keepdims=True).clip(1e-12)
            rows.append({"alikeness": np.abs(unit @ unit.T)[np.triu_indices(len(unit), 1)].mean()})
            some.append(filters[: self.scale.fitted_filters].reshape(-1, PATCH, PATCH))
        fits = Parallel(n_jobs=self.scale.processes)(delayed(fit_gabor)(filters) for filters in some)
        r2 = [fit["r2"].median() for fit in fits]
        self.map = self.map.join(pd.DataFrame(rows).assign(gabor_r2=r2))

    def draw_map(self) -> None:
        sparse = self.map[self.map["target"].notna()]
        figure = plt.figure(figsize=(16, 8), constrained_layout=True)
        upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.1))
        titles = {"mean": "mean over tests, p = 0.2", "mean_all": "mean over tests, p = 1", "gabor_r2": "Gabor r²"}
        for axis, (column, title) in zip(upper.subplots(1, 3), titles.items(), strict=True):
            means = sparse.groupby(["target", "weight_decay"])[column].mean().unstack()
            image = axis.imshow(means, cmap="viridis", aspect="auto")
            axis.set_xticks(range(len(means.columns)), [f"{d:g}" for d in means.columns])
            axis.set_yticks(range(len(means.index)), [f"{t:g}" for t in means.index])
            axis.set_xlabel("weight decay λ")
            axis.set_ylabel("target mean activation ρ")
            axis.set_title(title)
            for (i, j), value in np.ndenumerate(means.to_numpy()):
                shown = f"{value:.2f}" if column == "gabor_r2" else f"{value:.0f}"
                dark = value < np.nanmean(means.to_numpy())
                axis.text(j, i, shown, ha="center", va="center", color="white" if dark else "black", fontsize=8)
            upper.colorbar(image, ax=axis)
        best = int(sparse["mean"].idxmax())
        chosen = {
            "best": best,
            "unregularised": int(self.map[self.map["target"].isna() & (self.map["weight_decay"] == 0)].index[0]),
            "most alike (degenerate)": int(self.map["alikeness"].idxmax()),
        }
        rows = lower.subplots(3, 1)
        for axis, (name, which) in zip(rows, chosen.items(), strict=True):
            entry = self.map.loc[which]
            axis.imshow(tile(self.map_networks[which].filters(0).reshape(-1, PATCH, PATCH), 2, 30), cmap="gray")
            settings = f"λ = {entry['weight_decay']:g}" + (
                "" if np.isnan(entry["target"]) else f", ρ = {entry['target']:g}"
            )
            axis.set_title(
                f"{name} ({settings}): score {entry['mean']:.1f} (p = 1: {entry['mean_all']:.1f}), "
                f"Gabor r² {entry['gabor_r2']:.2f}",
                fontsize=9,
            )
            axis.axis("off")
        self.draw(figure, "a_sparsity_map")
        fits = fit_gabor(self.map_networks[best].filters(0).reshape(-1, PATCH, PATCH))
        self.save(fits, "a_best_network_gabor_fits")

    # -- (b) ----------------------------------------------------------------------------------------------

    def depth(self) -> None:
        """Three layers, weight decay alone: all combinations, then copies of the best at each depth (their Fig. 4)."""
        s = self.scale
        grid = list(itertools.product(s.decays, repeat=3))
        networks = [StackedAutoencoder(PATCH**2, (s.hidden,) * 3, d, seed=0).to(self.device) for d in grid]
        how = Greedy(s.depth_epochs, s.batch, 2e-3)
        with self.timed(f"grid of {len(grid)} networks: training"):
            population(networks, self.patches, how)
        with self.timed(f"grid of {len(grid)} networks: scoring"):
            scores = network_scores(self.per_unit(networks, "choose", self.tests))
        labels = pd.DataFrame(grid, columns=["decay_1", "decay_2", "decay_3"])
        labels["network"] = range(len(grid))
        self.grid = labels.merge(scores, on="network").drop(columns="network")
        self.save(self.grid, "b_weight_decay_grid")
        copies = []
        for depth in range(1, 4):
            mine = self.grid[self.grid["layer"] == f"stack.{depth - 1}"]
            decays = tuple(mine.loc[mine["mean"].idxmax(), ["decay_1", "decay_2", "decay_3"]].astype(float))[:depth]
            made = [StackedAutoencoder(PATCH**2, (s.hidden,) * depth, decays, seed=1 + i) for i in range(s.copies)]
            with self.timed(f"{s.copies} copies of depth {depth}: training"):
                population([n.to(self.device) for n in made], self.patches, how)
            found = network_scores(self.per_unit(made, "choose", self.tests))
            found = found[found["layer"] == f"stack.{depth - 1}"].drop(columns="layer")
            found.insert(0, "depth", depth)
            found.insert(1, "weight_decay", str(decays))
            copies.append(found)
            if depth == 3:
                self.draw_filters(made[0])
        self.copies = pd.concat(copies, ignore_index=True)
        self.save(self.copies, "b_copies")
        names = [c for c in self.copies.columns if c not in ("depth", "weight_decay", "network")]
        long = self.copies.melt(["depth", "weight_decay"], names, "test", "score")
        rows = []
        for (depth, decays, test), group in long.groupby(["depth", "weight_decay", "test"]):
            mean, low, high = mean_interval(group["score"].to_numpy())
            rows.append({"depth": depth, "weight_decay": decays, "test": test, "score": mean, "low": low, "high": high})
        self.by_depth = pd.DataFrame(rows)
        self.save(self.by_depth, "b_depth")
        self.draw_depth([name for name in names if not name.endswith(ALL) or name == f"mean{ALL}"])

    def draw_depth(self, names: list[str]) -> None:
        figure, axis = plt.subplots(figsize=(9, 4.2), constrained_layout=True)
        for i, depth in enumerate((1, 2, 3)):
            mine = self.by_depth[self.by_depth["depth"] == depth].set_index("test").loc[names]
            place = np.arange(len(names)) + (i - 1) * 0.27
            error = np.stack([mine["score"] - mine["low"], mine["high"] - mine["score"]])
            axis.bar(place, mine["score"], 0.25, yerr=error, capsize=2, label=f"depth {depth}")
        axis.set_xticks(range(len(names)), names, rotation=20, ha="right")
        axis.set_ylabel("invariance score (95 % interval over copies)")
        axis.legend(frameon=False)
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
        """Settings of the convolutional network by how well it reconstructs pictures that are in no test.

        A setting is eligible if units are at most twice as active as they should be in both layers: among those, the
        best explains most of the variance of both layers' inputs, on the average.
        """
        s = self.scale
        pictures = self.cut(64, s.sweep_patches, 1)
        held = natural_patches(64, s.sweep_held, 2, pictures=self.validation, centred=True)
        shown = torch.from_numpy(held).to(self.device)
        rows = []
        for rate in s.learning_rates:
            grid = itertools.product([rate], s.sigmas, s.targets_1, s.targets_2, s.decays_1)
            settings = [dict(zip(SWEPT, cell, strict=True)) for cell in grid]
            how = Greedy(s.sweep_epochs, 50, rate)
            with self.timed(f"sweep: training {len(settings)} networks at a time"):
                networks = self.trained(settings, pictures, how)
            for setting, network in zip(settings, networks, strict=True):
                rows.append(setting | (DIVERGED if network is None else reconstruction(network, shown)))
        swept = pd.DataFrame(rows).assign(patches=s.sweep_patches, epochs=s.sweep_epochs)
        eligible = swept[swept["sparse"]] if swept["sparse"].any() else swept
        swept["chosen"] = swept.index == (eligible["criterion"].idxmax() if eligible["criterion"].notna().any() else -1)
        self.save(swept.sort_values("criterion", ascending=False), "c_cdbn_sweep")

    def trained(
        self, settings: list[dict[str, float]], pictures: Array, how: Greedy
    ) -> list[ConvolutionalDeepBeliefNetwork | None]:
        """One network for each setting, all trained at once; None for those whose learning diverges."""
        networks = [belief_network(self.scale.maps, **setting).to(self.device) for setting in settings]
        try:
            population(networks, pictures, how)
        except AssayError:
            if len(settings) == 1:
                return [None]
            half = len(settings) // 2
            return [
                network for some in (settings[:half], settings[half:]) for network in self.trained(some, pictures, how)
            ]
        return list(networks)

    def chosen_setting(self) -> dict[str, float]:
        """The setting that the sweep chose, in this run or an earlier one; the usual one where there was none."""
        path = self.out / "tables" / "c_cdbn_sweep.csv"
        swept = pd.read_csv(path) if path.exists() else pd.DataFrame({"chosen": []})
        for _, row in swept[swept["chosen"].astype(bool)].iterrows():
            return {name: float(row[name]) for name in SWEPT}
        return USUAL

    def cdbn(self) -> None:
        """Layer 1 against layer 2 of a convolutional deep belief network, every test (their Table 1)."""
        s = self.scale
        setting = self.chosen_setting()
        log.info("CDBN: %s", setting)
        with self.timed("CDBN: stimuli"):
            pictures = self.cut(64, s.cdbn_patches, 1)
            tests = self.make_tests(RECEPTIVE_FIELD, 64)
        frames, pairs = [], []
        made: list[tuple[int, int, ConvolutionalDeepBeliefNetwork]] = []
        for epochs, count in ((s.cdbn_epochs, s.cdbn_seeds), (s.cdbn_longer, 1)):
            networks = [belief_network(s.maps, **setting, seed=seed).to(self.device) for seed in range(count)]
            with self.timed(f"CDBN: training, {epochs} epochs, {count} at a time"):
                population(networks, pictures, Greedy(epochs, 50, setting["learning_rate"]))
            made += [(seed, epochs, network) for seed, network in enumerate(networks)]
        for seed, epochs, network in made:
            shape = (1, RECEPTIVE_FIELD, RECEPTIVE_FIELD)
            subject = Subject(network, "cdbn", preprocess=without_mean, example=shape)
            with self.timed("CDBN: scoring"):
                for test, near_max in [(tests[0], 1), *((test, 0.1) for test in tests)]:
                    measure = Invariance(
                        test, layers=network.layers, signs="positive", units="centre", top=TOP, near_max=near_max
                    )
                    found = measure.measured(subject)
                    run = {"seed": seed, "epochs": epochs, "near_max": near_max}
                    frames.append(found.table.drop(columns="pictures").assign(**run))
                    apart = invariance_differences(found, found, "stack.1", "stack.0")
                    pairs.append(apart.drop(columns=["layer", "other_layer"]).assign(**run))
            if epochs == s.cdbn_longer:
                self.draw_cdbn(network)
        self.save(pd.concat(frames, ignore_index=True), "c_cdbn_layers")
        self.save(pd.concat(pairs, ignore_index=True), "c_cdbn")

    def draw_cdbn(self, network: ConvolutionalDeepBeliefNetwork) -> None:
        figure, axes = plt.subplots(2, 1, figsize=(8, 5), constrained_layout=True, height_ratios=(1, 2))
        for i, (axis, rows, columns) in enumerate(zip(axes, (2, 4), (12, 12), strict=True)):
            axis.imshow(tile(network.filters(i)[:, 0], rows, columns), cmap="gray")
            axis.set_title(f"layer {i + 1}" + (" (linear combinations)" if i else ""), fontsize=9)
            axis.axis("off")
        self.draw(figure, "c_cdbn_filters")
        self.save(fit_gabor(network.filters(0)[:, 0]), "c_cdbn_gabor_fits")

    # -- (d) ----------------------------------------------------------------------------------------------

    def agreement(self) -> None:
        """Do the tests rank networks alike? Is rotation off the centre translation in disguise?"""
        s = self.scale
        names = [c for c in self.map.columns if c in ("frequency", "orientation", "phase", *VIDEO)]
        rows = []
        rng = np.random.default_rng(0)
        for p, suffix in ((1.0, ALL), (TOP, "")):
            tests = [f"{name}{suffix}" for name in names]
            networks = pd.concat([self.map[tests], self.grid[tests]], ignore_index=True).dropna().drop_duplicates()
            for a, b in itertools.combinations(tests, 2):
                x, y = networks[a].to_numpy(), networks[b].to_numpy()
                draws = np.array([stats.spearmanr(x[i], y[i])[0] for i in picks(len(x), s.draws, rng)])
                low, high = map(float, percentile_interval(draws[~np.isnan(draws)]))
                pair = {"p": p, "test": a.removesuffix(ALL), "other": b.removesuffix(ALL)}
                found = {"spearman": stats.spearmanr(x, y)[0], "low": low, "high": high, "networks": len(networks)}
                rows.append(pair | found)
        self.save(pd.DataFrame(rows), "d_agreement")
        turning = {
            "rotation_2d": camera_video(48, s.frames, clips=s.clips, turn_deg=5.0, pictures=CAMERA_PICTURES)[
                "rotation_2d"
            ]
        }
        off = Held(NaturalVideo(turning, patch=PATCH, places=4))
        sparse = [n for n, t in zip(self.map_networks, self.map["target"], strict=True) if not np.isnan(t)]
        away = network_scores(self.per_unit(sparse, "positive", [off]))["rotation_2d"].to_numpy()
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
        figure, axis = plt.subplots(figsize=(5, 4.2), constrained_layout=True)
        gratings = networks[["frequency", "orientation", "phase"]].mean(axis=1)
        video = networks[[t for t in tests if t in VIDEO]].mean(axis=1)
        axis.scatter(gratings, video, s=8, alpha=0.6)
        axis.set_xlabel("grating test (mean of 3)")
        axis.set_ylabel("video test (mean)")
        axis.set_title(f"{len(networks)} networks, Spearman ρ = {stats.spearmanr(gratings, video)[0]:.2f}")
        self.draw(figure, "d_agreement")

    # -- writing ------------------------------------------------------------------------------------------

    def save(self, table: pd.DataFrame, name: str) -> None:
        table.to_csv(self.out / "tables" / f"{name}.csv", index=False, float_format="%.4g")
        log.info("%s\n%s\n", name, table.head(24).to_string())

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


def without_mean(x: Tensor) -> Tensor:
    """Patches N×C×H×W, each without its mean, as networks have learned from them."""
    return x - x.mean((1, 2, 3), keepdim=True)


def belief_network(
    maps: tuple[int, int],
    sigma: float,
    target_1: float,
    target_2: float,
    decay_1: float,
    learning_rate: float = 0.0,
    seed: int = 0,
) -> ConvolutionalDeepBeliefNetwork:
    """A convolutional deep belief network of these settings; the learning rate is not its own."""
    return ConvolutionalDeepBeliefNetwork(
        maps=maps, sigma=sigma, sparsity=5.0, target=(target_1, target_2), weight_decay=(decay_1, DECAY_2), seed=seed
    )


@torch.no_grad()
def reconstruction(network: ConvolutionalDeepBeliefNetwork, pictures: Tensor) -> dict[str, Any]:
    """Of each layer how much of the variance of its input its units tell, and how active they are."""
    found: dict[str, Any] = {"diverged": False}
    v, sparse = pictures, True
    for number, layer in enumerate(network.stack, start=1):
        assert isinstance(layer, ConvolutionalRBM)
        seen = layer.fitted(v)
        with seeded(0, seen.device):
            h = torch.stack([layer.sample(seen) for _ in range(SAMPLES)]).mean(0)  # about P(h = 1 | v)
        error = (seen - layer.reconstruct(h)).square().mean()
        active = float(layer.detection(v)[..., :-1].mean())
        found[f"explained_{number}"] = float(1 - error / seen.var())
        found[f"active_{number}"] = active
        sparse &= active <= 2 * float(layer.target)
        v = layer(v)
    found["criterion"] = (found["explained_1"] + found["explained_2"]) / 2
    return found | {"sparse": sparse}


def network_scores(units: pd.DataFrame) -> pd.DataFrame:
    """Inv_p of each network, layer and transformation, and their mean, at p = 0.2 and (names ending in _all) p = 1."""
    groups = units.groupby(["network", "layer", "transformation"])["score"]
    by_p = []
    for p, suffix in ((TOP, ""), (1.0, ALL)):
        scores = groups.apply(lambda s, p=p: top_proportion_mean(s.to_numpy(), p)).unstack()
        scores["mean"] = scores.mean(axis=1, skipna=False)
        by_p.append(scores.add_suffix(suffix))
    return by_p[0].join(by_p[1]).reset_index()


def mean_interval(values: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Mean and its 95 % interval (Student's t)."""
    mean, half = values.mean(), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(mean), float(mean - half), float(mean + half)


def tile(filters: Any, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Filters beside each other, each scaled by its largest absolute weight."""
    images = filters.detach().cpu().numpy()[: rows * columns]
    images = images / np.abs(images).max((1, 2), keepdims=True).clip(1e-12)
    images = np.pad(images, ((0, rows * columns - len(images)), (1, 1), (1, 1)), constant_values=1)
    side = images.shape[1]
    return images.reshape(rows, columns, side, side).transpose(0, 2, 1, 3).reshape(rows * side, columns * side)


if __name__ == "__main__":
    main()
