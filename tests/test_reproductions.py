"""The reproductions run, small, from the command their pages give; what they committed is what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
from scipy.stats import kendalltau

from assay import conditional_mutual_information
from assay.broad.inference import holm

ROOT = Path(__file__).parents[1] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"
PERTURBATION = ROOT / "perturbation-response-2021"


def test_measuring_invariances_runs_small(tmp_path):
    command = [sys.executable, str(INVARIANCES / "reproduce.py"), "--small", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for kind in ("tables", "figures"):
        made = {p.name for p in (tmp_path / kind).iterdir()}
        assert made == {p.name for p in (INVARIANCES / kind).iterdir()}
    for path in (tmp_path / "tables").glob("*.csv"):
        columns = set(pd.read_csv(path).columns)
        committed = set(pd.read_csv(INVARIANCES / "tables" / path.name).columns)
        assert columns == committed - {"rotation_3d"}, path.name  # photographed objects need their data


def test_the_page_says_what_the_tables_say():
    """Every figure of the text that a reader would quote, from the committed tables."""
    page = (INVARIANCES / "README.md").read_text()
    table = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
    grid = table["a_sparsity_map"]
    sparse, plain = grid[grid["target"].notna()], grid[grid["target"].isna()]
    best = sparse[(sparse["weight_decay"] == 0.1) & (sparse["target"] == -0.8)]["mean"].mean()
    assert sparse.groupby(["weight_decay", "target"])["mean"].mean().idxmax() == (0.1, -0.8)
    rank = grid[["mean", "gabor_r2"]].dropna().corr("spearman").iloc[0, 1]
    depth = table["b_depth"][table["b_depth"]["test"] == "mean"]["score"].tolist()
    every = table["c_cdbn"]
    every["apart"] = (every["layer_2_low"] > every["layer_1_high"]) | (every["layer_1_low"] > every["layer_2_high"])
    cdbn = every[(every["epochs"] == 60) & (every["near_max"] == 0.1)]
    mean = cdbn.groupby("transformation")[["layer_1", "layer_2"]].mean()
    gain = 100 * (mean["layer_2"] / mean["layer_1"] - 1)
    apart = cdbn.groupby("transformation")["apart"].sum()

    def moved(transformation: str, epochs: int, near_max: float) -> str:
        of = every[(every["transformation"] == transformation) & (every["epochs"] == epochs)]
        one, two = of[of["near_max"] == near_max][["layer_1", "layer_2"]].mean()
        return f"{one:.1f} → {two:.1f}"

    fits, waves = {}, {}
    for name in ("a_best_network_gabor_fits", "c_cdbn_gabor_fits"):
        good = table[name]["r2"] > 0.8
        fits[name], waves[name] = good.sum(), (good & (table[name]["frequency"] * table[name]["sx"] > 0.15)).sum()
    copies = table["b_weight_decay_grid"]
    lost = copies[copies["mean"].isna()].groupby("layer").size()
    agree = table["d_agreement"].set_index(["test", "other"])["spearman"]
    against = agree[[k for k in agree.index if set(k) & {"phase", "frequency"} and not set(k) <= {"phase", "frequency"}
                     and "rotation_3d" not in k and "orientation" not in k]]  # fmt: skip
    tests = ["frequency", "orientation", "phase", "translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered"]
    row = {
        "best": sparse[(sparse["weight_decay"] == 0.1) & (sparse["target"] == -0.8)],
        "unregularised": plain[plain["weight_decay"] == 0],
    }
    claims = [
        f"scores {best:.1f}", f"score and Gabor fit is {rank:.2f}", f"{len(sparse)} sparse and {len(plain)} plain",
        f"high-frequency weights score {plain[plain['weight_decay'] == 0]['mean'].mean():.1f}",
        *(f"**{score:.1f}**" for score in depth),
        *(f"| {mean.loc[t, 'layer_1']:.1f} | {mean.loc[t, 'layer_2']:.1f} | " for t in mean.index),
        *(f"{gain[t]:+.0f} %".replace("-", "−") for t in mean.index),
        *(f"in {apart[t]} of 3" for t in ("phase", "translation", "rotation_3d_rendered", "orientation")),
        f"orientation {moved('orientation', 240, 0.1)}", f"COIL-20 ({moved('rotation_3d', 240, 0.1)})",
        f"orientation {moved('orientation', 60, 1)}",
        f"{fits['a_best_network_gabor_fits']} filters have r² above 0.8, {waves['a_best_network_gabor_fits']} of them",
        f"{fits['c_cdbn_gabor_fits']} of 24 above 0.8, {waves['c_cdbn_gabor_fits']} of them",
        f"{table['a_best_network_gabor_fits']['r2'].median():.2f}",
        f"median r² {table['c_cdbn_gabor_fits']['r2'].median():.2f}",
        f"{lost['stack.1']} second and {lost['stack.2']} third layers have no score",
        f"over {table['d_agreement']['networks'].iloc[0]} networks",
        f"translation ({agree['orientation', 'translation']:.2f}), 2-D rotation "
        f"({agree['orientation', 'rotation_2d']:.2f}) and rendered 3-D rotation "
        f"({agree['orientation', 'rotation_3d_rendered']:.2f})",
        f"({against.max():.2f} to {against.min():.2f})".replace("-", "−"),
        *(f"| {name} | " + " | ".join(f"{of[t].mean():.1f}" for t in tests) + f" | **{of['mean'].mean():.1f}** |"
          for name, of in row.items()),
    ]  # fmt: skip
    flat = " ".join(page.split())
    for claim in claims:
        assert claim in flat, claim
    gains = cdbn.set_index(["transformation", "seed"])["gain_percent"]
    for better in ("phase", "translation", "rotation_3d_rendered"):
        assert (gains[better] > 0).all()
    assert (gains["orientation"] < 0).all()
    assert not apart[["frequency", "rotation_2d", "rotation_3d"]].any()


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


def test_perturbation_response_runs_small(tmp_path):
    """The two corpora go the same way: one is run, its tables stand in for the other's in the figures."""
    command = [sys.executable, str(PERTURBATION / "reproduce.py"), "--small", "--out", str(tmp_path)]
    for part in ("fashion", "invariance", "tables", "figures"):
        done = subprocess.run([*command, "--corpora", str(tmp_path / "runs"), part], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        for path in (tmp_path / "tables").glob("fashion_*.csv"):
            shutil.copy(path, path.with_name(path.name.replace("fashion", "cifar10")))
    ranking = pd.read_csv(tmp_path / "tables" / "fashion_ranking.csv")
    assert {"gi intra ℓ=0", "mixup", "DBI · (1 − mixup)", "lowest curvature change"} <= set(ranking["measure"])
    assert ranking["cmi"].between(0, 1 + 1e-12).sum() > 30
    assert len(pd.read_csv(tmp_path / "tables" / "fashion_networks.csv")) == 8
    three = pd.read_csv(tmp_path / "tables" / "invariance_ranking.csv")
    assert set(three["measure"]) == {"gi", "gi folded", "mean accuracy", "random accuracy"}
    for figure in ("table_1", "figure_2", "figure_3"):
        assert (tmp_path / "figures" / f"{figure}.png").stat().st_size > 10_000


def of_negative(networks: pd.DataFrame, measure: str) -> list[float]:
    """CMI of a measure and of its negative, the smaller first."""
    hyper = networks[["depth", "width", "dropout", "weight_decay", "batch_size", "learning_rate"]]
    found = (conditional_mutual_information(s * networks[measure], networks["gap"], hyper) for s in (1, -1))
    return sorted(found)


def test_the_page_on_perturbation_response_says_what_its_tables_say():
    page = " ".join((PERTURBATION / "README.md").read_text().split())
    table = {p.stem: pd.read_csv(p) for p in (PERTURBATION / "tables").glob("*.csv")}
    corpora = ("fashion", "cifar10")
    of = {name: table[f"{name}_ranking"].set_index("measure") for name in corpora}
    networks = {name: table[f"{name}_networks"] for name in corpora}
    to_mixup = {name: table[f"{name}_comparisons"].query("not self_pairs").set_index("other") for name in corpora}
    pairs = table["equal_mixup"].set_index(["corpus", "also", "within"])
    for name in corpora:
        assert len(networks[name]) == 96 and not len(table[f"{name}_left_out"])
        assert (of[name]["n"] == 96).all() and len(of[name]) == 76

    def told(value: float, low: float, high: float, how: str = "{} ({}–{})", factor: float = 100) -> str:
        digits = 1 if factor == 100 else 2
        return how.format(*(f"{factor * v:.{digits}f}" for v in (value, low, high))).replace("-", "−")

    def cmi(name: str, measure: str, how: str = "{} ({}–{})") -> str:
        return told(*of[name].loc[measure, ["cmi", "cmi_low", "cmi_high"]], how)

    def before(name: str, measure: str) -> str:
        """By how much mixup is before another measure, or behind it."""
        row = to_mixup[name].loc[measure]
        ends = [row["low"], row["high"]] if row["difference"] > 0 else [-row["high"], -row["low"]]
        return told(abs(row["difference"]), *ends, "{}, {}–{}")

    def right(name: str, also: str = "mixup", within: float = 0.005) -> str:
        row = pairs.loc[(name, also, within)]
        return f"{100 * row['right']:.0f} % ({100 * row['right_low']:.0f}–{100 * row['right_high']:.0f})"

    # (a), (b): every row, with the paper's numbers as the page gives them.
    cells = re.findall(r"\| ([^|]+) \| ([^|]+ \| [^|]+) \| ([^|]+) \| ([^|]+ \| [^|]+) \| ([^|]+) \| ([^|]+) \|", page)
    rows = {re.sub("(?:Gi|Pal) ", lambda m: m[0].lower(), name): rest for name, *rest in cells}
    kin = [m for m in of["cifar10"].index if re.search("^(?:gi|pal) |mixup|^mean of pal", m)]
    assert len(kin) == 14
    for measure in kin:
        fashion, _, cifar, _, _ = rows[measure]
        for name, cell in (("fashion", fashion), ("cifar10", cifar)):
            assert cell == f"{cmi(name, measure)} | {of[name].loc[measure, 'tau']:.2f}".replace("-", "−"), measure
    paper = pd.DataFrame({m: [float(rows[m][1]), float(rows[m][3])] for m in kin}, index=list(corpora)).T
    assert paper.loc["pal inter ℓ=1"].tolist() == [14.13, 12.09] and paper.idxmax().tolist() == [
        "gi inter ℓ=1", "PCA of gi intra ℓ=0 and mixup",
    ]  # fmt: skip
    single = [m for m in kin if re.fullmatch(r"(?:gi|pal) \w+ ℓ=\d|(?:manifold )?mixup", m)]
    alike = [
        kendalltau(of[name].loc[m, column], paper.loc[m, name]).statistic
        for name, m, column in (
            ("cifar10", single, "cmi"),
            ("cifar10", kin, "cmi"),
            ("cifar10", single, "cmi_distinct"),
            ("fashion", single, "cmi"),
        )
    ]
    favour = [of_negative(networks[name], m) for name in corpora for m in networks[name].columns[14:]]
    favour = [low and high / low - 1 for low, high in favour if high > 0.04]
    drawn = [networks[n].set_index("network").loc[pairs.loc[(n, "mixup", 0.005), ["one", "other"]]] for n in corpora]
    last = [of[n].loc["curvature change of the last layer", ["tau", "tau_low", "tau_high"]] for n in corpora]
    gi = table["invariance_comparisons"].assign(ahead=lambda t: t["difference"] > 0, surely=lambda t: t["low"] > 0)
    lead = gi.groupby(["self_pairs", "other"])["difference"].mean()
    scores = ["random accuracy", "mean accuracy", "gi", "gi folded"]
    looks = [m for m in of["cifar10"].index if re.search("curvature|invariance", m)]
    beside = [
        f"| {m} | " + " | ".join(f"{cmi(n, m)} | {of[n].loc[m, 'tau']:.2f}".replace("-", "−") for n in corpora) + " |"
        for m in looks if "of the last layer" not in m or "curvature" in m
    ]  # fmt: skip
    within = networks["fashion"]["gap"] - networks["fashion"].groupby("dropout")["gap"].transform("mean")
    known = networks["fashion"]["test_accuracy"].mean()
    shares = {n: table[f"{n}_gap"].set_index("hyper-parameter").loc["dropout", "share"] for n in corpora}
    granulated = [of[n].filter(like="granulated", axis=1).loc["scale invariance, mean of layers"] for n in corpora]
    straighter = [of[n].loc["lowest curvature change", ["tau", "tau_low", "tau_high"]] for n in corpora]
    spread = table["cifar10_batches"].query("perturbation == 'intra'").groupby("batches")["cmi"].agg(["mean", "std"])
    seconds = table["fashion_batch_seconds"].groupby("batches")["seconds"].mean()
    accuracy = {n: 100 * networks[n]["train_accuracy"] for n in corpora}
    above = [(r["cmi"] > r["cmi_chance"]).sum() for r in of.values()]
    p90 = "normalised margin p90 at input"
    claims = [
        *beside,
        f"stay below {100 * of['fashion']['cmi_chance'].iloc[0]:.1f} on Fashion-MNIST and "
        f"{100 * of['cifar10']['cmi_chance'].iloc[0]:.1f} on CIFAR-10",
        f"by luck; {above[0]} and {above[1]} are",
        f"{accuracy['fashion'].min():.1f} to {accuracy['fashion'].max():.1f} % on Fashion-MNIST, "
        f"{accuracy['cifar10'].min():.1f} to {accuracy['cifar10'].max():.1f} % on CIFAR-10",
        "(Pearson " + " and ".join(f"{networks[n]['gap'].corr(accuracy[n]):.2f}" for n in corpora),
        f"two columns is {alike[0]:.2f} over the ten", f"τ between the columns is {alike[1]:.2f}",
        f"before Gi intra ℓ=0 (by {before('cifar10', 'gi intra ℓ=0')})",
        f"before mixup ({before('cifar10', 'DBI · (1 − mixup)')})",
        f"PCA loses (by {before('cifar10', 'PCA of gi intra ℓ=0 and mixup')})",
        f"({cmi('fashion', 'gi inter ℓ=1', '{}')} and {cmi('fashion', 'pal inter ℓ=1', '{}')})",
        f"explains {100 * shares['fashion']:.0f} % of the variance", f"CIFAR-10: {100 * shares['cifar10']:.0f} %",
        f"is {100 * within.std():.2f} percentage points", f"up to {100 * (known * (1 - known) / 10_000) ** 0.5:.2f},",
        f"penalty {cmi('cifar10', 'augmentation penalty', '{}, {}–{}')}",
        f"before mixup by {before('cifar10', 'augmentation penalty')})",
        f"(mean drop {cmi('cifar10', 'augmentation mean drop', '{}, {}–{}')})",
        f"quantile {cmi('cifar10', p90, '{}, {}–{}')}; before mixup by {before('cifar10', p90)})",
        f"is first ({cmi('fashion', 'parameter norm', '{}, {}–{}')};",
        f"on CIFAR-10 it tells nothing ({cmi('cifar10', 'parameter norm', '{}')})",
        "granulated τ " + " and ".join(told(*row, "{}, {}–{}", 1) for row in granulated),
        "change is " + " and ".join(told(*row, factor=1) for row in straighter),
        "average " + " and ".join(f"{networks[n]['lowest curvature change'].mean():+.1f}°" for n in corpora),
        f"of {pairs.loc[('fashion', 'mixup', 0.005), 'pairs']:,} such pairs",
        f"in {right('fashion')}, of {pairs.loc[('cifar10', 'mixup', 0.005), 'pairs']} on CIFAR-10",
        f"in {right('cifar10')}, where",
        "it is " + " and ".join(right(n, "train_accuracy") for n in corpora),
        "0.2 points " + " and ".join(right(n, "train_accuracy", 0.002) for n in corpora),
        "(these differ by " + " and ".join(f"{100 * abs(d['train_accuracy'].diff().iloc[1]):.1f}" for d in drawn),
        "smaller gap: " + " and ".join(told(*row, factor=1) for row in last),
        f"by {100 * min(favour):.0f} to {100 * max(favour):.0f} % for measures above 4",
        f"({alike[2]:.2f} without self-pairs)", f"τ between the columns is {alike[3]:.2f} over the ten",
        f"({cmi('cifar10', 'pal intra ℓ=0 · ℓ=1', '{}')} v {cmi('cifar10', 'pal intra ℓ=0', '{}')}; "
        f"the paper {paper.loc['pal intra ℓ=0 · ℓ=1', 'cifar10']:.2f} v {paper.loc['pal intra ℓ=0', 'cifar10']:.2f})",
        *(f"({100 * (lead[True] - lead[False])[m]:.1f} of {100 * lead[True][m]:.1f}" for m in scores[:2]),
        "much alike (τ " + " and ".join(
            f"{kendalltau(networks[n]['gi intra ℓ=0'], networks[n]['mixup']).statistic:.2f}" for n in corpora
        ).replace("-", "−"),
        f"from {100 * spread.loc[1, 'mean']:.1f} with one batch to {100 * spread.loc[39, 'mean']:.1f} with 39",
        f"falls from {100 * spread.loc[1, 'std']:.1f} to {100 * spread.loc[39, 'std']:.1f}",
        f"takes {seconds[1]:.3f} s from one batch and {seconds[78]:.2f} s from 78",
        f"the GPU, {table['fashion_seconds'].set_index('work').loc['perturbation', 'seconds']:.1f} s",
    ]  # fmt: skip

    # (e)
    three = table["invariance_ranking"].set_index(["corpus", "perturbation", "measure"])
    for (corpus, kind), cell in three.groupby(level=[0, 1], sort=False):
        asked = table[f"{corpus}_networks"].query("perturbation == @kind and trained_accuracy >= 0.8")
        shown_in = asked["augmentation"].str.split().str[-1].value_counts()
        counts = " + ".join(str(shown_in.get(level, 0)) for level in ("none", "partial", "full"))
        found = cell.droplevel([0, 1]).loc[scores]
        chance = f"{100 * found['cmi_chance'].iloc[0]:.1f}"
        values = [f"{100 * r['cmi']:.1f} / {100 * r['cmi_distinct']:.1f} / {r['tau']:.2f}" for _, r in found.iterrows()]
        name = {"invariance-vgg": "VGG", "invariance-resnet": "ResNet"}[corpus]
        claims.append(f"| {name}, {kind} | {counts} | {chance} | {' | '.join(values)} |".replace("-", "−"))
    assert not [claim for claim in claims if claim not in page]

    # What the text says in words.
    counted = gi.groupby(["self_pairs", "other"])[["ahead", "surely"]].sum()
    assert counted.loc[True].loc[scores[:2]].to_numpy().tolist() == [[8, 2], [8, 1]]
    assert counted.loc[False].loc[scores[:2]].to_numpy().tolist() == [[6, 0], [4, 0]]
    assert counted["ahead"][True]["gi folded"] == 7
    both = gi[~gi["self_pairs"] & gi["other"].isin(scores[:2])].groupby(["corpus", "perturbation"])["ahead"].all()
    tau = three["tau"].abs().unstack()
    assert both.sum() == 4 and (tau["gi"] > tau["mean accuracy"]).sum() == 4
    distinct = of["cifar10"]["cmi_distinct"]
    for score in ("gi", "pal"):
        assert distinct[f"{score} intra ℓ=0"] > distinct[f"{score} inter ℓ=0"] > distinct[f"{score} inter ℓ=1"]
        assert distinct[f"{score} inter ℓ=1"] > distinct[f"{score} intra ℓ=1"]
    assert distinct[kin].idxmax() == "DBI · (1 − mixup)"
    behind = to_mixup["fashion"].query("low > 0").index
    assert set(behind) == {"manifold mixup", "mean accuracy inter ℓ=0", "parameters", "vc dimension", "layers"}
    assert not (to_mixup["fashion"]["high"] < 0).any() and to_mixup["cifar10"].loc["pal intra ℓ=0", "low"] < 0
    assert of["fashion"]["cmi"].idxmax() == "parameter norm" and of["cifar10"]["cmi"].idxmax() == "augmentation penalty"
    assert len(looks) == 14 and (to_mixup["cifar10"].loc[looks, "low"] > 0).all()
    assert (
        not to_mixup["fashion"].loc[looks, ["low", "high"]].apply(lambda r: r["low"] > 0 or r["high"] < 0, axis=1).any()
    )
    assert all(
        d["gap"].diff().iloc[1] * d["gi intra ℓ=0"].diff().iloc[1] < 0 for d in drawn
    )  # the pairs in the picture
    corrected = pd.Series(holm(to_mixup["cifar10"]["p"].to_numpy()), to_mixup["cifar10"].index)
    better = to_mixup["cifar10"]["high"] < 0
    assert set(corrected[better & (corrected < 0.05)].index) == {"augmentation penalty", "augmentation mean drop"}
    assert to_mixup["cifar10"].loc["normalised margin p1 at input", "low"] > 0 and len(corrected) == 75
    assert [(r.loc[looks, "cmi"] > r["cmi_chance"].iloc[0]).sum() for r in of.values()] == [6, 9]
