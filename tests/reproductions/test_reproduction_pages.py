"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"
GRATINGS = ["frequency", "orientation", "phase"]
VIDEO = ["translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered", "turned_by_hand", "footage"]
TESTS = [*GRATINGS, *VIDEO]
PAGE = " ".join((INVARIANCES / "README.md").read_text().split())
TABLE = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
MAP, OTHER_SIGNS = TABLE["a_sparsity_map"], TABLE["a_other_signs"]
EDGES, BROADER, COPIES, SMOOTHER = (0.1, -0.8), (0.3, -0.5), (0.3, -0.8), (1.0, -0.9)
CELL = ["weight_decay", "target"]


def sparse(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["target"].notna()]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["target"].isna()]


CELLS = sparse(MAP).drop(columns="seed").groupby(CELL).mean()
PLAIN = plain(MAP).groupby("weight_decay")[["mean", "mean_all", "gabor_r2", "alikeness"]].mean()
DEGENERATE = CELLS.index[CELLS["alikeness"] > 0.9]


def compared(signs: str, p: float, without: str = "nothing") -> pd.DataFrame:
    """The cells of (a), compared by the method of Games and Howell, by cell, the highest first."""
    table = TABLE["a_cells"]
    chosen = table[(table["signs"] == signs) & (table["p"] == p) & (table["without"] == without)]
    return chosen.sort_values("mean", ascending=False).set_index(CELL)


def said(claims: list[str]) -> None:
    for claim in claims:
        assert claim.replace("-", "−") in PAGE.replace("-", "−"), claim


def test_what_the_tables_cannot_show_is_as_the_page_says(monkeypatch):
    monkeypatch.syspath_prepend(INVARIANCES)
    material = importlib.import_module("material")
    from assay.stimuli import camera_video, turning_objects
    from assay.stimuli.pictures import photographs

    learned = set(material.still_pictures(None)) - set(material.VALIDATION)
    names = {picture.tobytes(): name for name, picture in photographs(256, "grey")}
    worn = [names[clip.texture.tobytes()] for clip in turning_objects(48, 1, count=36)]
    assert {name for name in worn if name in learned} == {"coffee", "grass", "gravel"}
    assert {name for name in worn if name in material.VALIDATION} == {"rocket"}
    camera = {clip.scene for clip in camera_video(48, 1, clips=14, pictures=material.CAMERA_PICTURES)["translation"]}
    counts = [sum(name in those for name in worn) for those in (learned, material.VALIDATION, camera)]
    said([
        "{} of the 36 rendered objects wear photographs that networks learned from (coffee, grass, gravel), {} wear "
        "one by which settings of (c) were chosen (rocket), and the other {} wear the five over which".format(*counts),
        f"The {14 * len(camera)} clips of translation and the {14 * len(camera)} of 2-D rotation show five photographs",
        f"rendered objects have {'nine' if len(set(worn)) == 9 else len(set(worn))} textures",
    ])  # fmt: skip
    assert len(camera) == 5
    sys.modules.pop("material")
    for name in ("c_cdbn_layers", "c_untrained_layers"):
        assert (TABLE[name]["ok"] + TABLE[name]["tied"] == TABLE[name]["units"]).all()


def test_cells_are_compared_by_the_method_of_games_and_howell():
    groups = {key: of["mean_all"].to_numpy() for key, of in sparse(MAP).groupby(CELL)}
    a, b = groups[COPIES], groups[(0.3, -0.7)]
    error = a.var(ddof=1) / 3 + b.var(ddof=1) / 3
    df = error**2 / ((a.var(ddof=1) / 3) ** 2 / 2 + (b.var(ddof=1) / 3) ** 2 / 2)
    half = stats.studentized_range.ppf(0.95, len(groups) + 7, df) * np.sqrt(error / 2)
    row = compared("paper", 1.0).loc[(0.3, -0.7)]
    apart = a.mean() - b.mean()
    assert row[["below_best", "low", "high"]].tolist() == pytest.approx([apart, apart - half, apart + half], rel=0.01)


