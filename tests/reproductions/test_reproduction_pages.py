"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

import importlib
import itertools
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
ONE, SEVERAL, BROAD, BLOBS, COPIES = (0.3, -0.7), (0.1, -0.8), (0.3, 0.0), (1.0, -0.7), (0.3, -0.8)
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
        assert " ".join(claim.split()).replace("-", "−") in PAGE.replace("-", "−"), claim


def of_sparse(table: pd.DataFrame) -> pd.DataFrame:
    """The sparse cells of a comparison of cells."""
    return table[table.index.get_level_values("target").notna()]


def of_plain(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.index.get_level_values("target").isna()]


def test_what_the_tables_cannot_show_is_as_the_page_says(monkeypatch):
    monkeypatch.syspath_prepend(INVARIANCES)
    material = importlib.import_module("material")
    from assay.stimuli import camera_video

    moving = camera_video(48, 1, clips=14, pictures=material.CAMERA_PICTURES)
    camera = {clip.scene for clip in moving["translation"]}
    worn = [clip.scene for clip in material.rendered_objects(48, 1, 36)]
    counts = {3, 14 * len(camera)}
    assert len(camera) == 5 and len(set(worn)) == 12 and {worn.count(name) for name in worn} | counts == {3, 70}
    learned = set(material.still_pictures(None))
    assert not learned & {*camera, *worn, "coffee", "grass", "gravel"} and {"coffee", "grass", "gravel"} <= set(worn)
    sys.modules.pop("material")
    said([
        "The 70 clips of translation and the 70 of 2-D rotation show five photographs, rendered objects wear twelve",
        "36 solids that wear twelve other pictures",
    ])  # fmt: skip
    for name in ("c_cdbn_layers", "c_untrained_layers"):
        assert (TABLE[name]["ok"] + TABLE[name]["tied"] == TABLE[name]["units"]).all()
        cup = TABLE[name][TABLE[name]["transformation"] == "turned_by_hand"]
        assert cup["mean_held_out_low"].isna().all()
        near = TABLE[name][TABLE[name]["near_max"] == 0.1].groupby("transformation")["z"].agg(["min", "max"])
        assert (near["min"] == near["max"]).all() and near["max"].to_dict() == {
            **dict.fromkeys(GRATINGS, 6), "translation": 7, "rotation_2d": 7, "footage": 5,
            "rotation_3d_rendered": 4, "rotation_3d": 2, "turned_by_hand": 2,
        }  # fmt: skip
    units = TABLE["units"]
    assert (units.iloc[:, 6:].sum(axis=1) == units["units"]).all()
    for table in (MAP, OTHER_SIGNS):
        assert not table["unscored"].any() and set(table[table["tied"] > 5]["weight_decay"]) == {1.0}
    grid, copies = TABLE["b_weight_decay_grid"], TABLE["b_copies"]
    assert not copies["unscored"].any()
    without, some = {}, {}
    for number in (2, 3):
        layers = distinct(grid, number)
        without[number] = f"{(layers['unscored'] == 100).sum()} of {len(layers)}"
        some[number] = layers["unscored"].between(1, 99).sum()
        assert (layers["mean"].isna() == (layers["unscored"] == 100)).all()
    said([
        f"up to {max(MAP['tied'].max(), OTHER_SIGNS['tied'].max())} of the 100 units of a network tie",
        f"silences {without[2]} second and {without[3]} third layers",
        f"some units of {some[2]} and {some[3]} more", f"at most {copies['tied'].max()} of 100 tie",
    ])  # fmt: skip


def distinct(grid: pd.DataFrame, number: int) -> pd.DataFrame:
    """Layers of this number that differ: those of the same decays below are the same."""
    layers = grid[grid["layer"] == f"stack.{number - 1}"]
    return layers.drop_duplicates([f"decay_{i + 1}" for i in range(number)])


def test_cells_are_compared_by_the_method_of_games_and_howell():
    groups = {key: of["mean_all"].to_numpy() for key, of in sparse(MAP).groupby(CELL)}
    a, b = groups[ONE], groups[(0.3, -0.5)]
    n = len(a)
    error = a.var(ddof=1) / n + b.var(ddof=1) / n
    df = error**2 / (((a.var(ddof=1) / n) ** 2 + (b.var(ddof=1) / n) ** 2) / (n - 1))
    half = stats.studentized_range.ppf(0.95, len(groups) + 7, df) * np.sqrt(error / 2)
    row = compared("paper", 1.0).loc[(0.3, -0.5)]
    apart = a.mean() - b.mean()
    assert row[["below_best", "low", "high"]].tolist() == pytest.approx([apart, apart - half, apart + half], rel=0.01)


