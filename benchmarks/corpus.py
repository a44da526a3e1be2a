"""Training many small networks: assay side by side, assay one by one, the plain PyTorch loop, and large batches.

16 VGGs of width 16 on generated pictures of 28×28, Adam, batches of 128, two epochs. The plain loop trains one network
after the other as everybody writes it. The limit is the same arithmetic in batches so large that only it counts (4096
on a GPU). Networks side by side fill a GPU; a CPU is full with one, there they only must not cost.
"""

from __future__ import annotations

import statistics

import torch
from timing import arguments, race, ratio, where
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.determinism import seeded
from assay.networks import vgg
from assay.training import Recipe, train_many

NETWORKS = 16
EPOCHS = 2


def networks(device: str) -> list[nn.Module]:
    with seeded(0):
        return [vgg(1, 16, channels=1).to(device) for _ in range(NETWORKS)]


def plain(x: Tensor, y: Tensor, size: int, optimizes: bool = True) -> None:
    """One network after the other."""
    for network in networks(str(x.device)):
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        for _ in range(EPOCHS):
            order = torch.randperm(len(x), device=x.device)
            for rows in order[: len(x) // size * size].split(size):
                optimizer.zero_grad()
                F.cross_entropy(network(x[rows]), y[rows]).backward()
                if optimizes:
                    optimizer.step()


def many(x: Tensor, y: Tensor, at_once: int) -> None:
    # One check of the accuracy, in the last epoch: the plain loop has none.
    recipe = Recipe("adam", 1e-3, 128, epochs=EPOCHS, check_every=EPOCHS)
    train_many(networks(str(x.device)), x, y, [recipe] * NETWORKS, at_once=at_once)


def main(device: str, rounds: int) -> None:
    gpu = device.startswith("cuda")
    count = 16384 if gpu else 256
    with seeded(0):
        x, y = torch.rand(count, 1, 28, 28).to(device), torch.randint(10, (count,)).to(device)
    times = race(
        {
            "assay": lambda: many(x, y, NETWORKS),
            "one by one": lambda: many(x, y, 1),
            "plain loop": lambda: plain(x, y, 128),
            "limit": lambda: plain(x, y, 4096 if gpu else 256, optimizes=False),
        },
        device,
        rounds,
    )
    print(f"{where(device)}; {NETWORKS} VGGs, {EPOCHS} epochs of {count} pictures; medians of {rounds} rounds")
    if gpu:
        print(f"side by side: {statistics.median(times['assay']):.2f} s")
    print(f"              {ratio(times, 'one by one', 'assay'):.2f}× faster than one by one")
    print(f"              {ratio(times, 'plain loop', 'assay'):.2f}× faster than the plain loop")
    print(f"              {ratio(times, 'assay', 'limit'):.2f}× the same arithmetic in large batches")


if __name__ == "__main__":
    options = arguments(__doc__ or "")
    main(options.device, min(options.rounds, 3))