def test_the_sparsity_map_is_as_the_page_says():
    cells, of_all = compared("paper", 0.2), compared("paper", 1.0)
    of_sparse = cells[cells.index.get_level_values("target").notna()]
    alike = of_sparse[of_sparse["low"] <= 0]
    assert of_sparse.index[0] == EDGES and alike.index[:8].equals(of_sparse.index[1:9])
    assert len(alike) == 10 and alike["mean"].iloc[8:].max() < 40 and COPIES in alike.index
    first, others = (CELLS.loc[of_sparse.index[part], "gabor_r2"] for part in (slice(1, 4), slice(4, 9)))
    lowest = CELLS.loc[of_sparse.index[-8:], "alikeness"]
    rank, rank_all = (MAP[[c, "gabor_r2"]].corr("spearman").iloc[0, 1] for c in ("mean", "mean_all"))
    of_sparse_all = of_all[of_all.index.get_level_values("target").notna()]
    following = of_sparse_all.iloc[1]
    assert of_sparse_all.index[0] == COPIES and (of_all["low"].dropna() <= 0).all()
    below = of_all.loc[DEGENERATE, ["below_unregularised", "high_unregularised"]]
    assert (below["below_unregularised"] < 0).all() and (cells.loc[DEGENERATE, "low"] > 0).sum() == 13

    def row(name: str, of: pd.Series) -> str:
        mean, all_units, r2, alikeness = of[["mean", "mean_all", "gabor_r2", "alikeness"]]
        return f"{name}) | {mean:.1f} | {all_units:.1f} | {r2:.2f} | {alikeness:.2f} |"

    said([
        f"{len(sparse(MAP))} sparse and {len(plain(MAP))} plain", f"all pairs of the {len(cells)} cells at once",
        *(row(f"(λ = {cell[0]:g}, ρ = {cell[1]:g}", CELLS.loc[cell]) for cell in (EDGES, BROADER, COPIES, SMOOTHER)),
        *(row(f"(λ = {decay:g}, no sparsity", PLAIN.loc[decay]) for decay in (0.3, 1.0, 0.0)),
        f"have r² {first.min():.2f} to {first.max():.2f} and the others {others.min():.2f} to {others.max():.2f}",
        f"over all 100 of the best network {TABLE['a_best_network_gabor_fits']['r2'].median():.2f}",
        f"rank correlation of {rank:.2f} over all {len(MAP)} networks, at p = 1 of {rank_all:.2f}.",
        f"an alikeness of {lowest.min():.2f} to {lowest.max():.2f}",
        f"by {following['below_best']:.1f} ({following['low']:.1f} to {following['high']:.1f}).",
        f"unregularised networks ({PLAIN.loc[0.0, 'mean_all']:.1f}) are below all {len(below)} degenerate cells, "
        f"clearly below {(below['high_unregularised'] < 0).sum()}.",
    ])  # fmt: skip


def test_what_the_cup_does_to_the_best_at_p_1_is_as_the_page_says():
    networks = sparse(MAP)[(sparse(MAP)["weight_decay"] == COPIES[0]) & (sparse(MAP)["target"] == COPIES[1])]
    by_cup, by_mean = networks["turned_by_hand_all"], networks["mean_all"]
    no_cup, neither = (
        table[table.index.get_level_values("target").notna()]
        for table in (compared("paper", 1.0, without) for without in (VIDEO[4], " and ".join(VIDEO[4:])))
    )
    three = no_cup.iloc[:3]
    assert set(three.index) <= set(DEGENERATE) - {COPIES} and no_cup.loc[BROADER, "low"] < 0
    assert neither.index[0] == BROADER
    said([
        "have {:.1f}, {:.1f} and {:.1f}; its mean".format(*by_mean),
        "mostly by the cup ({:.1f}, {:.1f}, {:.1f})".format(*by_cup),
        f"copies lead ({three['mean'].iloc[0]:.1f} to {three['mean'].iloc[2]:.1f}), not clearly above broader edge "
        f"detectors ({no_cup.loc[BROADER, 'mean']:.1f})",
        f"broader edge detectors do ({neither['mean'].iloc[0]:.1f}), and {(neither['low'] <= 0).sum()} sparse cells",
    ])  # fmt: skip