def test_the_sparsity_map_is_as_the_page_says():
    cells, of_all = compared("paper", 0.2), compared("paper", 1.0)
    best, following = of_sparse(cells), of_sparse(of_all).iloc[1]
    assert best.index[0] == of_sparse(of_all).index[0] == ONE and following.name == (0.3, -0.5)
    alike = CELLS.loc[best[best["low"] <= 0].index]
    assert len(alike) == 3 and set(best.index[-14:]) == set(DEGENERATE)
    assert (of_sparse(of_all)["low"].dropna() > 0).all()
    assert (cells.loc[DEGENERATE, "low"] > 0).all() and (of_all.loc[DEGENERATE, "low"] > 0).all()
    few = (VIDEO[4], " and ".join(VIDEO[4:]))
    assert all(of_sparse(compared("paper", 1.0, without)).index[0] == ONE for without in few)
    assert all(of_sparse(compared("paper", 0.2, without)).index[0] == SEVERAL for without in few)

    def above_plain(p: float, without: str, sign: int = 1) -> str:
        of = of_plain(compared("paper", p, without)).iloc[0][["below_best", "low", "high"]] * sign
        return f"{of['below_best']:.1f} ({min(of['low'], of['high']):.1f} to {max(of['low'], of['high']):.1f})"

    for end, places in (("", (6, 4, 13)), ("_all", (1, 1, 1))):
        for without, place in zip(
            (["translation"], ["rotation_2d"], ["translation", "rotation_2d"]), places, strict=True
        ):
            kept = CELLS[[f"{test}{end}" for test in TESTS if test not in without]].mean(axis=1)
            assert kept.rank(ascending=False)[ONE] == place
    every_cell = MAP.fillna({"target": 1.0}).groupby(CELL)[TESTS].mean()
    assert every_cell.rank().mean(axis=1).idxmax() == SEVERAL
    follows = CELLS[[f"{test}_all" for test in TESTS]].corrwith(CELLS["mean_all"], method="spearman")
    said([
        "it ranks sparse cells as 2-D rotation ({:.2f}) and translation ({:.2f}) do, and against phase ({:.2f}) and "
        "footage ({:.2f})".format(*(follows[f"{t}_all"] for t in ("rotation_2d", "translation", "phase", "footage"))),
        "the best of 56, but the 6th without translation, the 4th without 2-D rotation and the 13th without both",
    ])  # fmt: skip
    assert set(of_sparse(compared("paper", 0.2, few[0])).index[-14:]) != set(DEGENERATE)
    below = of_all.loc[DEGENERATE]
    fixed = compared("fixed", 1.0)
    assert (fixed.loc[DEGENERATE, "high_unregularised"] < 0).all() and len(DEGENERATE) == 14
    rank, rank_all = (MAP[[c, "gabor_r2"]].corr("spearman").iloc[0, 1] for c in ("mean", "mean_all"))

    def row(name: str, of: pd.Series) -> str:
        mean, all_units, r2, alikeness = of[["mean", "mean_all", "gabor_r2", "alikeness"]]
        return f"{name}) | {mean:.1f} | {all_units:.1f} | {r2:.2f} | {alikeness:.2f} |"

    tried = (ONE, SEVERAL, BROAD, BLOBS, COPIES)
    plainly_best = (of_plain(table).iloc[0] for table in (cells, of_all))
    above = (f"{-of['below_best']:.1f} ({-of['high']:.1f} to {-of['low']:.1f})" for of in plainly_best)
    said([
        f"{len(sparse(MAP))} sparse and {len(plain(MAP))} plain", f"all pairs of the {len(cells)} cells at once",
        f"{MAP['seed'].nunique()} random initialisations per cell",
        *(row(f"(λ = {cell[0]:g}, ρ = {cell[1]:g}", CELLS.loc[cell]) for cell in tried),
        *(row(f"(λ = {decay:g}, no sparsity", PLAIN.loc[decay]) for decay in (0.3, 1.0, 0.0)),
        f"with r² {alike['gabor_r2'].min():.2f} to {alike['gabor_r2'].max():.2f} and alikeness "
        f"{alike['alikeness'].min():.2f} to {alike['alikeness'].max():.2f}",
        f"rank correlation of {rank:.2f} over all {len(MAP)} networks, at p = 1 of {rank_all:.2f}.",
        f"by {following['below_best']:.1f} ({following['low']:.1f} to {following['high']:.1f}), and stays",
        f"clearly above, by {above_plain(0.2, few[0])}, at p = 0.2, and at p = 1 it is below by "
        f"{above_plain(1.0, few[0], -1)} only. Without the cup and footage it is above by {above_plain(0.2, few[1])} "
        f"and by {above_plain(1.0, few[1])}.",
        f"unregularised ones ({PLAIN.loc[0.0, 'mean_all']:.1f}) are below {(below['below_unregularised'] < 0).sum()} "
        f"of the 14 degenerate cells, clearly below {(below['high_unregularised'] < 0).sum()} of them, and "
        "clearly above "
        f"{(below['low_unregularised'] > 0).sum()} others. If all signs are fixed, unregularised ones "
        f"({fixed.loc[[(0.0, np.nan)], 'mean'].iloc[0]:.1f}) are clearly below",
        "clearly above it, by {} at p = 0.2 and by {} at p = 1".format(*above),
    ])  # fmt: skip


def test_the_filters_that_are_drawn_are_as_the_page_says():
    fits = TABLE["a_filters"]
    names = [f"{cell[0]:g}/{cell[1]:g}" for cell in (ONE, SEVERAL, BROAD, BLOBS, COPIES)] + [
        "0.3/nan",
        "1/nan",
        "0/nan",
    ]
    of_cell = dict(
        list(fits.groupby(fits["weight_decay"].map("{:g}".format) + "/" + fits["target"].map("{:g}".format)))
    )
    assert set(of_cell) == set(names) and {len(of) for of in of_cell.values()} == {100}

    def oriented(name: str) -> tuple[int, int]:
        good = of_cell[name][of_cell[name]["r2"] > 0.8]["theta_deg"].to_numpy()
        vertical = np.minimum(good % 180, 180 - good % 180) <= 10  # gratings that vary along x have vertical bars
        return len(good), vertical.sum()

    assert oriented(names[0]) == (100, 100)
    good = (of_cell["0.3/nan"]["r2"] > 0.8).sum()
    said([
        "ρ = −0.8, {} have such an r², and {} of them are within 10° of vertical.".format(*oriented(names[1]))
        + f" Of the best plain network {good} have."
    ])  # fmt: skip


def by_rule_of_signs(signs: str) -> pd.DataFrame:
    one, other = (OTHER_SIGNS, MAP) if signs == "chosen" else (MAP, OTHER_SIGNS)
    return pd.concat([sparse(one), plain(other)])


