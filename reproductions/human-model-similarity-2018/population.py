"""Train a population of PredNets with random hyper-parameters, and measure each every few epochs.

    python population.py footage  --videos FOLDER --out footage.npz
    python population.py train    --footage footage.npz --brain kriegeskorte92 --out runs [--stop hms] [--networks 95]
    python population.py train    … --same 24        one configuration of three levels, from several first weights
    python population.py train    … --long 2         PredNet's own configuration, for 1,250 steps

Every network writes its trajectory, a line of JSON for each time it was measured, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from assay import NextFrameError, ObjectMatching, Subject
from assay.core.determinism import seeded
from assay.measures.similarity.layers import LayerRdm, layer_rdms
from assay.measures.similarity.measure import human_similarity
from assay.networks.prednet import PredNet
from assay.stats.convergence import converged
from assay.stimuli.footage import load_footage
from assay.stimuli.human import HumanStimuli, as_human_stimuli
from assay.stimuli.objects import ObjectPictures, novel_objects
from assay.stimuli.sequences import Sequences
from assay.training.callbacks import Moment, left_as_found
from assay.training.next_frame import NextFrame, TrainedOnFootage, train_next_frame_many

log = logging.getLogger("population")
Array = np.ndarray[Any, Any]

EVERY = 5  # epochs between two measurements, as in the paper
SIDE = 64  # of the pictures of the 92 stimuli and of the objects, in pixels
HELD_OUT = 0.25  # the last part of each video, which no network learns of
UNSEEN = ("carphone_pristine", "realshort")  # no network learns of these videos
STEP = 3  # of the frames every third is shown, so that something moves between two
CHANNELS = (3, 48, 96, 192)
WINDOW, SD = 25, 0.01  # the paper's rule: stable once the standard deviation is at most 0.01 over 25 epochs


@dataclass(frozen=True)
class Configuration:
    """What is drawn for each network."""

    name: str
    epochs: int
    sequences: int
    batch_size: int
    learning_rate: float
    filter_size: int
    loss: str
    levels: int
    seed: int

    def network(self) -> PredNet:
        """The untrained network."""
        size = self.filter_size
        with seeded(self.seed):
            return PredNet(CHANNELS[: self.levels], gate_size=size, prediction_size=size, target_size=size)

    def recipe(self, precision: str) -> NextFrame:
        """How it learns."""
        return NextFrame(
            epochs=self.epochs,
            sequences=self.sequences,
            batch_size=self.batch_size,
            loss=self.loss,  # type: ignore[arg-type]
            learning_rate=self.learning_rate,
            precision=precision,  # type: ignore[arg-type]
            seed=self.seed,
        )


def configurations(count: int, seed: int = 0) -> list[Configuration]:
    """Draw so many configurations; the first are the same however many are drawn."""
    drawn = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        drawn.append(
            Configuration(
                name=f"network{number:03d}",
                epochs=int(rng.choice(np.arange(30, 101, 5))),
                sequences=int(rng.choice([16, 32, 64])),
                batch_size=int(rng.choice([2, 4, 8])),
                learning_rate=float(10 ** rng.uniform(-5, -1.5)),
                filter_size=int(rng.choice([3, 5])),
                loss=str(rng.choice(["L_0", "L_all"])),
                levels=4,
                seed=number,
            )
        )
    return drawn


def one_configuration(count: int) -> list[Configuration]:
    """The same configuration of three levels, from other first weights and other sequences each time."""
    return [
        Configuration(f"same{number:03d}", 150, 32, 4, 1e-3, 3, "L_0", 3, 10_000 + number) for number in range(count)
    ]


def published(count: int) -> list[Configuration]:
    """The configuration of Lotter et al. (2017), for 10 epochs of 150, from other first weights each time.

    So little footage is learned by heart after that: a run of 150 epochs, broken off after 25, had its lowest error on
    held-out footage at the first measurement, after 5.
    """
    return [
        Configuration(f"long{number:03d}", 10, 500, 4, 1e-3, 3, "L_0", 4, 20_000 + number) for number in range(count)
    ]


@dataclass(frozen=True)
class Shown:
    """What the networks are shown while they learn."""

    people: HumanStimuli
    objects: ObjectPictures
    held_out: Sequences

    def rdm(self, subject: Subject) -> LayerRdm:
        """The RDM of the R units of all levels together."""
        layers = [f"R{level}" for level in range(subject.module.levels)]
        return layer_rdms(subject, self.people.images.array, layers)["all"]

    def similarity(self, subject: Subject) -> float:
        """HMS of the R units of all levels together; NaN where some responses are constant or not finite."""
        found = self.rdm(subject)
        return float("nan") if found.status != "ok" else float(human_similarity(found.rdm, self.people))

    def all(self, subject: Subject, top: str) -> dict[str, float]:
        """HMS, next-frame error and the accuracy of matching, by factor."""
        measure = NextFrameError(self.held_out)
        error = measure.summary(measure(subject)).iloc[0]
        matching = ObjectMatching(self.objects, layer=top)(subject).set_index("factor")["accuracy"]
        accuracies = {f"accuracy_{factor}": float(value) for factor, value in matching.items()}
        return {
            "hms": self.similarity(subject),
            "mse": float(error["mse"]),
            "copy_last_mse": float(error["copy_last_mse"]),
            "accuracy": accuracies.pop("accuracy_all"),
            **accuracies,
        }


class Watch:
    """Measure a network every few epochs, keep the lines, and stop it where that is asked for."""

    def __init__(self, configuration: Configuration, file: Path, shown: Shown, signal: str) -> None:
        self.configuration, self.file, self.shown, self.signal = configuration, file, shown, signal
        self.lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        self.top = f"R{configuration.levels - 1}"

    def __call__(self, moment: Moment) -> bool:
        """Measure if it is time; whether to stop."""
        if moment.epoch % EVERY or any(line["epoch"] == moment.epoch for line in self.lines):
            return False
        begin = time.perf_counter()
        with left_as_found(moment.module):
            subject = Subject(moment.module, self.configuration.name)
            if self.signal == "none":
                values = self.shown.all(subject, self.top)
            else:  # a search measures only what it decides by
                values = {"hms": self.shown.similarity(subject)} if self.signal == "hms" else {}
        self.write(moment, time.perf_counter() - begin, values)
        if self.signal in ("none", "never") or moment.epoch < EVERY + WINDOW:
            return False
        signals = [line[self.signal] for line in self.lines]
        return converged(signals, [line["epoch"] for line in self.lines], WINDOW, SD) is not None

    def untrained(self, module: nn.Module) -> None:
        """Measure the network before it learns."""
        if not self.lines and self.signal == "none":
            with left_as_found(module):
                values = self.shown.all(Subject(module, self.configuration.name), self.top)
            self.write(Moment(0, 0, float("nan"), 0.0, module), 0.0, values)

    def write(self, moment: Moment, took: float, values: dict[str, float]) -> None:
        """Keep a line."""
        line = {"network": self.configuration.name, "epoch": moment.epoch, "loss": moment.loss, "measure_s": took}
        line |= values
        self.lines.append(line)
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")


def train(
    drawn: Sequence[Configuration],
    footage: Path,
    brain: Path,
    out: Path,
    device: str,
    at_once: int,
    signal: str,
    precision: str,
    budget: float | None,
) -> None:
    """Train and measure networks side by side; what is written already is not done again."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    out.mkdir(parents=True, exist_ok=True)
    with np.load(footage) as arrays:
        videos = {name: arrays[name] for name in arrays.files}
    learned, held_out = split(videos)
    people = as_human_stimuli(brain)
    shown = Shown(resized(people), novel_objects(50, SIDE, changes=2, device=device), Sequences.of(**held_out))
    left = [one for one in drawn if not (out / f"{one.name}.done").exists()]
    watches = [Watch(one, out / f"{one.name}.jsonl", shown, signal) for one in left]
    began = time.perf_counter()

    def networks() -> Iterator[PredNet]:
        for one, watch in zip(left, watches, strict=True):
            network = one.network().to(device, memory_format=torch.channels_last)
            watch.untrained(network)
            yield network

    def done(number: int, network: nn.Module, result: TrainedOnFootage) -> None:
        one, watch = left[number], watches[number]
        network.eval()
        final = {} if signal == "none" else shown.all(Subject(network, one.name), watch.top)
        np.save(out / f"{one.name}.npy", shown.rdm(Subject(network, one.name)).rdm.astype(np.float32))
        seconds = time.perf_counter() - began
        record = {**asdict(one), "status": result.status, "epochs_run": result.epochs, "at_s": seconds, **final}
        (out / f"{one.name}.done").write_text(json.dumps(record | {"losses": result.losses}))
        log.info("%s %s after %d epochs, %.0f s", one.name, result.status, result.epochs, seconds)

    class Late(Exception):
        """There is no time left."""

    def in_time(watch: Watch):  # type: ignore[no-untyped-def]
        def callback(moment: Moment) -> bool:
            if budget is not None and time.perf_counter() - began > budget:
                raise Late
            return watch(moment)

        return callback

    try:
        train_next_frame_many(
            networks(),
            learned,
            [one.recipe(precision) for one in left],
            at_once=at_once,
            checkpoints=[out / f"{one.name}.pt" for one in left],
            every_s=120,
            callbacks=[in_time(watch) for watch in watches],
            on_done=done,
        )
    except Late:
        log.warning("stopped after %.0f s; the same command goes on", time.perf_counter() - began)


