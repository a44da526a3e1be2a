"""Invariance of a small CNN under rotation: assay, tmeasures and the bare pass, each in a process of its own.

1,000 digits × 32 rotations, all 88,074 units of ten layers. The limit is to rotate and forward every picture and do
nothing else. On a GPU (--device cuda) the claim is another: 343 stacked autoencoders trained and scored, in seconds.

tmeasures is optional and AGPL: pip install --no-deps tmeasures==1.2.11 opencv-python statsmodels (its dependency
data-science-types breaks type checking with NumPy).
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from timing import ratio, where
from torch import nn
from torch.nn import functional as F

from assay import Invariance, Subject
from assay.stimuli import Family, Images, ParametricTest

ANGLES = tuple(360 / 32 * i for i in range(32))
BATCH = 512
UNITS = 88_074


def digits() -> torch.Tensor:
    pictures = torch.from_numpy(load_digits().images[:1000]).float()[:, None] / 16
    return F.interpolate(pictures, (28, 28), mode="bicubic").clamp(0, 1)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 45, 3, padding=1), nn.ReLU(), nn.Conv2d(45, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(),
        nn.Linear(128, 10),
    ).eval()  # fmt: skip


def bare() -> None:
    """Rotate and forward, nothing else; the same batches and the same rotation as assay."""
    net, family = network(), Family("rotation", ANGLES)
    with torch.no_grad():
        for some in digits().split(BATCH // len(ANGLES)):
            net(family(some).flatten(0, 1))


def assay() -> None:
    """One sign and no intervals, as the peer; but Z and its transforms alone, where the peer averages over all."""
    score(signs="positive", bootstrap=0)


def assay_default() -> None:
    """Both signs, the better one chosen for each unit, and bootstrap intervals."""
    score()


def score(**settings: Any) -> None:
    test = ParametricTest(Images(digits().numpy()), (Family("rotation", ANGLES),))
    table = Invariance(test, batch_size=BATCH, **settings)(Subject(network(), "cnn"))
    assert table["units"].sum() == UNITS


def tmeasures() -> None:
    """The peer, with its own rotations (which take degrees for radians; the work is the same)."""
    from tmeasures.pytorch.activations_iterator import PyTorchMeasureOptions
    from tmeasures.pytorch.goodfellow import GoodfellowInvariance, PercentActivationThreshold
    from tmeasures.pytorch.model import ActivationsModule
    from tmeasures.pytorch.transformations.affine import RotationGenerator
    from torch.utils.data import Dataset

    class Network(ActivationsModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def activation_names(self) -> list[str]:
            return [str(i) for i in range(len(self.net))]

        def forward_activations(self, x: torch.Tensor) -> list[torch.Tensor]:
            found = []
            for layer in self.net:
                x = layer(x)
                found.append(x)
            return found

    class Digits(Dataset[torch.Tensor]):
        def __init__(self) -> None:
            self.pictures = digits()

        def __len__(self) -> int:
            return len(self.pictures)

        def __getitem__(self, i: int) -> torch.Tensor:
            return self.pictures[i]

    options = PyTorchMeasureOptions(batch_size=500, verbose=False)  # n must be a multiple of the batch
    rotations = RotationGenerator(np.array(ANGLES) / 360)
    exact = PercentActivationThreshold(sign=1, percent=0.99)  # its default takes responses for normally distributed
    GoodfellowInvariance(threshold_algorithm=exact).eval(Digits(), rotations, Network(), options)


def alone(name: str) -> None:
    """One contestant: seconds of the work, and by how much memory grew over what was there before it."""
    digits(), network()
    F.conv2d(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 3, 3))
    importlib.import_module("kornia")
    if name == "tmeasures":
        importlib.import_module("tmeasures.pytorch")
    before = resource.getrusage(resource.RUSAGE_SELF)
    cpu, start = time.process_time(), time.perf_counter()
    {"bare": bare, "assay": assay, "assay, default": assay_default, "tmeasures": tmeasures}[name]()
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = {"seconds": took, "cpu": time.process_time() - cpu, "user": after.ru_utime - before.ru_utime}
    print(json.dumps(used | {"MiB": (after.ru_maxrss - before.ru_maxrss) / 1024}))


def race(rounds: int) -> None:
    names = ["bare", "assay", "assay, default"] + (["tmeasures"] if importlib.util.find_spec("tmeasures") else [])
    times: dict[str, list[float]] = {name: [] for name in names}
    users: dict[str, list[float]] = {name: [] for name in names}
    last: dict[str, dict[str, float]] = {}
    for _, name in itertools.product(range(rounds), names):
        command = [sys.executable, "-W", "ignore", __file__, "--alone", name]
        # Threads that wait must not count as work. (In torch for ARM, memory that lay idle for 10 ms goes back to the
        # system and is taken again, by chance half a second here; MIMALLOC_PURGE_DELAY=-1 turns that off for all.)
        quiet = os.environ | {"OMP_WAIT_POLICY": "passive"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet)
        last[name] = json.loads(done.stdout.strip().splitlines()[-1])
        times[name].append(last[name]["cpu"])
        users[name].append(last[name]["user"])
    print(f"{where('cpu')}; 1,000 digits × 32 rotations, 88,074 units; CPU seconds, medians of {rounds} rounds")
    for name in names:
        against = f"{ratio(times, name, 'bare'):.2f}× bare ({ratio(users, name, 'bare'):.2f}× but for the system)"
        peer = f", {ratio(times, 'tmeasures', name):.2f}× faster than tmeasures" if "tmeasures" in names else ""
        print(f"{name:>14}: {np.median(times[name]):6.1f} s  {against}{peer};  memory +{last[name]['MiB']:.0f} MiB")
    system = 1 - np.median(users["bare"]) / np.median(times["bare"])
    print(f"{system:.0%} of the bare pass is the system's work: new pages for the outputs of layers")
    shown = 1 + 1 / len(ANGLES)  # thresholds are known only after all pictures were shown as they are
    print(f"the limit, {len(ANGLES) + 1} passes for {len(ANGLES)}: {shown:.2f}× bare; the target: 1.15× bare")
    if "tmeasures" not in names:
        print("tmeasures is not installed: pip install --no-deps tmeasures==1.2.11 opencv-python statsmodels")


def grid(device: str) -> None:
    """The 7³ networks of three layers of the depth experiment, trained together and scored in one pass."""
    from assay.networks import StackedAutoencoder, Together
    from assay.stimuli import Gratings, natural_patches
    from assay.training import Greedy, population

    torch.backends.cuda.matmul.allow_tf32 = True
    decays = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    networks = [StackedAutoencoder(196, (100,) * 3, d).to(device) for d in itertools.product(decays, repeat=3)]
    patches = natural_patches(14, 100_000)
    steps = 0
    for epochs in (1, 40):  # the first warms up
        start = time.perf_counter()
        population(networks, patches, Greedy(epochs, 1000, 2e-3))
        torch.cuda.synchronize()
        trained = time.perf_counter() - start
        steps = 3 * epochs * 100
    subject = Subject(Together(networks), "together", example=(1, 14, 14))
    layers = [f"stack.{i}" for i in range(3)]
    measure = Invariance(Gratings(14, mean=0.0, amplitude=0.47), layers=layers, batch_size=1024)
    for _ in range(2):
        start = time.perf_counter()
        scored = measure.per_unit(subject)
        torch.cuda.synchronize()
        took = time.perf_counter() - start
    units = len(scored) // 3
    print(where(device))
    print(f"343 networks trained together: {trained:.1f} s for {steps} steps of 1,000 patches, 3 layers")
    print(f"343 networks scored: {took:.1f} s for {units} units × 5,600 gratings, 3 transformations")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone")
    options = parser.parse_args()
    if options.alone:
        alone(options.alone)
    elif options.device.startswith("cuda"):
        grid(options.device)
    else:
        race(options.rounds)
