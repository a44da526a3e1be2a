"""The steps of one classifier's training: cross-entropy on labelled data, batch by batch."""

from __future__ import annotations

from collections.abc import Generator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.arrays import channels_last
from assay.core.errors import AssayError
from assay.training.adversarial import attacker
from assay.training.recipe import Recipe
from assay.training.stepping import Stepping

Turns = Generator[None, None, tuple[float, float]]

MOMENTUM = 0.9
EVALUATED_AT_ONCE, ON_A_GPU = 1024, 4096  # inputs per forward pass of an evaluation


class Steps(Stepping):
    """Training steps on data that are on the network's device already.

    Args:
        network: The network, which is trained in place.
        inputs: Inputs N×…; shared with other networks, never written to.
        labels: The class of each input.
        recipe: How the network is trained.
        stream: The stream of the work on a GPU; ``None`` on a CPU.
    """

    def __init__(
        self, network: nn.Module, inputs: Tensor, labels: Tensor, recipe: Recipe, stream: torch.cuda.Stream | None
    ) -> None:
        self.count = len(inputs) // recipe.batch_size
        super().__init__(network, inputs.device, stream, recipe, self.count)
        self.recipe = recipe
        self.inputs = inputs
        self.labels = labels
        # What a recorded step reads and writes stays where it is: only its content changes.
        self.shown = inputs if recipe.augmentation is None else torch.empty_like(inputs)
        self.attacker = attacker(recipe.adversary, inputs)
        self.optimizer = _optimizer(network, recipe, self.rate if stream is not None else recipe.learning_rate)

    def begin(self, epoch: int, rate: float) -> None:
        """Begin an epoch: set its order, its augmented data and its learning rate."""
        order = torch.randperm(len(self.inputs), generator=self._generator("order", epoch, "cpu"))
        self.set_epoch(order[: self.order.numel()], rate)
        with self.own():
            self._augment(epoch)
        self.begin_steps(self.recipe.number("dropout", epoch))

    def evaluate(self) -> Turns:
        """Return mean cross-entropy and accuracy on the data as shown, in eval mode; give way after every batch."""
        with self.own():
            sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.network.eval()
        at_once = EVALUATED_AT_ONCE if self.stream is None else ON_A_GPU
        for x, y in zip(torch.split(self.shown, at_once), torch.split(self.labels, at_once), strict=True):
            with self.own(), torch.no_grad():
                logits = self._logits(x).float()
                sums[0] += F.cross_entropy(logits, y, reduction="sum")
                sums[1] += (logits.argmax(1) == y).sum()
            yield
        self.network.train()
        yield from self.settle()
        loss, accuracy = (sums / len(self.labels)).tolist()
        return loss, accuracy

    def take_step(self) -> None:
        """Learn from the next batch of the epoch's order."""
        rows = self.order.index_select(0, self.at)[0]
        self.optimizer.zero_grad(set_to_none=True)
        x, labels = self.shown.index_select(0, rows), self.labels.index_select(0, rows)
        if self.attacker is not None:
            x = self.attacker(self.network, lambda x: self._logits(x).float(), x, labels)
        loss = F.cross_entropy(self._logits(x).float(), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.total += loss.detach()
        self.at += 1

    def _logits(self, x: Tensor) -> Tensor:
        x = x if self.stream is None else channels_last(x)
        with self.autocast():
            logits: Tensor = self.network(x)
        return logits

    def _augment(self, epoch: int) -> None:
        if self.recipe.augmentation is None:
            return
        shown = self.recipe.augmentation(self.inputs, self._generator("augmentation", epoch, self.device))
        if shown.shape != self.inputs.shape:
            raise AssayError(
                f"augmentation={self.recipe.augmentation!r} made {tuple(shown.shape)} of inputs "
                f"{tuple(self.inputs.shape)}: it must keep their shape"
            )
        self.shown.copy_(shown)

    def _generator(self, purpose: str, epoch: int, device: torch.device | str) -> torch.Generator:
        return torch.Generator(device).manual_seed(self.recipe.number(purpose, epoch))


def _optimizer(network: nn.Module, recipe: Recipe, rate: Tensor | float) -> torch.optim.Optimizer:
    """Return the optimiser of a recipe; on a GPU the rate is a tensor, so that a recorded step sees it change."""
    trainable = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    gpu = isinstance(rate, Tensor)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=rate, capturable=gpu, fused=gpu or None)
    return torch.optim.SGD(groups, lr=rate, momentum=MOMENTUM, fused=gpu or None)
