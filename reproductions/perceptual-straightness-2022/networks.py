"""Train ResNets on the whole of CIFAR-10, normally and adversarially, and follow their curvature while they learn.

    python ../perturbation-response-2021/cifar10.py package cifar10.npz --train 50000
    python networks.py frames --sequences natural_sequences --out frames.npz
    python networks.py train  --cifar cifar10.npz --frames frames.npz --out runs/networks

Every network writes a line of JSON each time it was measured, and its weights at the end; what is written already is
not done again.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import assay
from assay import Straightness, Subject
from assay.core.determinism import seeded
from assay.networks import resnet
from assay.stimuli.labelled import Labelled
from assay.stimuli.sequences import Sequences, load_sequences
from assay.studies import accuracy
from assay.training import Adversary, Recipe, Trained, train_many
from assay.training.callbacks import Moment, left_as_found

log = logging.getLogger("networks")
Array = np.ndarray[Any, Any]

ATTACKS: tuple[tuple[str, float], ...] = (  # norm and ε; pixels are in [0, 1]
    ("none", 0.0),
    ("l2", 0.25),
    ("l2", 0.5),
    ("l2", 1.0),
    ("linf", 2 / 255),
    ("linf", 4 / 255),
    ("linf", 8 / 255),
)
SIZES = (32, 64, 128, 224)  # pixels of the frames; networks learned from pictures of 32
FOLLOWED = (0, 1, 2, 4, 8, 12, 16)  # epochs after which a network is measured, besides the last
CONTROLS = ("natural", "pixel_fade", "contrast_fade")
SHIFT = 4  # pixels by which a training picture may be moved
TESTED = 1000  # test pictures that are attacked


@dataclass(frozen=True)
class Configuration:
    """One network: how it is trained, and from which first weights."""

    norm: str
    epsilon: float
    seed: int

    @property
    def name(self) -> str:
        """Name of its files."""
        radius = f"{self.epsilon:g}" if self.norm == "l2" else f"{self.epsilon * 255:g}"
        return f"{self.norm}{'' if self.norm == 'none' else '_' + radius}_{self.seed}"

    def network(self, width: int) -> nn.Module:
        """The untrained network: ResNet-20 with convolutions as shortcuts."""
        with seeded(self.seed):
            return resnet(depth=3, width=width)

    def recipe(self, epochs: int, steps: int) -> Recipe:
        """How it learns."""
        adversary = None if self.norm == "none" else Adversary(self.epsilon, self.norm, steps)  # type: ignore[arg-type]
        return Recipe(
            "sgd",
            0.1,
            batch_size=250,
            weight_decay=5e-4,
            epochs=epochs,
            check_every=epochs,
            schedule="cosine",
            augmentation=moved_and_mirrored,
            precision="bfloat16",
            seed=self.seed,
            adversary=adversary,
        )


def moved_and_mirrored(x: Tensor, generator: torch.Generator) -> Tensor:
    """Each picture moved by up to four pixels each way, black coming in, and mirrored or not."""
    count, _, height, width = x.shape

    def draw(high: int) -> Tensor:
        return torch.randint(high, (count, 1), generator=generator, device=x.device)

    rows = draw(2 * SHIFT + 1) + torch.arange(height, device=x.device)
    columns = draw(2 * SHIFT + 1) + torch.arange(width, device=x.device)
    columns = torch.where(draw(2) == 0, columns, columns.flip(1))
    padded = F.pad(x, (SHIFT,) * 4)
    padded = padded.gather(2, rows[:, None, :, None].expand(-1, x.shape[1], -1, padded.shape[3]))
    return padded.gather(3, columns[:, None, None, :].expand(-1, x.shape[1], height, -1))


def read_frames(file: Path, size: int) -> Sequences:
    """The grey frames of one size that `frames` wrote, as three equal channels."""
    with np.load(file) as arrays:
        named = {key.partition("_")[2]: arrays[key] for key in arrays.files if key.startswith(f"{size}_")}
    return Sequences.of(**{name: np.repeat(clip.astype(np.float32) / 255, 3, axis=1) for name, clip in named.items()})


@dataclass(frozen=True)
class Shown:
    """What the networks are measured on."""

    frames: dict[int, Sequences]
    test: Labelled

    @classmethod
    def read(cls, frames: Path, test: Labelled) -> Shown:
        """Read the frames in all sizes."""
        return cls({size: read_frames(frames, size) for size in SIZES}, test)

    def curvature(self, network: nn.Module, size: int, control: str) -> list[dict[str, Any]]:
        """Rows of the measure."""
        clips = self.frames[size] if control == "natural" else getattr(self.frames[size], control)()
        table = Straightness(clips)(Subject(network))
        table = table[["layer", "sequence", "curvature_deg", "status"]]
        return [{"size": size, "frames": control} | row for row in table.to_dict("records")]

    def robust(self, network: nn.Module, library: str) -> list[dict[str, Any]]:
        """Accuracy under attack by an independent library, in both norms."""
        rows: list[dict[str, Any]] = []
        for norm in ("l2", "linf"):
            radii = [epsilon for kind, epsilon in ATTACKS if kind == norm]
            settings: dict[str, Any] = {"samples": TESTED, "library": library, "batch_size": TESTED}
            rows += assay.robust_accuracy(network, self.test, norm, radii, **settings).to_dict("records")  # type: ignore[arg-type]
        return rows


class Watch:
    """Measure a network now and then, and keep the lines."""

    def __init__(self, name: str, file: Path, shown: Shown, epochs: int) -> None:
        self.name, self.file, self.shown, self.epochs = name, file, shown, epochs
        self.done = {json.loads(line)["epoch"] for line in file.read_text().splitlines()} if file.exists() else set()

    def __call__(self, moment: Moment) -> bool:
        """Measure if it is time; never stop."""
        last = moment.epoch == self.epochs
        if (moment.epoch in FOLLOWED or last) and moment.epoch not in self.done:
            with left_as_found(moment.module):
                rows = self.shown.curvature(moment.module, 32, "natural")
                if last or not moment.epoch:
                    rows += [row for size in SIZES[1:] for row in self.shown.curvature(moment.module, size, "natural")]
                    for control in CONTROLS[1:]:
                        rows += self.shown.curvature(moment.module, 32, control)
                line = {
                    "network": self.name,
                    "epoch": moment.epoch,
                    "loss": moment.loss,
                    "accuracy": accuracy(Subject(moment.module), self.shown.test),
                    "curvature": rows,
                }
            with self.file.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return False


def train(drawn: list[Configuration], given: argparse.Namespace) -> None:
    """Train and measure networks side by side."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    out: Path = given.out
    out.mkdir(parents=True, exist_ok=True)
    with np.load(given.cifar) as file:
        parts = {name: file[name] for name in file.files}
    pictures = {split: parts[f"{split}_images"].transpose(0, 3, 1, 2) for split in ("train", "test")}
    x = torch.from_numpy(pictures["train"].astype(np.float32) / 255)
    y = torch.from_numpy(parts["train_labels"].astype(np.int64))
    test = Labelled(pictures["test"].astype(np.float32) / 255, parts["test_labels"].astype(np.int64), "CIFAR-10, test")
    shown = Shown.read(given.frames, test)
    left = [one for one in drawn if not (out / f"{one.name}.done").exists()]
    watches = [Watch(one.name, out / f"{one.name}.jsonl", shown, given.epochs) for one in left]
    began = time.perf_counter()

    def networks() -> Iterator[nn.Module]:
        for one, watch in zip(left, watches, strict=True):
            network = one.network(given.width).to(given.device, memory_format=torch.channels_last)
            watch(Moment(0, 0, float("nan"), 0.0, network))
            yield network

    def done(number: int, network: nn.Module, result: Trained) -> None:
        one = left[number]
        network.eval()
        rows = shown.robust(network, given.library) if result.status != "diverged" else []
        torch.save({name: value.cpu() for name, value in network.state_dict().items()}, out / f"{one.name}.pt")
        record = {"network": one.name, "norm": one.norm, "epsilon": one.epsilon, "seed": one.seed, "robust": rows}
        record |= {"status": result.status, "train_accuracy": result.accuracy, "at_s": time.perf_counter() - began}
        record |= {"epochs": given.epochs, "steps": given.steps, "width": given.width}
        (out / f"{one.name}.done").write_text(json.dumps(record))
        log.info("%s %s, %.0f s", one.name, result.status, record["at_s"])

    class Late(Exception):
        """There is no time left."""

    def in_time(watch: Watch) -> Callable[[Moment], bool]:
        def callback(moment: Moment) -> bool:
            if given.budget is not None and time.perf_counter() - began > given.budget:
                raise Late
            return watch(moment)

        return callback

    try:
        train_many(
            networks(),
            x,
            y,
            [one.recipe(given.epochs, given.steps) for one in left],
            at_once=given.at_once,
            checkpoints=[out / f"{one.name}.checkpoint" for one in left],
            every_s=120,
            callbacks=[in_time(watch) for watch in watches],
            on_done=done,
        )
    except Late:
        log.warning("stopped after %.0f s; the same command goes on", time.perf_counter() - began)


def write_frames(sequences: Path, out: Path) -> None:
    """Resize the frames once, to every size."""
    arrays = {}
    for size in SIZES:
        for clip in load_sequences(sequences, size, "grey"):
            arrays[f"{size}_{clip.name}"] = np.stack([np.round(f * 255).astype(np.uint8) for f in clip.frames()])
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["frames", "train"])
    parser.add_argument("--sequences", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--frames", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=3, help="of the attack while training")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--library", default="foolbox", choices=["foolbox", "assay"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=-1)
    parser.add_argument("--budget", type=float, default=None, help="seconds after which to stop")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if given.what == "frames":
        write_frames(given.sequences, given.out)
        return
    if given.process < 0 and given.processes > 1:
        command = [sys.executable, *sys.argv]
        parts = [subprocess.Popen([*command, "--process", str(part)]) for part in range(given.processes)]
        sys.exit(max(part.wait() for part in parts))
    drawn = [Configuration(norm, epsilon, seed) for seed in range(given.seeds) for norm, epsilon in ATTACKS]
    train(drawn[max(given.process, 0) :: given.processes], given)


if __name__ == "__main__":
    main()