def test_what_choosing_signs_does_is_as_the_page_says():
    assert MAP[[*CELL, "seed"]].equals(OTHER_SIGNS[[*CELL, "seed"]])
    chosen, fixed = (plain(table).groupby("weight_decay")["mean"].mean() for table in (MAP, OTHER_SIGNS))
    all_choose = sparse(OTHER_SIGNS).groupby(CELL)["mean"].mean()
    assert (all_choose >= CELLS["mean"]).all() and (chosen >= fixed).all()  # a choice never lowers a score
    rules = {
        "paper": ("the paper's rule", CELLS["mean"], chosen),
        "fixed": ("all fixed", CELLS["mean"], fixed),
        "chosen": ("all chosen", all_choose, chosen),
    }
    below_best, above_degenerate = [], []
    for signs, (name, with_target, without_target) in rules.items():
        of = compared(signs, 0.2).loc[DEGENERATE]
        clearly = (of["low_unregularised"] > 0).sum(), (of["high_unregularised"] < 0).sum()
        degenerate = with_target[DEGENERATE].mean()
        unregularised = compared(signs, 0.2).loc[[(0.0, np.nan)]].iloc[0]
        assert unregularised["low"] > 0
        below_best.append(unregularised["below_best"])
        above_degenerate.append(clearly[0])
        assert degenerate < without_target[0.0] < with_target.max() and with_target.idxmax() == EDGES
        said([
            f"| {name} | {with_target.max():.1f} | {without_target.max():.1f} | {without_target[0.0]:.1f} | "
            f"{degenerate:.1f} | {clearly[0]}, {clearly[1]} |"
        ])  # fmt: skip
    said([
        f"clearly below the best, by {min(below_best):.1f} to {max(below_best):.1f}, and clearly above "
        "{}, {} and {} of the 14".format(*above_degenerate)
    ])  # fmt: skip
    gains = []
    for signs in ("fixed", "chosen"):
        cells = compared(signs, 0.2)
        best = cells[cells.index.get_level_values("target").isna()].iloc[0]
        gains.append(f"by {best['below_best']:.1f} ({best['low']:.1f} to {best['high']:.1f})")
    said([f"{gains[0]} when the signs of all units are fixed, and {gains[1]} when all are chosen"])


def test_depth_is_as_the_page_says():
    depth = TABLE["b_depth"].set_index(["chosen_by", "test", "depth"])
    grid, left_out = TABLE["b_weight_decay_grid"], TABLE["b_left_out"]
    gains = TABLE["b_depth_gains"].set_index(["p", "judged by", "from", "to"])
    same, other = "the tests that chose", "a test that did not choose"

    def three(test: str, by: str = "mean") -> str:
        return ", ".join(f"{depth.loc[(by, test, d), 'score']:.1f}" for d in (1, 2, 3))

    def row(name: str, by: str) -> str:
        cells = ("{:.1f} ({:.1f}–{:.1f})".format(*depth.loc[(by, by, d), ["score", "low", "high"]]) for d in (1, 2, 3))
        return f"| {name}, copies | " + " | ".join(cells) + " |"

    def alike(by: str) -> str:
        return " | ".join(f"{depth.loc[(by, 'alikeness of responses', d), 'score']:.2f}" for d in (1, 2, 3))

    def blind(p: float) -> str:
        means = left_out[left_out["p"] == p].groupby("depth")["score"].mean()
        return f"| p = {p:g}, chosen without the test | " + " | ".join(f"{m:.1f}" for m in means) + " |"

    def gain(p: float, judged: str, steps: tuple[int, int] = (1, 3), sign: str = "") -> str:
        mean, low, high = gains.loc[(p, judged, *steps), ["gain", "low", "high"]]
        return f"{mean:{sign}.1f} ({low:.1f} to {high:.1f}"

    def without(test: str, end: str) -> str:
        names = [f"{t}{end}" for t in TESTS if t != test]
        means = (depth.loc[[(f"mean{end}", name, d) for name in names], "score"].mean() for d in (1, 3))
        return "{:.1f} and {:.1f}".format(*means)

    copies = [f"{test}_all" for test in TESTS]
    by_test = np.array([[depth.loc[("mean_all", test, d), "score"] for d in (1, 3)] for test in copies])
    rise = by_test[:, 1] - by_test[:, 0]
    half = stats.t.ppf(0.975, len(rise) - 1) * rise.std(ddof=1) / len(rise) ** 0.5
    assert gains.loc[(1.0, same, 1, 3), ["gain", "low", "high"]].tolist() == pytest.approx(
        [rise.mean(), rise.mean() - half, rise.mean() + half], rel=0.01
    )
    clear = gains[(gains["low"] > 0) | (gains["high"] < 0)]
    assert clear.index.tolist() == [(1.0, other, 2, 3)]
    one, copied = (gains.loc[(1.0, of, 2, 3), ["gain", "low", "high"]] for of in (other, same))
    said([
        row("p = 0.2", "mean"), row("p = 1", "mean_all"), alike("mean"), alike("mean_all"), blind(0.2), blind(1.0),
        f"above those of one by {gain(0.2, same)}, over nine tests) at p = 0.2 and by {gain(1.0, same)}) at p = 1",
        f"differ by {gain(0.2, other)}) and {gain(1.0, other, sign='+')}).",
        "without the test ({:+.1f}, {:.1f} to {:.1f}; with copies {:+.1f}, {:.1f} to {:.1f})".format(*one, *copied),
        f"without translation depths 1 and 3 have {without('translation', '')} at p = 0.2, and without COIL-20 "
        f"{without('rotation_3d', '_all')} at p = 1",
        f"near the ceiling ({three('rotation_2d')})",
        f"({PLAIN['mean'].min():.0f} to {PLAIN['mean'].max():.0f} at p = 0.2, {PLAIN['mean_all'].min():.0f} to "
        f"{PLAIN['mean_all'].max():.0f} at p = 1)",
    ])  # fmt: skip
    ranks, silent = {}, {}
    for number in (1, 2, 3):
        different = grid[grid["layer"] == f"stack.{number - 1}"].drop_duplicates(
            [f"decay_{i + 1}" for i in range(number)]
        )
        silent[number] = f"{different['mean'].isna().sum()} of {len(different)}"
        for p in ("mean", "mean_all"):
            ranks[number, p] = f"{different[[p, 'alikeness of responses']].corr('spearman').iloc[0, 1]:.2f}"
    said([
        f"silences {silent[2]} second and {silent[3]} third layers",
        f"as the score does ({ranks[1, 'mean']} at both p), second layers less ({ranks[2, 'mean']}, at p = 1 "
        f"{ranks[2, 'mean_all']}), and third layers hardly ({ranks[3, 'mean']} and {ranks[3, 'mean_all']})",
    ])  # fmt: skip
    assert ranks[1, "mean"] == ranks[1, "mean_all"]


