"""Adversarial training: a step of assay with k attack steps against k + 1 bare forward-backward passes.

A small ResNet on generated pictures of 32×32, PGD with 7 steps and a random start, L∞ and L2. A bare pass is what each
step of training does: forward in training mode, loss, gradients of all weights. An attack needs less, the gradient of
the input in eval mode, so the limit is 7 such passes and 1 bare pass; what assay adds are directions, projections,
clipping, random starts and the optimiser. On a GPU all use bfloat16; assay's step is a CUDA graph, and the passes are
run as one too.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from timing import arguments, race, ratio, where
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.arrays import channels_last
from assay.core.determinism import reproducible, seeded
from assay.networks import small_resnet
from assay.training import Adversary, Recipe
from assay.training.steps import Steps

ATTACK_STEPS = 7
BATCH = {"cpu": 64, "cuda": 256}
STEPS = {"cpu": 1, "cuda": 20}  # of training, in a round

Work = Callable[[], None]


def network_on(device: torch.device) -> nn.Module:
    with seeded(0):
        return small_resnet().to(device).train()


def training(x: Tensor, y: Tensor, adversary: Adversary | None, batch: int) -> Work:
    """A function that trains for one epoch as `train_many` does."""
    recipe = Recipe("sgd", 0.01, batch, precision="bfloat16" if x.is_cuda else "float32", adversary=adversary)
    stream = torch.cuda.Stream(x.device) if x.is_cuda else None
    steps = Steps(network_on(x.device), x, y, recipe, stream)
    steps.begin(0, 0.01)

    def epoch() -> None:
        with steps.own():
            steps.at.zero_()
        for _ in range(steps.count):
            steps.step()

    return epoch


class Passes:
    """Bare passes over one batch, in the layout and precision of the training.

    Args:
        x: The inputs of the batch.
        y: Their labels.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        network = network_on(x.device)
        self.network = network.to(memory_format=torch.channels_last) if x.is_cuda else network
        self.x, self.y = x, y

    def loss(self, x: Tensor) -> Tensor:
        shown = channels_last(x) if x.is_cuda else x
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda, cache_enabled=False):
            logits = self.network(shown)
        return F.cross_entropy(logits.float(), self.y)

    def of_training(self, count: int) -> None:
        """Gradients of all weights, in training mode."""
        for _ in range(count):
            self.network.zero_grad(set_to_none=True)
            self.loss(self.x).backward()

    def of_attack(self, count: int) -> None:
        """The gradient of the input, in eval mode."""
        self.network.eval()
        for _ in range(count):
            at = self.x.detach().requires_grad_()
            torch.autograd.grad(self.loss(at), at)
        self.network.train()

    def bare(self) -> None:
        self.of_training(ATTACK_STEPS + 1)

    def limit(self) -> None:
        self.of_attack(ATTACK_STEPS)
        self.of_training(1)

    def one(self) -> None:
        self.of_training(1)


def repeated(work: Work, count: int, gpu: bool) -> Work:
    """Work several times over, on a GPU as a CUDA graph."""
    if not gpu:
        return lambda: [work() for _ in range(count)] and None
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return lambda: [graph.replay() for _ in range(count)] and None


def main(device: str, rounds: int, batch: int | None) -> None:
    gpu = device.startswith("cuda")
    kind = "cuda" if gpu else "cpu"
    size, count = batch or BATCH[kind], STEPS[kind]
    with seeded(0):
        x, y = torch.rand(size * count, 3, 32, 32).to(device), torch.randint(10, (size * count,)).to(device)
    adversaries = {
        "linf": Adversary(8 / 255, "linf", steps=ATTACK_STEPS),
        "l2": Adversary(0.5, "l2", steps=ATTACK_STEPS),
        "plain": None,
    }
    contestants = {name: training(x, y, adversary, size) for name, adversary in adversaries.items()}
    with reproducible():
        for name in ("bare", "limit", "one"):
            contestants[name] = repeated(getattr(Passes(x[:size], y[:size]), name), count, gpu)
        times = race(contestants, device, rounds)
    print(f"{where(device)}; {ATTACK_STEPS} attack steps, batches of {size}; medians of {rounds} rounds")
    for norm in ("linf", "l2"):
        print(f"{norm:>5}: {ratio(times, norm, 'bare'):.2f}× {ATTACK_STEPS + 1} bare forward-backward passes")
        print(f"       {ratio(times, norm, 'limit'):.2f}× the passes that it needs")
    print(f"plain: {ratio(times, 'plain', 'one'):.2f}× one bare pass, without an attack")


if __name__ == "__main__":
    options = arguments(__doc__ or "")
    main(options.device, options.rounds, options.batch)