def test_what_choosing_signs_does_is_as_the_page_says():
    assert MAP[[*CELL, "seed"]].equals(OTHER_SIGNS[[*CELL, "seed"]])
    chosen, fixed = (plain(table).groupby("weight_decay")["mean"].mean() for table in (MAP, OTHER_SIGNS))
    all_choose = sparse(OTHER_SIGNS).groupby(CELL)["mean"].mean()
    assert (all_choose >= CELLS["mean"]).all() and (chosen >= fixed).all()  # a choice never lowers a score
    rules = {
        "paper": ("the paper's rule", CELLS["mean"], chosen, ONE),
        "fixed": ("all fixed", CELLS["mean"], fixed, ONE),
        "chosen": ("all chosen", all_choose, chosen, SEVERAL),
    }
    below_best, above_degenerate, of_few = [], [], []
    for signs, (name, with_target, without_target, best) in rules.items():
        of = compared(signs, 0.2).loc[DEGENERATE]
        clearly = (of["low_unregularised"] > 0).sum(), (of["high_unregularised"] < 0).sum()
        degenerate = with_target[DEGENERATE].mean()
        unregularised = compared(signs, 0.2).loc[[(0.0, np.nan)]].iloc[0]
        assert unregularised["low"] > 0
        below_best.append(unregularised["below_best"])
        above_degenerate.append(clearly[0])
        few = compared(signs, 0.2, " and ".join(VIDEO[4:])).loc[DEGENERATE]
        of_few.append(((few["low_unregularised"] > 0).sum(), (few["high_unregularised"] < 0).sum()))
        assert degenerate < without_target[0.0] < with_target.max() and with_target.idxmax() == best
        said([
            f"| {name} | {with_target.max():.1f} | {without_target.max():.1f} | {without_target[0.0]:.1f} | "
            f"{degenerate:.1f} | {clearly[0]}, {clearly[1]} |"
        ])  # fmt: skip
    said([
        f"clearly below the best, by {min(below_best):.1f} to {max(below_best):.1f}, and clearly above "
        "{}, {} and {} of the 14".format(*above_degenerate),
        "they are clearly above {}, {} and {} of these only, and clearly below {}, {} and {}.".format(
            *np.ravel(of_few, "F")
        ),
    ])  # fmt: skip
    for signs in rules:
        assert compared(signs, 0.2, " and ".join(VIDEO[4:])).loc[[(0.0, np.nan)], "low"].item() > 0
    assert (compared("chosen", 0.2)["low"].dropna() > 0).all()
    at_p_1 = of_sparse(compared("chosen", 1.0))
    rivals = at_p_1.index[at_p_1["low"] <= 0]
    assert at_p_1.index[0] == ONE and len(rivals) == 2 and set(rivals) <= set(DEGENERATE)
    gains = []
    for p in (0.2, 1.0):
        for signs in ("fixed", "chosen"):
            best = of_plain(compared(signs, p)).iloc[0]
            gains.append(f"{best['below_best']:.1f} ({best['low']:.1f} to {best['high']:.1f})")
    over_tests = TABLE["a_gains"].set_index(["signs", "p", "above"]).sort_index()
    best = over_tests.loc[("fixed", 0.2, "best")]
    alike = by_rule_of_signs("fixed")
    cell, other = (
        alike[(alike["weight_decay"] == 0.3) & of][TESTS].mean()
        for of in (alike["target"] == -0.7, alike["target"].isna())
    )
    apart = (cell - other).to_numpy()
    half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
    expected = [apart.mean(), apart.mean() - half, apart.mean() + half]
    assert best[["gain", "low", "high"]].tolist() == pytest.approx(expected, abs=0.01)
    assert (over_tests["low"] < 0).all() and (over_tests["high"] > 0).all()
    order = (("fixed", 0.2), ("chosen", 0.2), ("fixed", 1.0), ("chosen", 1.0))
    unclear = ("{gain:+.1f}, {low:.1f} to {high:.1f}".format(**over_tests.loc[(*key, "best")]) for key in order)
    after_40 = TABLE["b_copies"].query("depth == 1 and chosen_by == 'mean_all'")["mean_all"]
    chosen_one = by_rule_of_signs("chosen").set_index(CELL).loc[[ONE], "mean_all"]
    welch = stats.ttest_ind(chosen_one, after_40, equal_var=False).confidence_interval()
    said([
        "by {} when all signs are fixed and by {} when all are chosen, at p = 1 by {} and {};".format(*gains),
        f"(`tables/a_gains.csv`: {'; '.join(unclear)})",
        f"({after_40.mean():.1f} at p = 1 after 40 epochs in (b), {PLAIN.loc[1.0, 'mean_all']:.1f} after 60)",
        f"by {chosen_one.mean() - after_40.mean():.1f} ({welch.low:.1f} to {welch.high:.1f}) alone when all",
    ])  # fmt: skip


def test_what_learning_without_regularisation_does_is_as_the_page_says():
    untrained, learned = TABLE["ab_untrained"], TABLE["a_learned"].set_index(["signs", "p", "without"])
    assert not untrained["unscored"].any() and untrained.groupby(["signs", "depth"]).size().unique().tolist() == [10]
    lowered = []
    for signs, trained in (("chosen", plain(MAP)), ("fixed", plain(OTHER_SIGNS))):
        for p, column in ((0.2, "mean"), (1.0, "mean_all")):
            before = untrained[(untrained["signs"] == signs) & (untrained["depth"] == 1)].set_index("seed")[column]
            fall = before - trained[trained["weight_decay"] == 0].set_index("seed")[column]
            half = stats.t.ppf(0.975, len(fall) - 1) * fall.std(ddof=1) / len(fall) ** 0.5
            expected = [-fall.mean(), -fall.mean() - half, -fall.mean() + half]
            assert learned.loc[(signs, p, "nothing"), ["change", "low", "high"]].tolist() == pytest.approx(
                expected, abs=0.01
            )
            lowered.append(f"{fall.mean():.1f} ({fall.mean() - half:.1f} to {fall.mean() + half:.1f})")
    assert (learned["high"] < 0).all()
    by_depth = untrained[untrained["signs"] == "chosen"].groupby("depth")[["mean", "mean_all"]].mean()
    rows = (" | ".join(f"{mean:.1f}" for mean in by_depth[column]) for column in ("mean", "mean_all"))
    assert (by_depth.max() - by_depth.min()).max() < 1
    said([
        "score {} less than before they learned at p = 0.2, and {} at p = 1, if signs are chosen".format(*lowered[:2]),
        "if they are fixed, {} and {}.".format(*lowered[2:]),
        *(f"| p = {p:g}, untrained | {row} |" for p, row in zip((0.2, 1), rows, strict=True)),
    ])  # fmt: skip