def test_no_network_is_chosen_by_the_test_that_judges_it():
    grid = TABLE["b_weight_decay_grid"]
    for row in TABLE["b_left_out"].itertuples():
        end = "_all" if row.p == 1 else ""
        known = grid[grid["layer"] == f"stack.{row.depth - 1}"].dropna(subset="mean")
        best = known.loc[known[[f"{t}{end}" for t in TESTS if t != row.test]].mean(axis=1).idxmax()]
        assert best[f"{row.test}{end}"] == row.score and best["decay_1"] == row.decay_1


def test_agreement_of_the_tests_is_as_the_page_says():
    table = TABLE["d_agreement"].set_index(["p", "networks of", "test", "other"])
    centre = TABLE["d_rotation_centre"]["spearman"]
    names = {
        "rotation_2d": "2-D rotation", "rotation_3d_rendered": "rendered objects", "turned_by_hand": "cup",
        "rotation_3d": "photographed objects",
    }  # fmt: skip
    means, turns, moves = ("mean of gratings", "mean of video"), "rotation_2d", "translation"

    def rho(test: str, other: str, p: float = 0.2, family: str = "sparse") -> str:
        return f"{table.loc[(p, family, test, other), 'spearman']:.2f}"

    def interval(test: str, other: str, p: float = 0.2, family: str = "sparse") -> str:
        row = table.loc[(p, family, test, other)]
        return f"{row['low']:.2f} to {row['high']:.2f}"

    def behind(test: str, other: str, p: float = 0.2, family: str = "sparse") -> str:
        return f"{rho(test, other, p, family)} ({interval(test, other, p, family)})"

    def inside(test: str, other: str, p: float = 0.2) -> str:
        return f"{rho(test, other, p)}, {interval(test, other, p)}"

    rows = [
        (turns, moves), ("rotation_3d_rendered", moves), (moves, "turned_by_hand"),
        ("rotation_3d_rendered", "turned_by_hand"), (turns, "rotation_3d_rendered"), (turns, "turned_by_hand"),
        ("rotation_3d", moves), ("footage", "rotation_3d"), ("footage", moves), ("orientation", turns),
        ("frequency", "phase"), ("phase", moves),
    ]  # fmt: skip
    said([
        *(f"| {names.get(a, a)} | {names.get(b, b)} | {behind(a, b)} | {behind(a, b, 0.2, 'all')} |" for a, b in rows),
        f"footage runs against 2-D rotation ({inside('footage', turns)}) and orientation "
        f"({inside('footage', 'orientation')}), at p = 1 against rendered objects "
        f"({inside('footage', 'rotation_3d_rendered', 1.0)}) and orientation "
        f"({inside('footage', 'orientation', 1.0)}), not clearly against 2-D rotation "
        f"({inside('footage', turns, 1.0)})",
        f"Phase runs against 2-D rotation ({inside('phase', turns)}; at p = 1 {inside('phase', turns, 1.0)}) and "
        f"orientation ({inside('orientation', 'phase')}; at p = 1 {inside('orientation', 'phase', 1.0)})",
        "in third layers ({} and {}; at p = 1 {} and {}; no intervals)".format(*(
            rho(*pair, p, "third layers") for p in (0.2, 1.0) for pair in (("phase", turns), ("orientation", "phase"))
        )),
        f"rank sparse networks alike by {behind(turns, moves)}, at p = 1 by {behind(turns, moves, 1.0)}",
        f"agree** by {behind(*means)} over sparse networks, at p = 1 by {behind(*means, 1.0)}; over all networks by "
        f"{behind(*means, family='all')} and {behind(*means, 1.0, 'all')}",
        f"over sparse networks ({inside(moves, 'turned_by_hand', 1.0)})",
        f"alike ({centre[0]:.2f},", f"({centre[1]:.2f} and {centre[2]:.2f})",
    ])  # fmt: skip
    everyone, of_sparse = (table.xs(family, level="networks of") for family in ("all", "sparse"))
    said([
        f"over the {of_sparse['networks'].iloc[0]} sparse networks; intervals are from resamples of their "
        f"{of_sparse['clusters'].iloc[0]} cells",
        f"all {everyone['networks'].iloc[0]} networks that differ and have all scores has "
        f"{everyone['clusters'].iloc[0]} clusters",
        f"hold {everyone['networks'].iloc[0] - of_sparse['networks'].iloc[0]} networks: they are worth "
        f"{everyone['effective'].iloc[0]:.0f} clusters",
    ])  # fmt: skip
    few = table.loc[(slice(None), ["plain", "second layers", "third layers"]), :]
    assert set(few["clusters"]) == {7} and few["low"].isna().all()
    moved = {}
    for pool in ("all", "sparse"):
        fixed, chosen = (table.xs(name, level="networks of")["spearman"] for name in (pool, f"{pool}, signs chosen"))
        moved[pool] = (chosen - fixed).abs().groupby("p").max()
    assert f"{moved['sparse'][0.2]:.2f}" == f"{moved['sparse'][1.0]:.2f}"
    other_rule = "sparse, signs chosen"
    said([
        f"pool move by up to {moved['all'][0.2]:.2f}, at p = 1 by up to {moved['all'][1.0]:.2f}, and those over sparse "
        f"networks by up to {moved['sparse'][0.2]:.2f} at both",
        f"with rendered objects ({rho(turns, 'rotation_3d_rendered', family=other_rule)}) and with the cup "
        f"({rho(turns, 'turned_by_hand', family=other_rule)})",
    ])  # fmt: skip


