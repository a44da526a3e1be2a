"""Train PredNets on real video, and follow the curvature of natural sequences at every level before and after.

    python ../human-model-similarity-2018/population.py footage --videos videos --out footage.npz
    python networks.py frames --sequences natural_sequences --out frames.npz
    PYTHONPATH=../human-model-similarity-2018 python prednets.py --footage footage.npz --frames frames.npz

The networks are those of `population.py`: one configuration of three levels, from other first weights and other
sequences of frames each time. What is written already is not done again.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from population import one_configuration, split
from torch import nn

from assay import Straightness, Subject
from assay.networks import PredNet
from assay.stimuli.sequences import Sequences
from assay.training import TrainedOnFootage, train_next_frame_many
from networks import CONTROLS, read_frames

log = logging.getLogger("prednets")
SIDE = 64  # pixels of the frames; the footage has 64 × 80


def curvature(network: nn.Module, clips: Sequences, name: str, state: str) -> pd.DataFrame:
    """Rows of the measure, of natural frames and of both fades."""
    tables = []
    for control in CONTROLS:
        shown = clips if control == "natural" else getattr(clips, control)()
        tables.append(Straightness(shown)(Subject(network, f"{name} {state}")).assign(condition=control))
    return pd.concat(tables).assign(network=name, state=state)


def main() -> None:
    """Train and measure, and write one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--footage", type=Path, required=True)
    parser.add_argument("--frames", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/prednets"))
    parser.add_argument("--networks", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--epochs", type=int, help="another number than the configuration's, to try the script")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    given.out.mkdir(parents=True, exist_ok=True)
    with np.load(given.footage) as arrays:
        learned, _ = split({name: arrays[name] for name in arrays.files})
    clips = read_frames(given.frames, SIDE)
    drawn = [one for one in one_configuration(given.networks) if not (given.out / f"{one.name}.csv").exists()]
    recipes = [one.recipe(given.precision) for one in drawn]
    if given.epochs:
        recipes = [recipe.__class__(**{**vars(recipe), "epochs": given.epochs}) for recipe in recipes]
    before: dict[int, pd.DataFrame] = {}

    def networks() -> Iterator[PredNet]:
        for number, one in enumerate(drawn):
            network = one.network().to(given.device, memory_format=torch.channels_last)
            before[number] = curvature(network, clips, one.name, "untrained")
            yield network

    def done(number: int, network: nn.Module, result: TrainedOnFootage) -> None:
        one = drawn[number]
        after = curvature(network.eval(), clips, one.name, "trained").assign(loss=result.losses[-1])
        pd.concat([before[number], after]).to_csv(given.out / f"{one.name}.csv", index=False, float_format="%.6g")
        log.info("%s %s after %d epochs", one.name, result.status, result.epochs)

    checkpoints = [given.out / f"{one.name}.pt" for one in drawn]
    train_next_frame_many(networks(), learned, recipes, at_once=given.at_once, checkpoints=checkpoints, on_done=done)


if __name__ == "__main__":
    main()