def split(videos: Mapping[str, Array]) -> tuple[dict[str, torch.Tensor], dict[str, Array]]:
    """What networks learn of, and what they are tested on: the last quarter of each video, and two videos wholly."""
    learned, held_out = {}, {}
    for name, video in videos.items():
        frames = np.ascontiguousarray(np.moveaxis(video, 3, 1))
        end = 0 if name in UNSEEN else round(len(frames) * (1 - HELD_OUT))
        held_out[name] = frames[end::STEP].astype(np.float32) / 255
        for first in range(STEP if end else 0):
            learned[f"{name}{first}"] = torch.from_numpy(frames[first:end:STEP].copy())
    return learned, held_out


def resized(people: HumanStimuli) -> HumanStimuli:
    """The stimuli at the side that networks are shown, by the mean over areas."""
    array = torch.from_numpy(np.array(people.images.array, dtype=np.float32))
    small = nn.functional.interpolate(array, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
    return replace(people, images=replace(people.images, array=small.clamp(0, 1).numpy()))


def decode(videos: Path, out: Path, size: tuple[int, int]) -> None:
    """Decode a folder of videos once."""
    footage = load_footage(videos, size)
    np.savez_compressed(out, **{name: clip.movedim(1, 3).numpy() for name, clip in footage.items()})


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["footage", "train"])
    parser.add_argument("--videos", type=Path)
    parser.add_argument("--size", type=int, nargs=2, default=(64, 80))
    parser.add_argument("--footage", type=Path)
    parser.add_argument("--brain", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--networks", type=int, default=95)
    parser.add_argument("--same", type=int, default=0, help="so many of one configuration instead")
    parser.add_argument("--long", type=int, default=0, help="so many of the configuration of Lotter et al. instead")
    parser.add_argument("--stop", default="none", choices=["none", "hms", "loss", "never"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=-1)
    parser.add_argument("--budget", type=float, default=None, help="seconds after which to stop")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if given.what == "footage":
        decode(given.videos, given.out, tuple(given.size))
        return
    if given.process < 0 and given.processes > 1:
        command = [sys.executable, *sys.argv]
        parts = [subprocess.Popen([*command, "--process", str(part)]) for part in range(given.processes)]
        sys.exit(max(part.wait() for part in parts))
    drawn = one_configuration(given.same) + published(given.long) or configurations(given.networks)
    # The longest first, dealt out in turn, so that the processes end at about the same time.
    drawn = sorted(drawn, key=lambda one: -one.epochs * one.sequences * one.filter_size**2)
    mine = drawn[max(given.process, 0) :: given.processes]
    where = (given.footage, given.brain, given.out)
    train(mine, *where, given.device, given.at_once, given.stop, given.precision, given.budget)


if __name__ == "__main__":
    main()