def test_depth_is_as_the_page_says():
    depth = TABLE["b_depth"].set_index(["chosen_by", "test", "depth"])
    grid, left_out = TABLE["b_weight_decay_grid"], TABLE["b_left_out"]
    every_gain = TABLE["b_depth_gains"].set_index(["without", "over", "p", "judged by", "from", "to"]).sort_index()
    gains, by_weights = (every_gain.loc["nothing"].loc[over] for over in ("tests", "initial weights"))
    without_cup = every_gain.loc[VIDEO[4]]
    same, other = "the tests that chose", "a test that did not choose"

    def three(test: str, by: str = "mean") -> str:
        return ", ".join(f"{depth.loc[(by, test, d), 'score']:.1f}" for d in (1, 2, 3))

    def row(name: str, by: str) -> str:
        cells = ("{:.1f} ({:.1f}–{:.1f})".format(*depth.loc[(by, by, d), ["score", "low", "high"]]) for d in (1, 2, 3))
        return f"| {name}, copies | " + " | ".join(cells) + " |"

    def alike(by: str) -> str:
        return " | ".join(f"{depth.loc[(by, 'alikeness of responses', d), 'score']:.2f}" for d in (1, 2, 3))

    def blind(p: float, without: str = "nothing", more: str = "") -> str:
        means = left_out[(left_out["p"] == p) & (left_out["without"] == without)].groupby("depth")["score"].mean()
        return f"| p = {p:g}, chosen without the test{more} | " + " | ".join(f"{m:.1f}" for m in means) + " |"

    def gain(p: float, judged: str, steps: tuple[int, int] = (1, 3), of: pd.DataFrame = gains) -> str:
        mean, low, high = of.loc[(p, judged, *steps), ["gain", "low", "high"]]
        return f"{mean:+.1f} ({low:.1f} to {high:.1f}"

    def ends(test: str) -> str:
        one, last = (depth.loc[("mean", test, d), "score"] for d in (1, 3))
        return f"({one:.1f} to {last:.1f})"

    copies = [f"{test}_all" for test in TESTS]
    by_test = np.array([[depth.loc[("mean_all", test, d), "score"] for d in (1, 3)] for test in copies])
    rise = by_test[:, 1] - by_test[:, 0]
    half = stats.t.ppf(0.975, len(rise) - 1) * rise.std(ddof=1) / len(rise) ** 0.5
    assert gains.loc[(1.0, same, 1, 3), ["gain", "low", "high"]].tolist() == pytest.approx(
        [rise.mean(), rise.mean() - half, rise.mean() + half], rel=0.01
    )
    over_tests = every_gain.xs("tests", level="over")
    clear = over_tests[(over_tests["low"] > 0) | (over_tests["high"] < 0)]
    gained, lost = (" and ".join(VIDEO[4:]), 0.2, other, 1, 2), ("nothing", 1.0, other, 1, 2)
    assert len(over_tests) == 36 and set(clear.index) == {gained, lost} and clear.loc[lost, "high"] < 0
    one, copied = (gains.loc[(1.0, of, 1, 2), ["gain", "low", "high"]] for of in (other, same))
    after_40 = TABLE["b_copies"].query("depth == 1 and chosen_by == 'mean_all'")
    assert set(after_40["weight_decay"]) == {"(1.0,)"}
    some = {d: of["mean"] for d, of in TABLE["b_copies"].query("chosen_by == 'mean'").groupby("depth")}
    welch = stats.ttest_ind(some[2], some[1], equal_var=False).confidence_interval()
    assert by_weights.loc[(0.2, same, 1, 2), ["low", "high"]].tolist() == pytest.approx([*welch], abs=0.002)
    assert gains.loc[(0.2, same, 1, 2), "rises"] == 4

    def over_weights(of: pd.DataFrame) -> list[str]:
        places = [(p, same, 1, to) for to in (2, 3) for p in (0.2, 1.0)]
        return ["{:.1f} ({:.1f} to {:.1f})".format(*of.loc[place, ["gain", "low", "high"]]) for place in places]

    cup = without_cup.loc["tests"]

    said([
        row("p = 0.2", "mean"), row("p = 1", "mean_all"), alike("mean"), alike("mean_all"), blind(0.2), blind(1.0),
        f"of two layers differ from those of one by {gain(0.2, same, (1, 2))}) at p = 0.2, and those of three by "
        f"{gain(0.2, same)}); at p = 1 by {gain(1.0, same, (1, 2))}) and {gain(1.0, same)}).",
        f"three layers from one, by {gain(0.2, other)}) and {gain(1.0, other)}).",
        f"Without it copies of two layers differ by {gain(0.2, same, (1, 2), cup)}) and "
        f"{gain(1.0, same, (1, 2), cup)}) at the two p, those of three by {gain(0.2, same, of=cup)}) and "
        f"{gain(1.0, same, of=cup)}), and networks chosen without the test "
        f"by {gain(0.2, other, of=cup)}) and {gain(1.0, other, of=cup)}).",
        "chosen without the test at p = 0.2 ({gain:+.1f} ({low:.1f} to {high:.1f})).".format(**clear.loc[gained]),
        "copies of two layers gain {} at p = 0.2 and {} at p = 1, those of three {} and {}; without the cup".format(
            *over_weights(by_weights)
        ),
        "without the cup {}, {}, {} and {}.".format(*over_weights(without_cup.loc["initial weights"])),
        f"Chosen and judged without the cup it is a rise ({gain(1.0, other, (1, 2), cup)}))",
        blind(0.2, VIDEO[4], " and the cup, on the others"), blind(1.0, VIDEO[4], " and the cup, on the others"),
        "without the test ({:+.1f}, {:.1f} to {:.1f}; with copies {:+.1f}, {:.1f} to {:.1f})".format(*one, *copied),
        f"in rendered objects {ends('rotation_3d_rendered')}, orientation {ends('orientation')} and photographed "
        f"objects {ends('rotation_3d')}, and below in the cup {ends('turned_by_hand')} and footage {ends('footage')}.",
        f"near the ceiling of 2-D rotation ({three('rotation_2d')})",
        f"({PLAIN['mean'].min():.0f} to {PLAIN['mean'].max():.0f} at p = 0.2, {PLAIN['mean_all'].min():.0f} to "
        f"{PLAIN['mean_all'].max():.0f} at p = 1)",
        f"copies have {after_40['mean_all'].mean():.1f} at p = 1 after 40 epochs, and the networks of (a) "
        f"{PLAIN.loc[1.0, 'mean_all']:.1f} after 60",
    ])  # fmt: skip
    ranks = {
        (number, p): f"{distinct(grid, number)[[p, 'alikeness of responses']].corr('spearman').iloc[0, 1]:.2f}"
        for number in (1, 2, 3)
        for p in ("mean", "mean_all")
    }
    said([
        f"as the score does ({ranks[1, 'mean']}, at p = 1 {ranks[1, 'mean_all']}), second layers less "
        f"({ranks[2, 'mean']} and {ranks[2, 'mean_all']}), and third layers hardly ({ranks[3, 'mean']} and "
        f"{ranks[3, 'mean_all']})",
    ])  # fmt: skip


