"""Callbacks of assay as callbacks of other trainers: Lightning's, and that of Hugging Face.

The packages are imported when an adapter is made, and only then.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, nearest, optional
from assay.training.callbacks import Callback, Clock


class LightningCallback:
    """A callback of Lightning's ``Trainer`` that calls one of assay's after every training epoch.

    The loss of the moment is the mean of what ``training_step`` returned in the epoch, NaN where it returned none. On
    several devices each measures its own copy, and all stop if any says so. What it recorded is in no checkpoint of the
    trainer. Needs ``pip install 'assay[lightning]'``.

    Args:
        callback: What to call, such as a `LiveMeasure` or `StopWhenConverged`.
        part: The name of the submodule to pass on, such as ``"backbone"``; by default the whole module.

    Example:
        ```python
        live = assay.training.LiveMeasure(human_similarity_of, "hms", every=5)
        stop = assay.training.StopWhenConverged(live)
        trainer = lightning.Trainer(callbacks=[assay.training.LightningCallback(stop, part="network")])
        ```
    """

    def __new__(cls, callback: Callback, part: str = "") -> Any:
        """A new callback, of a class that Lightning knows."""
        return _lightning_class()(callback, part)


class HuggingFaceCallback:
    """A callback of Hugging Face's ``Trainer`` that calls one of assay's after every epoch.

    It asks the trainer to log at the end of each epoch: the trainer tells its loss in no other way. What it recorded is
    in no checkpoint of the trainer. Needs ``pip install 'assay[hf]'``.

    Args:
        callback: What to call, such as a `LiveMeasure` or `StopWhenConverged`.
        part: The name of the submodule to pass on, such as ``"vit"``; by default the whole model.

    Example:
        ```python
        live = assay.training.LiveMeasure(human_similarity_of, "hms", every=5)
        trainer = transformers.Trainer(model, arguments, callbacks=[assay.training.HuggingFaceCallback(live)])
        ```
    """

    def __new__(cls, callback: Callback, part: str = "") -> Any:
        """A new callback, of a class that transformers knows."""
        return _hugging_face_class()(callback, part)


def _part(module: nn.Module, name: str) -> nn.Module:
    """The submodule of a name, of a module that may be wrapped for several devices."""
    whole = module.module if isinstance(module, nn.parallel.DistributedDataParallel | nn.DataParallel) else module
    try:
        return whole.get_submodule(name)
    except AttributeError:
        known = nearest(name, [known for known, _ in whole.named_modules() if known])
        raise AssayError(f"part={name!r} is no submodule of {type(whole).__name__}{known}") from None


class _MeanLoss:
    """The mean of an epoch's losses, added up on the device where they are."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.count = 0

    def add(self, loss: Any, count: int = 1) -> None:
        self.total = self.total + (loss.detach().double() if isinstance(loss, Tensor) else loss) * count
        self.count += count

    def take(self) -> float:
        mean = float(self.total) / self.count if self.count else math.nan
        self.total, self.count = 0.0, 0
        return mean


@functools.cache
def _lightning_class() -> type:
    base: Any = optional("lightning.pytorch", "lightning", "LightningCallback").Callback

    class OfLightning(base):  # type: ignore[misc]
        """Calls a callback at the end of every training epoch."""

        def __init__(self, callback: Callback, part: str) -> None:
            self.callback, self.part = callback, part
            self.loss, self.clock = _MeanLoss(), Clock()

        def __reduce__(self) -> Any:
            return LightningCallback, (self.callback, self.part)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            _part(pl_module, self.part)
            self.loss, self.clock = _MeanLoss(), Clock()

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if isinstance(loss, Tensor):  # Lightning divides it by the number of batches that a step adds up
                self.loss.add(loss * trainer.accumulate_grad_batches)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            module = _part(pl_module, self.part)
            epoch, step = trainer.current_epoch + 1, trainer.global_step
            stop = self.clock.call(self.callback, epoch, step, self.loss.take(), module)
            if trainer.strategy.reduce_boolean_decision(stop, all=False):
                trainer.should_stop = True

    return OfLightning


@functools.cache
def _hugging_face_class() -> type:
    base: Any = optional("transformers", "hf", "HuggingFaceCallback").TrainerCallback

    class OfHuggingFace(base):  # type: ignore[misc]
        """Calls a callback at the end of every epoch, once the trainer has told its loss."""

        def __init__(self, callback: Callback, part: str) -> None:
            self.callback, self.part = callback, part
            self.loss, self.clock = _MeanLoss(), Clock()
            self.logged = 0  # the step up to which the loss is known
            self.awaited = False  # whether an epoch is over whose loss is not known yet

        def __reduce__(self) -> Any:
            return HuggingFaceCallback, (self.callback, self.part)

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            _part(given["model"], self.part)
            self.loss, self.clock, self.logged = _MeanLoss(), Clock(), state.global_step

        def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if state.global_step > self.logged:
                self.awaited = control.should_log = True
            else:  # the trainer has logged at this very step, and will not again
                self._call(state, control, given["model"])

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
            if logs and "loss" in logs and state.global_step > self.logged:
                self.loss.add(logs["loss"], state.global_step - self.logged)
                self.logged = state.global_step
            if self.awaited:
                self.awaited = False
                self._call(state, control, given["model"])

        def _call(self, state: Any, control: Any, model: nn.Module) -> None:
            epoch = math.ceil(round(state.epoch, 6))
            module = _part(model, self.part)
            with torch.enable_grad():
                if self.clock.call(self.callback, epoch, state.global_step, self.loss.take(), module):
                    control.should_training_stop = True

    return OfHuggingFace
