"""Modules that few networks have: odd outputs, odd parameters, odd manners. Each takes and gives 4 maps of pictures."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

MAPS = 4
Pair = namedtuple("Pair", ["first", "second"])


class Does(nn.Module):
    """A module that does what a function says."""

    def __init__(self, what: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Tensor) -> Any:
        return self.what(x)


class Inside(nn.Module):
    """Holds a module with an odd output, and passes on something ordinary."""

    def __init__(self, odd: Callable[[Tensor], Any], back: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.odd, self.back = Does(odd), back

    def forward(self, x: Tensor) -> Tensor:
        return self.back(self.odd(x))


@dataclass
class Answer:
    """Scores as some libraries give them."""

    logits: Tensor


class Mask(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * (weight.abs() > 0.05)


class Falsy(nn.Sequential):
    """Is false where it is asked whether it is."""

    def __len__(self) -> int:
        return 0


class EqualToAll(nn.Conv2d):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = nn.Module.__hash__


class Unspeakable(nn.Conv2d):
    """Raises where it is shown, copied or asked for what it has not."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("there is but one")

    def __reduce__(self) -> Any:
        raise TypeError("stays here")


class OwnCall(nn.Conv2d):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs).relu()


class Hidden(nn.Module):
    """Keeps its layers in a plain list, where no torch finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.all = [conv(), nn.ReLU()]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.all:
            x = layer(x)
        return x


class Twice(nn.Module):
    """Uses one module twice, under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.a = conv()
        self.b = self.a
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.b(self.act(self.a(x))))


class Counts(nn.Module):
    """Changes a buffer of its own whenever it is shown something."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        return x


class Grows(nn.Module):
    """Makes its layer when it is first used."""

    def __init__(self) -> None:
        super().__init__()
        self.layer: nn.Module | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.layer is None:
            self.layer = conv()
        return self.layer(x)  # type: ignore[no-any-return]


class Trains(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        self.train()
        return x


class Kept(nn.Module):
    """Keeps what it was shown, as networks do that show it later."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = x
        return x