def test_no_network_is_chosen_by_the_test_that_judges_it():
    grid = TABLE["b_weight_decay_grid"]
    for row in TABLE["b_left_out"].itertuples():
        end = "_all" if row.p == 1 else ""
        known = grid[grid["layer"] == f"stack.{row.depth - 1}"].dropna(subset="mean")
        others = [f"{t}{end}" for t in TESTS if t != row.test and t not in row.without.split(" and ")]
        best = known.loc[known[others].mean(axis=1).idxmax()]
        assert best[f"{row.test}{end}"] == row.score and best["decay_1"] == row.decay_1 and best["unscored"] == 0


def test_agreement_of_the_tests_is_as_the_page_says():
    table = TABLE["d_agreement"].set_index(["p", "networks of", "test", "other"]).sort_index()
    centre = TABLE["d_rotation_centre"]["spearman"]
    means, turns, moves, rendered = ("mean of gratings", "mean of video"), "rotation_2d", "translation", VIDEO[3]
    alike, degenerate, everyone = "sparse, not degenerate", "sparse, degenerate", "sparse"

    def of(test: str, other: str, p: float, family: str) -> pd.Series:
        pair = (test, other) if test.startswith(("mean", "each")) else tuple(sorted((test, other)))
        return table.loc[(p, family, *pair)]

    def behind(test: str, other: str, p: float = 0.2, family: str = alike) -> str:
        return "{spearman:.2f} ({low:.2f} to {high:.2f})".format(**of(test, other, p, family))

    def inside(test: str, other: str, p: float = 0.2, family: str = alike) -> str:
        return "{spearman:.2f}, {low:.2f} to {high:.2f}".format(**of(test, other, p, family))

    def at_both(test: str, other: str) -> str:
        return f"({inside(test, other)}; at p = 1 {inside(test, other, 1.0)})"

    names = {
        "orientation": "orientation", turns: "2-D rotation", moves: "translation", rendered: "rendered",
        "turned_by_hand": "cup", "rotation_3d": "photographed", "frequency": "frequency", "phase": "phase",
        "footage": "footage",
    }  # fmt: skip

    def cell(row: str, column: str) -> str:
        if row == column:
            return ""
        found = of(row, column, 0.2 if [*names].index(column) < [*names].index(row) else 1.0, alike)
        bold = "**" if found["low"] > 0 or found["high"] < 0 else ""
        return f"{bold}{found['spearman']:.2f}{bold}"

    def verdicts(p: float, family: str) -> pd.Series:
        rows = table.loc[(p, family)]
        rows = rows[[test in names for test, _ in rows.index]]
        return (rows["low"] > 0).astype(int) - (rows["high"] < 0)

    for p in (0.2, 1.0):
        assert len(verdicts(p, alike)) == 36
        for pair in (("phase", moves), ("phase", turns), ("phase", rendered), ("footage", "orientation"),
                     ("footage", moves), ("footage", turns)):  # fmt: skip
            assert of(*pair, p, alike)["high"] < 0
        assert of("rotation_3d", rendered, p, alike)["low"] < 0 < of("rotation_3d", rendered, p, alike)["high"]
        pairs = [tuple(sorted((g, v))) for g in GRATINGS for v in VIDEO]
        mean = table.loc[(p, alike)].loc[pairs, "spearman"].mean()
        assert of("each of gratings", "each of video", p, alike)["spearman"] == pytest.approx(mean, abs=1e-3)
    changed = [(verdicts(p, alike) != verdicts(p, everyone)).sum() for p in (0.2, 1.0)]
    every, less, video = "each of gratings", "mean of frequency and phase", "mean of video"
    said([
        *(f"| {name} | " + " | ".join(cell(row, column) for column in names) + " |" for row, name in names.items()),
        f"on average {behind(every, 'each of video')} at p = 0.2 and {behind(every, 'each of video', 1.0)} at p = 1.",
        f"clearly against translation {at_both('phase', moves)}, 2-D rotation {at_both('phase', turns)} and rendered "
        f"objects {at_both('phase', rendered)}, and footage against orientation {at_both('footage', 'orientation')}.",
        f"footage runs against translation {at_both('footage', moves)} and 2-D rotation {at_both('footage', turns)}, "
        f"and the two tests of 3-D rotation do not clearly rank networks alike {at_both('rotation_3d', rendered)}.",
        f"these networks alike by {behind(turns, moves)}, at p = 1 by {behind(turns, moves, 1.0)}.",
        f"(over all sparse networks {behind(turns, moves, 0.2, everyone)} and {behind(turns, moves, 1.0, everyone)})",
        f"alike at p = 0.2, by {behind(*means, 0.2, everyone)}: those whose filters are no copies by {behind(*means)}, "
        f"the degenerate not clearly ({inside(*means, 0.2, degenerate)}). At p = 1 they do so by {behind(*means, 1.0)} "
        f"where filters are no copies, and the degenerate the other way ({inside(*means, 1.0, degenerate)}).",
        f"rank the former by {behind(less, video)} and, at p = 1, {behind(less, video, 1.0)}.",
        "{} of the 36 verdicts at p = 0.2 are other ones, and {} at p = 1".format(*changed),
        f"alike ({centre[0]:.2f},", f"({centre[1]:.2f} and {centre[2]:.2f})",
    ])  # fmt: skip
    everyone_else, some = (table.loc[(0.2, family)].iloc[0] for family in ("all", alike))
    copies = table.loc[(0.2, everyone)].iloc[0]
    assert (table.xs(alike, level="networks of")["networks"] == some["networks"]).all()
    said([
        f"over the {some['networks']:.0f} sparse networks that differ and whose filters are no copies",
        f"of their {some['clusters']:.0f} cells",
        f"all {everyone_else['networks']:.0f} networks that differ and have all scores at p = 0.2 has "
        f"{everyone_else['clusters']:.0f} clusters",
        f"hold {everyone_else['networks'] - copies['networks']:.0f} networks: they are worth "
        f"{everyone_else['effective']:.0f} clusters",
    ])  # fmt: skip
    few = table.loc[(slice(None), ["plain", "second layers", "third layers"]), :]
    assert set(few["clusters"]) == {7} and few["low"].isna().all()
    moved = {}
    for pool in ("all", "sparse"):
        fixed, chosen = (table.xs(name, level="networks of")["spearman"] for name in (pool, f"{pool}, signs chosen"))
        single = [test in names or test == means[0] for _, test, _ in fixed.index]
        moved[pool] = (chosen - fixed)[single].abs().groupby("p").max()
    said([
        f"pool move by up to {moved['all'][0.2]:.2f}, at p = 1 by up to {moved['all'][1.0]:.2f}, and those over all "
        f"sparse networks by up to {moved['sparse'][0.2]:.2f} and {moved['sparse'][1.0]:.2f}",
        f"footage at p = 0.2 too ({inside('footage', moves, family='sparse, signs chosen')})",
    ])  # fmt: skip