def test_networks_that_share_their_first_layers_are_drawn_together(monkeypatch):
    monkeypatch.syspath_prepend(INVARIANCES)
    comparisons = importlib.import_module("comparisons")
    pool = comparisons.tested_networks(MAP, OTHER_SIGNS, TABLE["b_weight_decay_grid"], TESTS, sparse_choose=False)
    sizes = pool["cluster"].value_counts()
    without_sparsity = pool[pool["family"] != "sparse"]
    assert without_sparsity["cluster"].nunique() == 7 and set(without_sparsity["cluster"]) == set(sizes.index[:7])
    assert (sizes[7:] == 3).all() and sizes.sum() ** 2 / (sizes**2).sum() == pytest.approx(14.27, abs=0.01)
    everyone = TABLE["d_agreement"].set_index(["p", "networks of", "test", "other"]).sort_index().loc[(0.2, "all")]
    for pair in (("footage", "translation"), ("orientation", "rotation_2d")):
        assert everyone.loc[pair, "spearman"] == pytest.approx(pool[[*pair]].corr("spearman").iloc[0, 1], abs=1e-3)
    sys.modules.pop("comparisons")


SETTINGS = ("reconstruction", "contours")
TRAINED, UNTRAINED, LEARNED = TABLE["c_cdbn"], TABLE["c_untrained"], TABLE["c_learned"]


