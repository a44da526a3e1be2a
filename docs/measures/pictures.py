"""Makes the pictures of docs/measures: what each measure looks at, on examples that take a minute to compute.

``python docs/measures/pictures.py`` writes all of them; with names after it, only those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from sklearn.datasets import load_digits
from torch import nn

import assay
from assay.measures.complexity.augmentation import PENALTIES, central_crop, erase, saturation, sobel
from assay.training import NextFrame, train_next_frame

HERE = Path(__file__).parent
BLUE, RED, GREY = "#2a6f97", "#c8443f", "#888888"
plt.rcParams.update(
    {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "font.family": "DejaVu Sans"}
)


def panels(count: int, **layout: object) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, count, figsize=(7.2, 2.7), layout="constrained", **layout)
    return figure, list(np.atleast_1d(axes))


def digits(count: int = 1797) -> assay.stimuli.Labelled:
    loaded = load_digits()
    return assay.stimuli.Labelled((loaded.images[:count, None] / 16).astype(np.float32), loaded.target[:count])


def trained(
    decay: float = 0.0,
    noise: float = 0.0,
    epochs: int = 60,
    rate: float = 0.005,
    after_epoch: Callable[[nn.Module, float], None] = lambda net, loss: None,
) -> nn.Module:
    """A small convolutional network that learned the first 600 digits, with weight decay or with noisy inputs."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip
    data = digits(600)
    inputs, labels = data.shown(), torch.tensor(data.labels)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay)
    for _ in range(epochs):
        losses = []
        for rows in torch.randperm(len(inputs)).split(50):
            optimizer.zero_grad()
            noisy = inputs[rows] + noise * torch.randn(inputs[rows].shape)
            loss = nn.functional.cross_entropy(net(noisy), labels[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        after_epoch(net, float(np.mean(losses)))
    return net.eval()


def straightness() -> Figure:
    figure, (paths, layers) = panels(2, width_ratios=(1.2, 1))
    t = np.linspace(0, 1, 8)
    for name, bend, lift, color in (("pixels", 1.0, 0.9, RED), ("a layer", 0.25, 0.0, BLUE)):
        x, y = t, lift + bend * 0.45 * np.sin(2 * np.pi * t)
        paths.plot(x, y, "o-", color=color, markersize=4)
        paths.annotate(name, (x[-1], y[-1]), (8, 0), textcoords="offset points", color=color, va="center")
    y = 0.9 + 0.45 * np.sin(2 * np.pi * t)
    step = np.array([t[2] - t[1], y[2] - y[1]])
    paths.plot([t[2], t[2] + 1.6 * step[0]], [y[2], y[2] + 1.6 * step[1]], ":", color=GREY)
    paths.annotate("angle $c_t$", (t[2] + 0.2, y[2] + 0.0), color=GREY)
    paths.set(xlim=(-0.05, 1.3), title="one clip as a path; dots are frames", xticks=[], yticks=[])
    clips = assay.stimuli.camera_sequences(size=128, length=11, color="grey")
    measure = assay.Straightness(clips)
    net = assay.Subject(assay.networks.RetinaV1(128), "retina and V1")
    short = measure.summary(measure(net))
    error = [short["curvature_deg"] - short["low"], short["high"] - short["curvature_deg"]]
    layers.errorbar(short["layer"], short["curvature_deg"], yerr=np.array(error), fmt="o-", color=BLUE, capsize=3)
    layers.set(title=f"camera motion, {len(clips.clips)} clips, RetinaV1", ylabel="curvature in degrees")
    layers.set(xlim=(-0.3, len(short) - 0.7))
    return figure


def invariance() -> Figure:
    noise = np.random.default_rng(0).normal(size=(5000, 16))
    shifted = np.stack([np.roll(noise, s, 1) for s in range(16)], 1).reshape(-1, 16)
    orbits = (np.arange(80000) // 16 * 16)[:, None] + np.arange(16)
    units = np.stack([shifted[:, 0], (shifted**4).sum(1).round(9)], 1)
    scores = assay.invariance_scores(units, orbits)
    figure, axes = panels(2)
    names = ("sees one of 16 places", "sees all places alike")
    for i, (axis, name) in enumerate(zip(axes, names, strict=True)):
        threshold = scores["threshold"].iloc[i]
        sign = scores["sign"].iloc[i]
        best = int((sign * units[:, i]).argmax()) // 16
        response = sign * units[best * 16 : best * 16 + 16, i]
        fires = response > threshold
        axis.plot(response, color=GREY, linewidth=1)
        axis.plot(np.flatnonzero(fires), response[fires], "o", color=BLUE, label="fires")
        axis.plot(np.flatnonzero(~fires), response[~fires], "o", color=RED, markerfacecolor="white", label="silent")
        axis.axhline(threshold, color=GREY, linestyle=":")
        axis.set(title=f"{name}: S = {scores['score'].iloc[i]:.0f}", xlabel="shift of the stimulus that drives it most")
    axes[0].set_ylabel("response")
    axes[0].text(15, scores["threshold"].iloc[0], "threshold", color=GREY, ha="right", va="bottom")
    axes[0].legend(frameon=False, loc="upper right")
    axes[1].set_ylim(0, None)
    return figure


def perturbation() -> Figure:
    data = digits()
    means = torch.stack([torch.tensor(data.inputs[data.labels == k]).mean(0).flatten() for k in range(10)])
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    net[1].load_state_dict({"weight": means, "bias": -means.square().sum(1) / 2})
    table = assay.PerturbationResponse(data, ("intra", "inter"), magnitudes=21)(net)
    figure, (curves, density) = panels(2)
    for name, color in (("intra", BLUE), ("inter", RED)):
        points = table[(table["perturbation"] == name) & (table["quantity"] == "accuracy")]
        gi = table[(table["perturbation"] == name) & (table["quantity"] == "gi")]["value"].item()
        curves.plot(points["magnitude"], points["value"], color=color, label=f"{name}: Gi = {gi:.2f}")
        curves.fill_between(points["magnitude"], points["low"], points["high"], color=color, alpha=0.2, linewidth=0)
        if name == "inter":
            u = np.linspace(0, 1, len(points))
            pcd = assay.perturbation_cumulative_density(points["magnitude"], points["value"])
            density.plot(u, u, color=GREY, linestyle=":", label="ideal: accuracy 1 everywhere")
            density.plot(u, pcd, color=color, label="inter")
            density.fill_between(u, pcd, u, color=color, alpha=0.2, linewidth=0)
    curves.set(title="perturbation response curve", xlabel="magnitude α", ylabel="accuracy", ylim=(0, 1.03))
    curves.legend(frameon=False, loc="lower left")
    density.set(title="its cumulative density", xlabel="u, the share of the range of α", ylabel="PCD(u)", ylim=(0, 1))
    density.legend(frameon=False, loc="upper left")
    return figure


def norms() -> Figure:
    weight = np.array([[1.5, 0.6], [0.2, 0.9]])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    u, s, _ = np.linalg.svd(weight)
    figure, (plane, layers) = panels(2)
    plane.plot(*circle, color=GREY, label="inputs of length 1")
    plane.plot(*(weight @ circle), color=BLUE, label="what W makes of them")
    for i, color in ((0, RED), (1, BLUE)):
        axis = u[:, i] * s[i] * np.sign(u[0, i])
        plane.annotate("", axis, (0, 0), arrowprops={"arrowstyle": "->", "color": color})
    plane.text(0.85, 0.62, "‖W‖₂", color=RED)
    plane.set(aspect="equal", xticks=[], yticks=[], ylim=(-2.1, 1.2), title="a layer of two units")
    plane.legend(frameon=False, loc="lower center", fontsize=8)
    for decay, name, color in ((0.0, "without weight decay", RED), (1.0, "with weight decay", BLUE)):
        table = assay.Norms(shape=(1, 8, 8))(trained(decay))
        spectral = table[table["quantity"] == "spectral norm"]
        layers.plot(range(1, len(spectral) + 1), spectral["value"], "o-", color=color, label=name)
    layers.set(title="spectral norms, two trained networks", xlabel="layer with weights", ylabel="‖W‖₂")
    layers.set(xticks=range(1, len(spectral) + 1), ylim=(0, None))
    layers.legend(frameon=False, loc="best")
    return figure


def margins() -> Figure:
    figure, (plane, distribution) = panels(2)
    random = np.random.default_rng(1)
    for centre, color in (((-1.0, 0.2), BLUE), ((1.2, -0.3), RED)):
        points = random.normal(centre, 0.45, (25, 2))
        plane.plot(*points.T, "o", color=color, markersize=3)
    plane.plot([-0.1, 0.3], [-1.5, 1.3], color=GREY)
    start, foot = np.array([-1.1, 0.8]), np.array([0.21, 0.64])
    plane.plot(*start, "o", color=BLUE, markersize=5)
    plane.annotate("", foot, start, arrowprops={"arrowstyle": "<->", "color": "black"})
    plane.text(-0.85, 0.86, "γ / ‖∇γ‖₂")
    plane.set(aspect="equal", xticks=[], yticks=[], title="distance to the decision boundary")
    for noise, name, color in ((0.0, "trained as they are", RED), (0.4, "trained with noise", BLUE)):
        measure = assay.Margins(digits(600), percentiles=tuple(range(1, 100)), bootstrap=0)
        table = measure(trained(noise=noise))
        table = table[(table["layer"] == "input") & table["quantity"].str.match(r"normalised margin p\d+$")]
        share = table["quantity"].str.extract(r"p(\d+)$")[0].astype(int)
        distribution.plot(table["value"], share / 100, color=color, label=name)
    distribution.set(title="distances of the training digits", xlabel="margin at the input ÷ spread of the data")
    distribution.set(ylabel="share of inputs below", ylim=(0, 1), xlim=(0, None))
    distribution.legend(frameon=False, loc="lower right")
    return figure


def sharpness() -> Figure:
    figure, (axis,) = panels(1)
    data = digits(600)
    labels = torch.tensor(data.labels)
    sizes = np.geomspace(0.005, 1.0, 25)
    for decay, name, color in ((0.0, "without weight decay", RED), (1.0, "with weight decay", BLUE)):
        net = trained(decay)
        table = assay.Sharpness(data, kinds=("sigma",), bootstrap=0)(net).set_index("quantity")
        sigma = table.loc["sigma", "value"]
        weights = {k: v.clone() for k, v in net.state_dict().items()}
        curve = []
        for size in sizes:
            accuracies = []
            for seed in range(10):
                noise = torch.Generator().manual_seed(seed)
                moved = {k: v + size * torch.randn(v.shape, generator=noise) for k, v in weights.items()}
                with torch.no_grad():
                    scores = torch.func.functional_call(net, moved, (data.shown(),))
                accuracies.append((scores.argmax(1) == labels).float().mean().item())
            curve.append(np.mean(accuracies))
        axis.plot(sizes, curve, color=color, label=f"{name}: σ = {sigma:.3f}")
        axis.plot([sigma, sigma], [0, 0.9], ":", color=color)
    axis.axhline(0.9, color=GREY, linestyle=":")
    axis.text(1.0, 0.92, "accuracy without noise, minus 0.1", color=GREY, ha="right")
    axis.set(xscale="log", ylim=(0, 1.03), xlabel="standard deviation σ of noise on all weights", ylabel="accuracy")
    axis.legend(frameon=False, loc="lower left")
    return figure


def start_of_training() -> dict[str, torch.Tensor]:
    """The weights that the small network begins with."""
    return {name: tensor.clone() for name, tensor in trained(epochs=0).state_dict().items()}


def distance() -> Figure:
    figure, axes = panels(2, sharey=True)
    start = start_of_training()
    for axis, decay, name in zip(axes, (0.0, 1.0), ("without weight decay", "with weight decay"), strict=True):
        tables: list[np.ndarray] = []

        def note(net: nn.Module, loss: float, tables: list[np.ndarray] = tables) -> None:
            table = assay.InitialDistance(shape=(1, 8, 8))(assay.Subject(net, initial_weights=start))
            tables.append(table.loc[table["quantity"] == "frobenius distance", "value"].to_numpy())

        trained(decay, after_epoch=note)
        epochs = np.arange(1, len(tables) + 1)
        for layer, color in zip(range(3), (RED, BLUE, GREY), strict=True):
            axis.plot(epochs, [table[layer] for table in tables], color=color, label=f"layer {layer + 1}")
        axis.set(title=name, xlabel="epoch", ylim=(0, None))
    axes[0].set_ylabel("distance $||W_i - W_i^0||_F$")
    axes[1].legend(frameon=False, loc="upper left")
    return figure


def margin_bounds() -> Figure:
    figure, (scales, distribution) = panels(2)
    data, net = digits(600), trained()
    factors = np.geomspace(0.1, 10, 9)
    plain, over = [], []
    for factor in factors:
        scaled = nn.Sequential(*list(net)[:-1], nn.Linear(128, 10))
        scaled[-1].load_state_dict({name: float(factor) * tensor for name, tensor in net[-1].state_dict().items()})
        norms = assay.Norms(shape=(1, 8, 8))(scaled).set_index("quantity")["value"]
        plain.append(norms["log spectral product"])
        bounds = assay.MarginBounds(data, bootstrap=0)(scaled).set_index("quantity")["value"]
        over.append(bounds["log spectral product over margin"])
    scales.plot(factors, plain, "o-", color=RED, markersize=3, label="product of norms")
    scales.plot(factors, over, "o-", color=BLUE, markersize=3, label="over the squared margin")
    scales.set(xscale="log", xlabel="factor of the last layer", ylabel="logarithm")
    scales.legend(frameon=False)
    with torch.no_grad():
        scores, labels = net(data.shown()), torch.tensor(data.labels)
    rivals = scores.scatter(1, labels[:, None], -torch.inf).amax(1)
    margins = (scores.gather(1, labels[:, None])[:, 0] - rivals).numpy()
    distribution.hist(margins, bins=30, color=GREY)
    tenth = np.percentile(margins, 10)
    distribution.axvline(tenth, color=BLUE)
    distribution.text(tenth, distribution.get_ylim()[1], f" 10th percentile: {tenth:.1f}", color=BLUE, va="top")
    distribution.set(xlabel="margin of a training digit", ylabel="digits", xlim=(0, None))
    return figure


def pac_bayes() -> Figure:
    figure, (parts, whole) = panels(2)
    start, data = start_of_training(), digits(600)
    tables: dict[int, dict[str, float]] = {}
    epoch = 0

    def note(net: nn.Module, loss: float) -> None:
        nonlocal epoch
        epoch += 1
        if epoch % 5 == 0:
            subject = assay.Subject(net, initial_weights=start)
            table = assay.PacBayes(data, draws=5, steps=10, bootstrap=0)(subject).set_index("quantity")["value"]
            far = assay.InitialDistance(shape=(1, 8, 8))(subject).set_index("quantity")["value"]
            tables[epoch] = {**table.to_dict(), "distance": far["parameter distance"]}

    trained(after_epoch=note)
    for key, label, color in (("distance", "distance from the initial weights", RED), ("sigma", "noise σ", BLUE)):
        series = np.array([table[key] for table in tables.values()])
        parts.plot(list(tables), series / series[0], "o-", color=color, markersize=3, label=label)
    parts.set(xlabel="epoch", ylabel="relative to epoch 5", ylim=(0, None))
    parts.legend(frameon=False, loc="lower right")
    whole.plot(list(tables), [table["pac-bayes init"] for table in tables.values()], "o-", color=GREY, markersize=3)
    whole.set(xlabel="epoch", ylabel="pac-bayes init", ylim=(0, None))
    return figure


def training_speed() -> Figure:
    figure, (axis,) = panels(1)
    for rate, color in ((0.005, BLUE), (0.001, RED)):
        losses: list[float] = []
        net = trained(rate=rate, after_epoch=lambda net, loss, losses=losses: losses.append(loss))
        subject = assay.Subject(net, history=pd.DataFrame({"running_loss": losses}))
        table = assay.TrainingSpeed()(subject).set_index("quantity")["value"]
        label = f"learning rate {rate:g}: sum of losses {table['sum of losses']:.1f}"
        axis.plot(np.arange(1, len(losses) + 1), losses, color=color, label=label)
        axis.plot([table["epochs to 0.1"]] * 2, [1e-4, 0.1], ":", color=color)
    for loss in (0.1, 0.01):
        axis.axhline(loss, color=GREY, linewidth=0.8)
    axis.set(yscale="log", xlabel="epoch", ylabel="training loss", ylim=(2e-4, 3), xlim=(0, 61))
    axis.legend(frameon=False, loc="upper right")
    return figure


def clusters() -> Figure:
    figure, axes = panels(2)
    random = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [3.0, 0.6], [1.4, 2.4]])
    points = random.normal(size=(3, 30, 2))
    labels = np.repeat(np.arange(3), 30)
    for axis, spread in zip(axes, (0.35, 0.95), strict=True):
        x = centres[:, None] + spread * points
        index = assay.davies_bouldin_index(x.reshape(-1, 2), labels)
        for cluster, color in zip(x, (BLUE, RED, GREY), strict=True):
            middle = cluster.mean(0)
            scatter = np.linalg.norm(cluster - middle, axis=1).mean()
            axis.plot(*cluster.T, "o", color=color, markersize=3, alpha=0.7)
            axis.add_patch(Circle(tuple(middle), scatter, fill=False, color=color))
            axis.plot(*middle, "+", color=color, markersize=9)
        axis.set(aspect="equal", xticks=[], yticks=[], title=f"Davies–Bouldin index {index:.2f}")
        axis.set(xlim=(-2.2, 5.2), ylim=(-1.9, 4.3))
    return figure


def human_similarity() -> Figure:
    """Simulated people who see three classes of digits, and what two networks make of the same digits."""
    data = digits(600)
    rows = np.concatenate([np.flatnonzero(data.labels == digit)[:12] for digit in (0, 1, 4)])
    images = assay.stimuli.Images(data.inputs[rows], data.labels[rows])
    noise = np.random.default_rng(0).normal(size=(5, len(rows) * (len(rows) - 1) // 2))
    people = 1 + 0.6 * assay.category_rdm(images.labels) + 0.5 * noise
    measure = assay.HumanSimilarity((images, people))
    tables = {"trained": measure(trained()), "untrained": measure(trained(epochs=0))}
    figure, (matrix, network, scores) = panels(3, width_ratios=(1, 1, 1.25))
    rdms = {"mean of 5 people": people.mean(0), "trained network": measure.rdms(assay.Subject(trained()))["all"].rdm}
    for axis, (name, rdm) in zip((matrix, network), rdms.items(), strict=True):
        axis.imshow(assay.stimuli.RdmSet(rdm).matrices[0].argsort(None).argsort().reshape(36, 36), cmap="viridis")
        axis.set(title=name, xticks=[5.5, 17.5, 29.5], xticklabels=["0", "1", "4"], yticks=[])
    rows_of = [(name, table.set_index("layer").loc["all"]) for name, table in tables.items()]
    baselines = tables["trained"].set_index("layer")
    rows_of += [(name, baselines.loc[name]) for name in ("pixels", "retina and V1", "categories")]
    for place, (name, row) in enumerate(rows_of):
        color = BLUE if name in tables else GREY
        scores.plot([row["subject_low"], row["subject_high"]], [place, place], color=color)
        scores.plot(row["subject_mean"], place, "o", color=color)
    scores.axvspan(*baselines.loc[["lower bound", "upper bound"], "subject_mean"], color=RED, alpha=0.2, linewidth=0)
    scores.set(yticks=range(len(rows_of)), yticklabels=[name for name, _ in rows_of], ylim=(len(rows_of) - 0.4, -0.6))
    scores.set(title="beside the noise ceiling", xlabel="mean similarity to single people")
    return figure


def moving_discs(count: int, seed: int, length: int = 10, size: int = 16) -> list[np.ndarray]:
    """Clips of a soft disc that flies straight ahead and bounces off the edges, T×1×H×W."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    clips = []
    for _ in range(count):
        place, speed = random.uniform(4, size - 4, 2), random.choice([-1, 1], 2) * random.uniform(1, 2, 2)
        frames = []
        for _ in range(length):
            frames.append(1 / (1 + np.exp(2 * (np.hypot(y - place[0], x - place[1]) - 2.5))))
            place = place + speed
            speed = np.where((place > 2) & (place < size - 3), speed, -speed)
            place = place.clip(2, size - 3)
        clips.append(np.stack(frames)[:, None].astype(np.float32))
    return clips


def next_frame_error() -> Figure:
    """A small PredNet that learned how discs move, on discs that it has not seen."""
    torch.manual_seed(0)
    network = assay.PredNet((1, 16))
    recipe = NextFrame(epochs=40, sequences=80, batch_size=8, learning_rate=0.003)
    train_next_frame(network, moving_discs(200, seed=0), recipe)
    unseen = moving_discs(40, seed=1)
    videos = torch.from_numpy(np.stack(unseen))
    with torch.no_grad():
        predicted = network(videos)
    measure = assay.NextFrameError(assay.stimuli.Sequences.of(**{f"clip{i}": v for i, v in enumerate(unseen)}))
    table = measure.summary(measure(network))
    figure, (strip, errors) = panels(2, width_ratios=(1.6, 1))
    rows = {"frame": videos[0, 1:7], "copy of the last": videos[0, :6], "prediction": predicted[0, 1:7]}
    framed = [nn.functional.pad(pictures, (1, 1, 1, 1), value=0.5)[:, 0] for pictures in rows.values()]
    strip.imshow(torch.cat([torch.cat(list(row), 1) for row in framed]), cmap="gray", vmin=0, vmax=1)
    places = [18 * i + 8.5 for i in range(6)]
    strip.set(yticks=places[:3], yticklabels=list(rows), xticks=places, xticklabels=range(1, 7), xlabel="time step")
    strip.tick_params(length=0)
    steps = range(1, videos.shape[1])
    guesses = {"copy of the last": (videos[:, :-1], "copy_last_mse", GREY), "PredNet": (predicted[:, 1:], "mse", BLUE)}
    for name, (guess, column, color) in guesses.items():
        curve = (videos[:, 1:] - guess).square().mean((0, 2, 3, 4))
        errors.plot(steps, curve, "o-", markersize=3, color=color, label=f"{name}: {table[column].item():.4f}")
    errors.set(title="40 unseen clips", xlabel="time step", ylabel="mean squared error", ylim=(0, 0.06))
    errors.legend(frameon=False, loc="upper right")
    return figure


def matching() -> Figure:
    """A trial of object matching, and how often the pixels and an untrained network find the match."""
    objects = assay.stimuli.novel_objects(count=20, size=64, changes=2)
    measure = assay.ObjectMatching(objects)
    trials = measure.galleries()
    pixels = torch.tensor(objects.inputs).flatten(1)
    trial = int(np.flatnonzero(trials.factor == "rotation")[0])
    shown = [trials.probes[trial], *trials.pictures[trial, :4]]
    figure = plt.figure(figsize=(7.2, 2.7), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    for place, (axis, number) in enumerate(zip(left.subplots(1, 5), shown, strict=True)):
        axis.imshow(objects.inputs[number].transpose(1, 2, 0))
        cosine = torch.cosine_similarity(pixels[shown[0]].double(), pixels[number].double(), dim=0)
        axis.set_title(("probe", "match", "others", "", "")[place], fontsize=9)
        axis.set(xticks=[], yticks=[], xlabel=f"{cosine:.3f}" if place else "cosine\nof pixels:")
    accuracy = right.subplots()
    torch.manual_seed(0)
    alike = assay.ObjectMatching(objects, distractors="alike")
    tables = {
        "pixels": (measure.of_features(pixels).table, BLUE),
        "pixels, others alike": (alike.of_features(pixels).table, RED),
        "untrained network": (measure(assay.networks.small_resnet()), GREY),
    }
    for number, (name, (table, color)) in enumerate(tables.items()):
        ends = np.array([table["accuracy"] - table["low"], table["high"] - table["accuracy"]])
        places = np.arange(len(table)) + 0.2 * (number - 1)
        accuracy.errorbar(places, table["accuracy"], yerr=ends, fmt="o", markersize=4, color=color, label=name)
    accuracy.axhline(table["chance"].iloc[0], color=GREY, linestyle=":")
    accuracy.set(xticks=range(len(table)), xticklabels=table["factor"], ylim=(0, 1.35), yticks=(0, 0.5, 1))
    accuracy.set(ylabel="accuracy", xlabel="what differs between probe and match")
    accuracy.legend(frameon=False, loc="upper right", fontsize=8)
    return figure


def scene(size: int) -> torch.Tensor:
    """A house and the sun over a meadow, drawn large and averaged down, so that edges are smooth."""
    y, x = torch.meshgrid(torch.linspace(0, 1, 8 * size), torch.linspace(0, 1, 8 * size), indexing="ij")
    parts = (
        (y >= 0, (0.55, 0.72, 0.88)),  # sky
        (y > 0.7 + 0.05 * torch.sin(6 * x), (0.35, 0.6, 0.3)),  # meadow
        ((x - 0.76) ** 2 + (y - 0.22) ** 2 < 0.014, (0.95, 0.8, 0.3)),  # sun
        ((x > 0.2) & (x < 0.55) & (y > 0.48) & (y < 0.82), (0.78, 0.7, 0.62)),  # house
        ((y < 0.48) & (y > 0.26) & ((x - 0.375).abs() < y - 0.26), (0.7, 0.28, 0.25)),  # roof
        ((x > 0.33) & (x < 0.43) & (y > 0.62) & (y < 0.82), (0.4, 0.3, 0.25)),  # door
    )
    picture = torch.zeros(3, 8 * size, 8 * size)
    for inside, color in parts:
        picture[:, inside] = torch.tensor(color)[:, None]
    return nn.functional.avg_pool2d(picture[None], 8)


def augmentation() -> Figure:
    x = scene(32)
    factor = torch.tensor([1.6])
    shown = {
        "as it is": x,
        "flip": x.flip(3),
        "saturation": saturation(x, factor),
        "crop": central_crop(x),
        "sobel": sobel(x),
        "brightness": x + 0.5,
        "flip saturation": saturation(x.flip(3), factor),
        "erase": erase(x, torch.tensor([[6, 5, 16, 13]])),
    }
    figure, axes = plt.subplots(2, 4, figsize=(6.4, 3.6), layout="constrained")
    for axis, (name, picture) in zip(axes.flat, shown.items(), strict=True):
        axis.imshow(picture[0].permute(1, 2, 0).clamp(0, 1))
        cost = f"\na changed class costs {PENALTIES[name]:g}" if name in PENALTIES else "\n"
        axis.set_title(name + cost, fontsize=7.5)
        axis.set_axis_off()
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        straightness, invariance, perturbation, norms, distance, margins, margin_bounds, sharpness, pac_bayes,
        training_speed, clusters, augmentation, human_similarity,
        next_frame_error, matching,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().savefig(HERE / f"{name}.png", dpi=100)