def test_networks_that_share_their_first_layers_are_drawn_together(monkeypatch):
    monkeypatch.syspath_prepend(INVARIANCES)
    comparisons = importlib.import_module("comparisons")
    pool = comparisons.tested_networks(MAP, OTHER_SIGNS, TABLE["b_weight_decay_grid"], TESTS, sparse_choose=False)
    sizes = pool["cluster"].value_counts()
    without_sparsity = pool[pool["family"] != "sparse"]
    assert without_sparsity["cluster"].nunique() == 7 and set(without_sparsity["cluster"]) == set(sizes.index[:7])
    assert sizes[7:].between(6, 10).all() and (sizes[7:] == 10).sum() > 50  # those that do not differ are left out
    assert sizes.sum() ** 2 / (sizes**2).sum() == pytest.approx(32.17, abs=0.01)
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


def over_weights(values: pd.Series) -> tuple[float, float, float]:
    """The mean of one number per initialisation, and Student's interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return values.mean(), values.mean() - half, values.mean() + half


def changes(what: str, of: str = "all units") -> pd.DataFrame:
    rows = LEARNED[(LEARNED["what"] == what) & (LEARNED["of"] == of) & (LEARNED["near_max"] == 0.1)].dropna()
    rows = rows.assign(clear=rows["p_holm"] <= 0.05)
    assert len(rows) == 16
    return rows.set_index(["setting", "transformation"]).sort_index()


def test_untrained_networks_were_shown_the_same_and_settings_do_not_matter_to_them():
    keys = ["transformation", "of", "seed", "near_max"]
    one, other = (UNTRAINED[UNTRAINED["setting"] == s].set_index(keys)["difference"] for s in SETTINGS)
    assert (one - other).abs().max() < 0.05  # a few of thousands of stimuli fire or not by the last digit of responses
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
        count, known = rows["clear"].sum(), rows["low"].notna().sum()
        _, low, high = over_weights(rows["difference"])
        bold = "**" if low > 0 or high < 0 else ""
        clear = (f"; {count} of {known}" if known > 2 else "; –") if counted else ""
        return f"{below:.1f} → {above:.1f}, {bold}{apart:+.1f}{bold} ({low:.1f} to {high:.1f}{clear})"

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
    assert [clear(test) for test in (*up, rendered, "orientation")] == [5, 2, 0, 5]
    for test in (*up, rendered, "orientation"):
        _, *ends = over_weights(layers_of(UNTRAINED, "reconstruction", test)["difference"])
        assert min(ends) > 0 or max(ends) < 0
    tests = [test for test in TESTS if test != "turned_by_hand"]
    sign = {
        name: np.array([np.sign(mean(table, test, setting)) for test in tests])
        for name, table, setting in (
            ("untrained", UNTRAINED, "reconstruction"), ("best", TRAINED, "reconstruction"),
            ("contours", TRAINED, "contours"),
        )
    }  # fmt: skip
    assert [t for t, a, b in zip(tests, sign["untrained"], sign["best"], strict=True) if a != b] == ["rotation_3d"]
    assert (sign["untrained"] == sign["contours"]).sum() == 5
    assert (layers_of(TRAINED, "reconstruction", "phase")["low"] > 0).all()
    rising = [
        (layers_of(table, setting, test, "best units")["low"] > 0).sum()
        for table, setting, test in (
            (UNTRAINED, "reconstruction", "phase"), *((TRAINED, setting, "phase") for setting in SETTINGS),
            (TRAINED, "reconstruction", rendered),
        )
    ]  # fmt: skip
    assert rising == [5, 4, 5, 1]
    of_best = [layers_of(TRAINED, "contours", test, "best units") for test in ("translation", "rotation_3d")]
    falls = [-mean(TRAINED, "orientation", setting) for setting in SETTINGS]
    said([
        f"phase rises by {mean(UNTRAINED, 'phase'):.1f} from layer 1 to layer 2, translation by "
        f"{mean(UNTRAINED, 'translation'):.1f} and 3-D rotation of rendered objects by "
        f"{mean(UNTRAINED, rendered):.1f}, and orientation "
        f"falls by {-mean(UNTRAINED, 'orientation'):.1f} (clear over scenes in 5, 2, 0 and 5 of 5",
        "in trained networks too, by {:.1f} and {:.1f} at the two settings".format(*falls),
        "then rise, not clearly over initial weights ({:+.1f}, {:.1f} to {:.1f}; {:+.1f}, {:.1f} to {:.1f})".format(
            *(number for rows in of_best for number in over_weights(rows["difference"]))
        ),
    ])  # fmt: skip


def test_what_each_test_gains_is_as_the_page_says():
    gains = TABLE["c_gains"].set_index(["networks", "setting", "transformation"]).sort_index()
    rendered = "rotation_3d_rendered"

    def gain(test: str, setting: str = "reconstruction", networks: str = "trained") -> str:
        return "{:.0f} % ({:.0f} to {:.0f}".format(*gains.loc[(networks, setting, test), ["gain", "low", "high"]])

    def above(test: str, networks: str = "trained", sign: int = 1) -> str:
        mean, *ends = sign * gains.loc[(networks, "reconstruction", test), ["above", "above_low", "above_high"]]
        return f"by {mean:.0f}, {min(ends):.0f} to {max(ends):.0f}"

    def inside(test: str, setting: str = "reconstruction") -> str:
        return "{:.0f} %, {:.0f} to {:.0f}".format(*gains.loc[("trained", setting, test), ["gain", "low", "high"]])

    def less(test: str) -> str:
        mean, *ends = -gains.loc[("trained", "contours", test), ["above", "above_low", "above_high"]]
        return f"by {mean:.0f}, {min(ends):.0f} to {max(ends):.0f}"

    def video(setting: str, networks: str = "trained", sign: int = 1) -> str:
        more = "translation and 3-D rotation less phase and orientation"
        mean, *ends = sign * gains.loc[(networks, setting, more), ["gain", "low", "high"]]
        return f"{mean:.0f} ({min(ends):.0f} to {max(ends):.0f})"

    rows = layers_of(TRAINED, "reconstruction", rendered)
    of_each = 100 * (rows["score"] / rows["other_score"] - 1)
    half = stats.t.ppf(0.975, len(rows) - 1) * of_each.std(ddof=1) / len(rows) ** 0.5
    expected = [of_each.mean(), of_each.mean() - half, of_each.mean() + half]
    assert gains.loc[("trained", "reconstruction", rendered), ["gain", "low", "high"]].tolist() == pytest.approx(
        expected, abs=0.1
    )
    phase = layers_of(TRAINED, "reconstruction", "phase")
    apart = of_each.to_numpy() - 100 * (phase["score"] / phase["other_score"] - 1).to_numpy()
    assert gains.loc[("trained", "reconstruction", "phase"), "above"] == pytest.approx(apart.mean(), abs=0.1)
    of_two = (layers_of(TRAINED, "reconstruction", test).set_index("seed") for test in ("phase", "footage"))
    one, other = (100 * (rows["score"] / rows["other_score"] - 1) for rows in of_two)
    over_footage = "{:.0f}, {:.0f} to {:.0f}".format(*over_weights(one - other))
    said([
        f"rendered objects gain {gain(rendered)}) over five initial weights: clearly more than "
        f"translation ({above('translation')}) and "
        f"photographed objects ({above('rotation_3d')}), not clearly more than footage ({above('footage')}), and not "
        f"clearly less than phase ({above('phase', sign=-1)}).",
        f"Untrained they gain {gain(rendered, networks='untrained')}), clearly less than translation "
        f"({above('translation', 'untrained', -1)}) and phase ({above('phase', 'untrained', -1)}); at the other "
        f"setting {gain(rendered, 'contours')}).",
        f"nothing** from layer 1 to layer 2 ({inside('rotation_3d')}; {inside('rotation_3d', 'contours')} at the",
        f"clearly less than phase ({less('phase')}) and footage ({less('footage')}).",
        f"has the highest gain at both settings ({inside('phase')}; {inside('phase', 'contours')})",
        f"at the first not clearly above rendered objects ({above('phase', sign=-1)}) and footage (by {over_footage})",
        f"at the first setting, by {video('reconstruction')}, and before learning, by "
        f"{video('reconstruction', 'untrained')}; at the second setting they gain less, by "
        f"{video('contours', sign=-1)}",
    ])  # fmt: skip
    for setting in SETTINGS:
        assert gains.loc[("trained", setting)]["gain"].idxmax() == "phase"
    learned = changes("layer 2")
    for setting in SETTINGS:
        row = learned.loc[(setting, rendered)]
        standard_error = (row["high"] - row["change"]) / stats.t.ppf(0.975, 4)
        assert row["change"] - stats.t.ppf(1 - 0.025 / len(learned), 4) * standard_error < 0 and len(learned) == 16


def test_what_learning_does_to_the_second_layer_is_as_the_page_says():
    every, best = changes("layer 2"), changes("layer 2", "best units")

    clear = {(setting, test) for setting, test in every.index[every["clear"]]}
    rendered = "rotation_3d_rendered"
    falling = ("translation", "orientation", "frequency")
    assert clear == {("reconstruction", test) for test in (rendered, *falling)}
    assert (every[every["clear"]]["change"] < 0).sum() == 3
    layer_1 = changes("layer 1")["change"].abs().groupby("setting").sum()
    assert layer_1["contours"] > 5 * every["change"].abs().groupby("setting").sum()["contours"]
    assert set(best.index[best["clear"]]) == {
        *(("contours", test) for test in (rendered, "rotation_2d", "translation")), ("reconstruction", "frequency"),
    }  # fmt: skip
    paired = layers_of(TRAINED, "contours", rendered)["score"].to_numpy()
    paired = paired - layers_of(UNTRAINED, "contours", rendered)["score"].to_numpy()
    smallest = every.loc[("contours", rendered), "p_holm"] / stats.ttest_1samp(paired, 0).pvalue
    assert smallest == pytest.approx(
        16 - (every["p_holm"] < every.loc[("contours", rendered), "p_holm"]).sum(), rel=0.02
    )

    def alone(setting: str, test: str) -> str:
        row = every.loc[(setting, test)]
        return f"{row['change']:.1f}, {row['low']:.1f} to {row['high']:.1f}"

    def cells(test: str) -> str:
        found = (table.loc[(setting, test)] for setting in SETTINGS for table in (every, best))
        return " | ".join(
            "{change:+.1f} ({low:.1f} to {high:.1f})".format(**row) if row["clear"] else "" for row in found
        )

    rises = [table.loc[(setting, rendered)] for table in (every, best) for setting in SETTINGS]
    by = ["{change:.1f} ({low:.1f} to {high:.1f})".format(**row) for row in rises]
    holm = [f"{row['p_holm']:.3f}" for row in rises]
    shown = {
        "orientation": "grating orientation", "frequency": "grating frequency", "translation": "translation",
        rendered: "3-D rotation, rendered", "rotation_2d": "2-D rotation",
    }  # fmt: skip
    assert {test for table in (every, best) for _, test in table.index[table["clear"]]} == set(shown)
    for setting, of in itertools.product(SETTINGS, ("all units", "best units")):
        after, before = (layers_of(table, setting, rendered, of)["score"].to_numpy() for table in (TRAINED, UNTRAINED))
        assert (after > before).all()
    said([
        *(f"| {name} | {cells(test)} |" for test, name in shown.items()),
        "in all initialisations: at p = 1 by {} and {} at the two settings, at p = 0.2 by {} and {}.".format(*by),
        f"(Holm's p {holm[0]}) and at the second at p = 0.2 ({holm[3]}), and not in the other two "
        f"({holm[1]} and {holm[2]}).",
        f"do not (p = 1: {'; '.join(alone(setting, 'rotation_3d') for setting in SETTINGS)})",
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
        f"phase in all {(~silent).sum()} settings that are not silent and in {both('phase')[1]} of the {silent.sum()} "
        "whose first layer is silent",
        "in translation in {} and {} of them".format(*both("translation")),
        f"{combining.min() * 100:.0f} to {combining.max() * 100:.0f} % of its units",
        f"{maps.loc['contours', 'min']:.0f} to {maps.loc['contours', 'max']:.0f} maps",
        f"{maps.loc['reconstruction', 'min']:.0f} to {maps.loc['reconstruction', 'max']:.0f} at the other",
        "{:.0f} to {:.0f} % of all have most of their weight on the border".format(*100 * border.loc["reconstruction"]),
        f"{(swept['oriented'] == 0).sum()} settings have no oriented filter, and "
        f"{(swept['oriented'] > 0.5).sum()} have more",
    ])  # fmt: skip
    assert swept.loc[swept["contours"], "oriented"].iloc[0] > 0.5
    assert swept.loc[swept["reconstruction"], "oriented"].iloc[0] == 0
    fits = fits[fits["epochs"] == 60].assign(longer=fits[["sx", "sy"]].max(axis=1))
    oriented = (fits["r2"] > 0.8) & (fits["frequency"] > 0.05)
    best = fits["setting"] == "reconstruction"
    share = 100 * oriented[best].groupby(fits["seed"]).mean()
    pixels = fits[best & oriented].groupby("seed")["longer"].median()
    alike = [same_fits(network) for _, network in fits[~best].groupby("seed")]
    assert {len(network) for _, network in fits.groupby(["setting", "seed"])} == {24} and len(alike) == 5
    said([
        f"those of (c) have {share.min():.0f} to {share.max():.0f} % oriented filters",
        f"oriented filters are {pixels.min():.1f} to {pixels.max():.1f} pixels long",
        f"had {24 * swept.loc[swept['contours'], 'oriented'].iloc[0]:.0f} oriented filters of 24",
        "those of (c) have {}, {}, {}, {} and {}, and of the 18 all but one are".format(
            *oriented[~best].groupby(fits["seed"]).sum()
        ),
        f"{100 * swept.loc[swept['reconstruction'], 'combining'].iloc[0]:.0f} % of its second-layer units combined",
        f"{min(alike)} to {max(alike)} of the 24 filters of layer 1 have nearly the same Gabor fit",
        f"{min(alike)} to {max(alike)} of the 24 are nearly one broad pattern",
    ])  # fmt: skip


def same_fits(fits: pd.DataFrame) -> int:
    """The most filters whose Gabor fits are as those of one: within 0.01 in r², 0.005 cycles per pixel and 3°."""
    r2, frequency, theta = (
        np.abs(np.subtract.outer(v, v)) for v in fits[["r2", "frequency", "theta_deg"]].T.to_numpy()
    )
    return int(((r2 < 0.01) & (frequency < 0.005) & (np.minimum(theta, 180 - theta) < 3)).sum(0).max())


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