def layers_of(table: pd.DataFrame, setting: str, transformation: str, of: str = "all units") -> pd.DataFrame:
    chosen = (table["setting"] == setting) & (table["transformation"] == transformation) & (table["of"] == of)
    rows = table[chosen & (table["near_max"] == 0.1) & (table["epochs"] < 120)]
    return rows.assign(clear=(rows["low"] > 0) | (rows["high"] < 0))


def changes(what: str, of: str = "all units") -> pd.DataFrame:
    rows = LEARNED[(LEARNED["what"] == what) & (LEARNED["of"] == of) & (LEARNED["near_max"] == 0.1)].dropna()
    rows = rows.assign(clear=(rows["low"] > 0) | (rows["high"] < 0))
    return rows.set_index(["setting", "transformation"]).sort_index()


def test_untrained_networks_were_shown_the_same_and_settings_do_not_matter_to_them():
    keys = ["transformation", "of", "seed", "near_max"]
    one, other = (UNTRAINED[UNTRAINED["setting"] == s].set_index(keys)["difference"] for s in SETTINGS)
    assert (one - other).abs().max() < 0.01
    layers, untrained = TABLE["c_cdbn_layers"], TABLE["c_untrained_layers"]
    shown = [table.groupby("transformation")["stimuli"].unique().map(list).to_dict() for table in (layers, untrained)]
    assert shown[0] == shown[1]
    usual = TRAINED[(TRAINED["epochs"] == 60)].set_index(["setting", *keys])["difference"]
    apart = (usual - UNTRAINED.set_index(["setting", *keys])["difference"]).dropna()
    change = LEARNED[LEARNED["what"] == "difference"].set_index(["setting", "transformation", "of", "near_max"])
    for key, values in apart.groupby(["setting", "transformation", "of", "near_max"]):
        half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
        expected = [values.mean(), values.mean() - half, values.mean() + half]
        assert change.loc[key, ["change", "low", "high"]].tolist() == pytest.approx(expected, abs=0.02)