class Batched(nn.Module):
    """Sees how large the batch is."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True)


class Named(nn.Module):
    """A parameter of no axes, one that is empty, one that is not a number, and a buffer that is none."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.empty = nn.Parameter(torch.zeros(0, 3))
        self.broken = nn.Parameter(torch.tensor([float("nan"), float("inf")]))
        self.register_buffer("none", None)
        self.register_buffer("whole", torch.arange(3))
        self.register_buffer("truth", torch.tensor([True, False]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gain


def conv(**settings: Any) -> nn.Conv2d:
    """An ordinary convolution."""
    return nn.Conv2d(MAPS, MAPS, 3, padding=1, **settings)


def _raising(error: BaseException) -> Callable[[Tensor], Tensor]:
    def raises(x: Tensor) -> Tensor:
        raise error

    return raises


def _mode(change: Callable[[], Any]) -> Callable[[Tensor], Tensor]:
    def changes(x: Tensor) -> Tensor:
        change()
        return x

    return changes


def _in_place(x: Tensor) -> Tensor:
    x.mul_(0.5)
    return x


def _endless(x: Tensor) -> Tensor:
    return _endless(x)


def _pruned() -> nn.Module:
    layer = conv()
    prune.l1_unstructured(layer, "weight", 0.5)
    return layer


def _masked() -> nn.Module:
    layer = conv()
    parametrize.register_parametrization(layer, "weight", Mask())
    return layer


def _old_weight_norm() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(conv())


def _with_hooks() -> nn.Module:
    layer = conv()
    layer.register_forward_hook(lambda module, args, output: output * 2)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return layer


def _scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(nn.Sequential(conv(), nn.ReLU()))


def _odd_names() -> nn.Module:
    return nn.Sequential(
        OrderedDict({"$\\bad$": conv(), "a b\n": nn.ReLU(), "=1+1": nn.Identity(), "0": nn.Identity()})
    )


def _deep() -> nn.Module:
    module: nn.Module = conv()
    for _ in range(60):
        module = nn.Sequential(module)
    return module


def _frozen() -> nn.Module:
    return conv().requires_grad_(False)


def _tuple(x: Tensor) -> Any:
    return x, None, {"more": [x, "word"]}


MODULES: dict[str, Callable[[], nn.Module]] = {
    "complex inside": lambda: Inside(torch.fft.fft2, lambda x: x.abs()),
    "truth inside": lambda: Inside(lambda x: x > 0, lambda x: x.float()),
    "whole numbers inside": lambda: Inside(lambda x: (x * 9).long(), lambda x: x.float()),
    "bytes inside": lambda: Inside(lambda x: (x.clamp(0, 1) * 255).byte(), lambda x: x.float()),
    "sparse inside": lambda: Inside(lambda x: x.to_sparse(), lambda x: x.to_dense()),
    "nested inside": lambda: Inside(lambda x: torch.nested.nested_tensor(list(x)), lambda x: torch.stack(x.unbind())),
    "tuple inside": lambda: Inside(_tuple, lambda x: x[0]),
    "dataclass inside": lambda: Inside(Answer, lambda x: x.logits),
    "namedtuple inside": lambda: Inside(lambda x: Pair(x, x), lambda x: x.first),
    "nothing inside": lambda: Inside(lambda x: (x, None)[1], lambda x: torch.zeros(2, MAPS, 4, 4)),
    "words inside": lambda: Inside(lambda x: ["word", x], lambda x: x[1]),
    "empty inside": lambda: Inside(lambda x: (x[:, :0], x), lambda x: x[1]),
    "half inside": lambda: Inside(lambda x: x.half(), lambda x: x.float()),
    "double inside": lambda: Inside(lambda x: x.double(), lambda x: x.float()),
    "quantized inside": lambda: Inside(
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), lambda x: x.dequantize()
    ),
    "not a number": lambda: Does(lambda x: x / 0 * 0),
    "huge": lambda: Does(lambda x: x * 1e30),
    "constant": lambda: Does(lambda x: torch.zeros_like(x)),
    "expanded": lambda: Does(lambda x: x.mean((2, 3), keepdim=True).expand_as(x)),
    "transposed": lambda: Does(lambda x: x.transpose(2, 3)),
    "detached": lambda: Does(lambda x: x.detach()),
    "same": lambda: nn.Identity(),
    "in place": lambda: Does(_in_place),
    "lazy": lambda: nn.LazyConv2d(MAPS, 3, padding=1),
    "lazy norm": lambda: nn.LazyBatchNorm2d(),
    "meta": lambda: conv(device="meta"),
    "pruned": _pruned,
    "masked": _masked,
    "weight-normed": lambda: parametrizations.weight_norm(conv()),
    "weight-normed of old": _old_weight_norm,
    "spectral": lambda: parametrizations.spectral_norm(conv()),
    "orthogonal": lambda: parametrizations.orthogonal(conv()),
    "with hooks": _with_hooks,
    "scripted": _scripted,
    "odd names": _odd_names,
    "deep": _deep,
    "frozen": _frozen,
    "falsy": lambda: Falsy(conv(), nn.ReLU()),
    "equal to all": lambda: EqualToAll(MAPS, MAPS, 1),
    "unspeakable": lambda: Unspeakable(MAPS, MAPS, 1),
    "own call": lambda: OwnCall(MAPS, MAPS, 1),
    "hidden": Hidden,
    "twice": Twice,
    "counts": Counts,
    "grows": Grows,
    "trains": Trains,
    "keeps": Kept,
    "sees the batch": Batched,
    "odd parameters": Named,
    "nothing": nn.Sequential,
    "dropout": lambda: nn.Dropout2d(0.5),
    "norm": lambda: nn.BatchNorm2d(MAPS),
    "norm without memory": lambda: nn.BatchNorm2d(MAPS, track_running_stats=False),
    "double": lambda: nn.Sequential(Does(lambda x: x.double()), conv(dtype=torch.float64), Does(lambda x: x.float())),
    "bfloat16": lambda: nn.Sequential(
        Does(lambda x: x.bfloat16()), conv(dtype=torch.bfloat16), Does(lambda x: x.float())
    ),
    "no gradients": lambda: Does(_mode(lambda: torch.set_grad_enabled(False))),
    "gradients": lambda: Does(_mode(lambda: torch.set_grad_enabled(True))),
    "another default": lambda: Does(_mode(lambda: torch.set_default_dtype(torch.float64))),
    "seeds": lambda: Does(_mode(lambda: torch.manual_seed(0))),
    "raises": lambda: Does(_raising(ValueError("never works"))),
    "raises nothing said": lambda: Does(_raising(AssertionError())),
    "stops": lambda: Does(_raising(StopIteration())),
    "exits": lambda: Does(_raising(SystemExit(3))),
    "out of memory": lambda: Does(_raising(MemoryError())),
    "an own exception": lambda: Does(_raising(type("Own", (Exception,), {})("of its own kind"))),
    "endless": lambda: Does(_endless),
    "changes the batch": lambda: Does(lambda x: x[:1]),
    "repeats the batch": lambda: Does(lambda x: torch.cat([x, x])),
    "ordinary": lambda: nn.Sequential(conv(), nn.ReLU()),
}
CHANGING = {"counts", "grows", "keeps", "lazy", "lazy norm", "in place", "spectral"}
"""Those that change themselves when they are used, or fill what was empty."""

ENDS: dict[str, Callable[[], nn.Module]] = {
    "scores": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(MAPS, 3)),
    "lazy scores": lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(3)),
    "maps": nn.Identity,
    "one number": lambda: Does(lambda x: x.mean()),
    "no axis": lambda: Does(lambda x: x.mean((1, 2, 3))),
    "one score": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :1])),
    "no scores": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :0])),
    "complex": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: torch.complex(x, x)[:, :3])),
    "truth": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :3] > 0)),
    "whole": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :3].long())),
    "sparse": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :3].to_sparse())),
    "nested": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: torch.nested.nested_tensor(list(x[:, :3])))),
    "dictionary": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: {"logits": x[:, :3], "hidden": (x, x)})),
    "dataclass": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: Answer(x[:, :3]))),
    "tuple": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: (x[:, :3], x))),
    "list": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: list(x[:, :3]))),
    "nothing": lambda: Does(lambda x: None),
    "word": lambda: Does(lambda x: "a cat"),
    "array": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x.detach().numpy()[:, :3])),
    "not a number": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :3] * float("nan"))),
    "half": lambda: nn.Sequential(nn.Flatten(), Does(lambda x: x[:, :3].half())),
}


def network(draw: random.Random) -> tuple[nn.Module, list[str]]:
    """A network of a convolution, up to three odd modules and an end; and the names of its parts."""
    parts = draw.choices(list(MODULES), k=draw.randint(1, 3))
    end = draw.choice([*ENDS, *["scores"] * len(ENDS)])
    modules = [nn.Conv2d(1, MAPS, 3, padding=1), nn.ReLU(), *(MODULES[part]() for part in parts), ENDS[end]()]
    whole = nn.Sequential(*modules)
    whole.train(draw.random() < 0.2)
    return whole, [*parts, f"end in {end}"]


def ordinary() -> nn.Module:
    """A network with nothing odd about it."""
    return nn.Sequential(nn.Conv2d(1, MAPS, 3, padding=1), nn.ReLU(), MODULES["ordinary"](), ENDS["scores"]())
