"""Odd networks, and everything that can be asked of one: it works or is refused, and the network stays as it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from fuzz import odd_modules
from fuzz.harness import Broken, Case

SIDE = 8
CLASSES = 3


def prepare(shared: Path) -> None:
    """Load what every case needs, so that no process loads it anew."""
    import assay.report.run  # noqa: F401

    torch.set_num_threads(1)
    for call in CALLS.values():  # loads what each of them needs
        call(odd_modules.ordinary(), random.Random(0), shared / call.__name__)


def run_case(case: Case) -> None:
    """Make a network of a few ordinary and odd modules, ask it something, and see that it is as it was."""
    draw = case.draw
    torch.manual_seed(draw.randrange(2**31))
    network, parts = odd_modules.network(draw)
    calls = draw.sample(list(CALLS), draw.randint(1, 2))
    case.note(f"{' → '.join(parts)}, asked for {' and '.join(calls)}")
    before, around = state(network), modes()
    try:
        for call in calls:
            CALLS[call](network, draw, case.folder)
    finally:
        if modes() != around:
            raise Broken(f"the modes of torch were {around} and are {modes()}")
        if not any(part in odd_modules.CHANGING for part in parts) and (changed := differences(before, state(network))):
            raise Broken(f"the network was changed: {changed}")


def modes() -> tuple[Any, ...]:
    """What torch has one of for everybody."""
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu"))  # fmt: skip


def state(network: nn.Module) -> dict[str, Any]:
    """Everything of a network that nobody but its owner may change."""
    found: dict[str, Any] = {}
    for path, module in network.named_modules():
        hooks = [len(getattr(module, name)) for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]
        found[f"mode of {path!r}"] = module.training
        found[f"hooks of {path!r}"] = hooks
        found[f"attributes of {path!r}"] = sorted(vars(module))
        for kind in ("_parameters", "_buffers"):
            for name, tensor in vars(module)[kind].items():
                if tensor is not None:
                    found[f"{path}.{name}"] = _content(tensor)
    return found


def _content(tensor: torch.Tensor) -> Any:
    about = (tensor.dtype, tensor.requires_grad, str(tensor.device), tensor.is_leaf)
    if isinstance(tensor, nn.parameter.UninitializedTensorMixin) or tensor.device.type == "meta":
        return about
    values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    whole = values.detach().to_dense().float().flatten() if not values.is_quantized else values.int_repr().flatten()
    return (*about, tuple(tensor.shape), tensor.grad is None, whole.nan_to_num(7.25).tolist())


def differences(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What differs, in words."""
    return ", ".join(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))[:500]


def _pictures(draw: random.Random, count: int = 6) -> Any:
    return np.random.default_rng(draw.randrange(2**31)).random((count, 1, SIDE, SIDE), dtype=np.float32)


def _labelled(draw: random.Random) -> Any:
    from assay.stimuli import Labelled

    return Labelled(_pictures(draw, 12), np.arange(12) % CLASSES)


def _sequences(draw: random.Random) -> Any:
    from assay.stimuli import Sequences

    return Sequences.of(one=_pictures(draw, 4), two=_pictures(draw, 5))


def _measures(draw: random.Random) -> dict[str, Callable[[], Any]]:
    import assay
    from assay.stimuli import Gratings

    few: Any = {"bootstrap": 10, "batch_size": draw.choice((None, 1, 3))}
    layers = draw.choice((assay.ALL, [0], [-1], [0, -1], "output"))
    return {
        "straightness": lambda: assay.Straightness(_sequences(draw), layers=layers),
        "invariance": lambda: assay.Invariance(
            Gratings(size=SIDE, orientations=3, phases=3, frequencies=(4, 8)), layers=layers,
            units=draw.choice(("all", "centre")), **few
        ),
        "perturbation": lambda: assay.PerturbationResponse(
            _labelled(draw), draw.choice(("intra", "inter")), draw.choice((0, 1, -1)), magnitudes=3, **few
        ),
        "margins": lambda: assay.Margins(_labelled(draw), **few),
        "sharpness": lambda: assay.Sharpness(_labelled(draw), draws=1, ascent=1, steps=2, **few),
        "norms": lambda: assay.Norms(),
        "distance": lambda: assay.InitialDistance(shape=(1, SIDE, SIDE)),
        "margin bounds": lambda: assay.MarginBounds(_labelled(draw), **few),
        "pac-bayes": lambda: assay.PacBayes(_labelled(draw), draws=1, steps=2, **few),
        "clusters": lambda: assay.ClusterSeparation(_labelled(draw), rounds=1, images=3, **few),
        "augmentations": lambda: assay.AugmentationRobustness(_labelled(draw), **few),
        "next frame": lambda: assay.NextFrameError(_sequences(draw), length=4),
    }  # fmt: skip


def _measure(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import Subject

    measure = draw.choice(list(_measures(draw).values()))()
    table = measure(Subject(network, initial_weights=_start(network)))
    measure.summary(table)


def _start(network: nn.Module) -> dict[str, torch.Tensor] | None:
    """The weights of a network as if it had not been trained; None where its own code does not give them."""
    try:
        return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    except Exception:  # odd modules raise what they like
        return None


def _evaluate(network: nn.Module, draw: random.Random, folder: Path) -> None:
    import assay

    chosen = {name: make() for name, make in draw.sample(list(_measures(draw).items()), 2)}
    run = assay.evaluate(network, chosen, folder / "run")
    for failure in run.failures:
        if failure.error and not failure.error.startswith(("AssayError", "assay")) and not failure.traceback:
            raise Broken(f"a cell failed without a traceback: {failure.error}")
    if len(run.failures) + run.done != len(chosen):
        raise Broken(f"{run.done} cells are done and {len(run.failures)} failed, of {len(chosen)}")
    run.report()


def _record(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import ALL, Subject

    Subject(network).record(torch.from_numpy(_pictures(draw)), draw.choice((ALL, [0], [-1], "0")))


def _visit(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import Subject

    Subject(network).visit(_pictures(draw), lambda layer, output: None)


def _split(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import Subject

    subject = Subject(network, example=torch.from_numpy(_pictures(draw)))
    first, rest = subject.split(draw.choice((0, 1, 2, -1, 0.5)))
    output, carried = first(torch.from_numpy(_pictures(draw)))
    rest(output, carried)


def _describe(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import Subject

    subject = Subject(network, example=torch.from_numpy(_pictures(draw)))
    repr(subject)
    subject._repr_html_()
    if subject.fingerprint != Subject(network).fingerprint:
        raise Broken("the same network has two fingerprints")
    subject.repeats(subject.layers)
    subject.probe()


def _similarity(network: nn.Module, draw: random.Random, folder: Path) -> None:
    from assay import HumanSimilarity, Subject
    from assay.stimuli import as_human_stimuli

    stimuli = as_human_stimuli((_pictures(draw), np.random.default_rng(0).random((3, 15))))
    HumanSimilarity(stimuli, bootstrap=10)(Subject(network))


CALLS: dict[str, Callable[[nn.Module, random.Random, Path], None]] = {
    "measure": _measure, "measure too": _measure, "measure as well": _measure, "evaluate": _evaluate,
    "record": _record, "visit": _visit, "split": _split, "describe": _describe, "similarity": _similarity,
}  # fmt: skip