def test_the_layers_of_the_convolutional_network_are_as_the_page_says():
    change = changes("difference")

    def cell(table: pd.DataFrame, setting: str, test: str, counted: bool = True) -> str:
        rows = layers_of(table, setting, test)
        below, above, apart = rows[["other_score", "score", "difference"]].mean()
        count = rows["clear"].sum()
        bold = "**" if counted and count > 1 else ""
        return f"{below:.1f} → {above:.1f}, {bold}{apart:+.1f}{bold}" + (f" ({count})" if counted else "")

    def changed(setting: str, test: str) -> str:
        row = change.loc[(setting, test)]
        bold = "**" if row["clear"] else ""
        return f"{bold}{row['change']:+.1f}{bold} ({row['low']:.1f} to {row['high']:.1f})"

    for test in set(TESTS) - {"turned_by_hand"}:
        said([
            f"| {cell(UNTRAINED, 'reconstruction', test)} | {cell(TRAINED, 'reconstruction', test)} | "
            f"{changed('reconstruction', test)} | {cell(TRAINED, 'contours', test, test not in GRATINGS)} | "
            f"{changed('contours', test)} |"
        ])  # fmt: skip

    def mean(table: pd.DataFrame, test: str, setting: str = "reconstruction") -> float:
        return layers_of(table, setting, test)["difference"].mean()

    def clear(test: str) -> int:
        return layers_of(UNTRAINED, "reconstruction", test)["clear"].sum()

    def share(table: pd.DataFrame, test: str) -> float:
        return 100 * mean(table, test) / layers_of(table, "reconstruction", test)["other_score"].mean()

    up, rendered = ["phase", "translation"], "rotation_3d_rendered"
    assert [clear(test) for test in (*up, rendered, "orientation")] == [3, 3, 2, 3]
    signs = [np.sign(mean(table, test)) for table in (TRAINED, UNTRAINED) for test in TESTS if test != "turned_by_hand"]
    assert signs[:8] == signs[8:]
    of_contours = [np.sign(mean(TRAINED, test, "contours")) for test in TESTS if test != "turned_by_hand"]
    assert sum(a == b for a, b in zip(of_contours, signs[8:], strict=True)) == 5
    of_setting = change.loc["reconstruction"]
    assert set(of_setting.index[of_setting["low"] > 0]) == {"frequency", "footage"}
    assert set(of_setting.index[of_setting["high"] < 0]) == {"translation", "rotation_3d"}
    assert all((layers_of(TRAINED, setting, "phase")["low"] > 0).all() for setting in SETTINGS)
    falls = [-mean(TRAINED, "orientation", setting) for setting in SETTINGS]
    gaining = (rendered, "phase", "translation", "rotation_3d")
    trained, untrained = ([share(table, test) for test in gaining] for table in (TRAINED, UNTRAINED))
    said([
        f"phase rises by {mean(UNTRAINED, 'phase'):.1f} from layer 1 to layer 2, translation by "
        f"{mean(UNTRAINED, 'translation'):.1f} and 3-D rotation of rendered objects by "
        f"{mean(UNTRAINED, rendered):.1f}, and orientation "
        f"falls by {-mean(UNTRAINED, 'orientation'):.1f} (clear in 3, 3, 2 and 3 of 3",
        "in trained networks too, by {:.1f} and {:.1f} at two settings".format(*falls),
        "rendered objects have {:+.0f} %, phase {:+.0f} %, translation {:+.0f} %, photographed objects {:+.0f} % "
        "(untrained: {:+.0f}, {:+.0f}, {:+.0f} and {:+.0f} %)".format(*trained, *untrained),
    ])  # fmt: skip


def test_what_learning_does_to_the_second_layer_is_as_the_page_says():
    every, best = changes("layer 2"), changes("layer 2", "best units")

    def one(table: pd.DataFrame, setting: str, test: str) -> str:
        row = table.loc[(setting, test)]
        assert row["clear"]
        return f"{row['change']:+.1f}, {row['low']:.1f} to {row['high']:.1f}"

    spread = every.groupby("setting")["change"].agg(["min", "max"])
    assert set(every.index[every["clear"]]) == {("reconstruction", t) for t in ("phase", "rotation_2d", "frequency")}
    assert every[every["clear"]]["high"].max() < 0
    rendered = [(s, "rotation_3d_rendered") for s in SETTINGS]
    assert set(best.index[best["clear"]]) == {*rendered, ("contours", "rotation_2d"), ("reconstruction", "frequency")}
    said([
        "learning changes it by {:+.1f} to {:+.1f}, clearly".format(*spread.loc["reconstruction"]),
        f"in phase ({one(every, 'reconstruction', 'phase')}), 2-D rotation "
        f"({one(every, 'reconstruction', 'rotation_2d')}) and frequency ({one(every, 'reconstruction', 'frequency')})",
        "it changes by {:+.1f} to {:+.1f}, nowhere clearly".format(*spread.loc["contours"]),
        f"in rendered objects ({one(best, *rendered[0])}; {one(best, *rendered[1])}) and, with most contours, in 2-D "
        f"rotation ({one(best, 'contours', 'rotation_2d')}), and lowers it in frequency with the best reconstruction "
        f"({one(best, 'reconstruction', 'frequency')})",
    ])  # fmt: skip


def test_longer_training_and_the_best_grating_alone_are_as_the_page_says():
    rows = TRAINED[TRAINED["of"] == "all units"].set_index(["epochs", "near_max", "transformation", "setting"])

    def falls(epochs: int, near_max: float) -> str:
        means = (-rows.loc[(epochs, near_max, "orientation", setting), "difference"].mean() for setting in SETTINGS)
        return "{:.1f} and {:.1f}".format(*means)

    def longer(test: str) -> str:
        pair = (rows.loc[[(120, 0.1, test, setting)]].iloc[0] for setting in SETTINGS)
        return " and ".join(f"{row['difference']:+.1f} ({row['low']:.1f} to {row['high']:.1f})" for row in pair)

    said([
        f"(one initialisation) orientation falls by {falls(120, 0.1)}, translation is at "
        f"{longer('translation')}, and rendered objects at {longer('rotation_3d_rendered')}",
        f"orientation falls by {falls(60, 1)}.",
    ])  # fmt: skip


def test_the_sweep_of_the_convolutional_network_is_as_the_page_says():
    swept, kinds, fits = (TABLE[f"c_cdbn_{name}"] for name in ("sweep", "combinations", "gabor_fits"))
    silent = swept["explained_1"] < 1e-5
    above = {test: swept[f"{test}_2"] > swept[f"{test}_1"] for test in TESTS}

    def both(test: str) -> tuple[int, int]:
        return (above[test] & ~silent).sum(), (above[test] & silent).sum()

    assert not swept["diverged"].any() and not above["orientation"].any() and both("phase")[0] == (~silent).sum()
    eligible = swept[swept["sparse"]]
    for chosen, by in (("reconstruction", "criterion"), ("contours", "contours_combined")):
        assert swept[chosen].sum() == 1 and swept[swept[chosen]][by].iloc[0] == eligible[by].max()
    usual = kinds[kinds["epochs"] == 60].groupby("setting")
    maps, border = (usual[column].agg(["min", "max"]) for column in ("maps_combined", "on_border"))
    combining = kinds[kinds["epochs"] == 60]["combining"]
    said([
        f"{len(swept)} settings", f"{(swept['epochs'] == 12).sum()} learned for 12 epochs, and "
        f"{(swept['epochs'] == 36).sum()} for 36", f"among the {len(eligible)} settings",
        f"phase in all {(~silent).sum()} settings that are not silent and in {both('phase')[1]} of the {silent.sum()}",
        "in rendered objects in {} and {}, in translation in {} and {}".format(
            *both("rotation_3d_rendered"), *both("translation")
        ),
        f"{combining.min() * 100:.0f} to {combining.max() * 100:.0f} % of its units",
        f"{maps.loc['contours', 'min']:.0f} to {maps.loc['contours', 'max']:.0f} maps",
        f"{maps.loc['reconstruction', 'min']:.0f} to {maps.loc['reconstruction', 'max']:.0f} at the other",
        "{:.0f} to {:.0f} % of them on the border".format(*100 * border.loc["reconstruction"]),
        f"{(swept['oriented'] == 0).sum()} settings have no oriented filter, and "
        f"{(swept['oriented'] > 0.5).sum()} have more",
    ])  # fmt: skip
    assert swept.loc[swept["contours"], "oriented"].iloc[0] > 0.5
    alike = fits.query("setting == 'contours' and 0.86 < r2 < 0.88 and frequency < 0.02")
    assert f"{len(alike)} of the {len(fits) // 2} filters are copies" in PAGE
    assert f"{len(alike)} of the {len(fits) // 2} units of layer 1 are copies" in PAGE


def test_the_page_on_reviews_says_what_its_tables_say():
    folder = ROOT / "broad-evaluation-2010"
    page = " ".join((folder / "README.md").read_text().split())
    done = 0
    for data, name in (("we8there", "we8there"), ("skytrax", "Skytrax")):
        grand = pd.read_csv(folder / data / "analysis" / "grand.csv").set_index(["task", "run"])["mean"]["text"]
        contrasts = pd.read_csv(folder / data / "analysis" / "contrasts.csv")
        both = contrasts[contrasts["task"] == "text"].set_index(["contrast", "team"])
        done += (pd.read_csv(folder / data / "analysis" / "status.csv")["status"] == "done").sum()
        for team in ("n", "s"):
            runs = ["1", *(f"{i}{team}" for i in range(2, 7))]
            assert f"| {name}, {team} | " + " | ".join(f"{grand[run]:.3f}" for run in runs) + " |" in page
            assert f"{both.loc[('6 v 3', team), 'difference']:+.3f} ({team})".replace("-", "−") in page
            deeper = both.loc[("6 v 5", team)]
            assert deeper["high"] < 0  # depth hurts, and the interval is away from 0
            assert 0.019 <= round(-deeper["difference"], 3) <= 0.137
    assert f"all {done} runs are done" in page
