"""The architecture of a corpus: one of assay's by its name, or a factory of the user's, ``module:factory``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from assay.core.errors import ANYTHING, AssayError, nearest, reason
from assay.core.tensor_limits import limited_tensors
from assay.core.user_code import code_in, import_named, same_directory
from assay.networks import FullyConvolutional, NetworkInNetwork, resnet, vgg

FACTORIES: dict[str, Callable[..., nn.Module]] = {
    "vgg": vgg,
    "nin": NetworkInNetwork,
    "conv": FullyConvolutional,
    "resnet": resnet,
}
SET_BY_DATA = ("classes", "channels")  # arguments of a network that follow from its data


class Architecture:
    """What makes the networks of a corpus, found by its name.

    Args:
        name: ``vgg``, ``nin``, ``conv``, ``resnet``, or ``module:factory`` for a function or class of the user's.
        folder: Where modules of the user's are looked for first: the folder of the plan.

    Example:
        >>> sorted(Architecture("resnet", Path()).arguments)
        ['depth', 'dropout', 'width']
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        if ":" not in name and name not in FACTORIES:
            raise AssayError(f"unknown network {name!r}{nearest(name, FACTORIES)}; or give 'module:factory'")
        if name in FACTORIES:
            self.factory = FACTORIES[name]
        else:
            with code_in(folder):
                self.factory = import_named(name, f"network {name!r}", "'module:factory'")
        if not callable(self.factory):
            raise AssayError(f"network {name!r} is a {type(self.factory).__name__}, not a factory of a network")
        self._parameters = inspect.signature(self.factory).parameters

    @property
    def arguments(self) -> dict[str, Any]:
        """Names and types of the arguments that a plan may give; one without a type may be anything."""
        maker = self.factory.__init__ if inspect.isclass(self.factory) else self.factory
        try:
            types = typing.get_type_hints(maker)
        except ANYTHING:  # a type that is imported for the type checker alone, for example
            types = {}
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        named = [name for name, parameter in self._parameters.items() if parameter.kind not in several]
        return {name: types.get(name, Any) for name in named if name not in SET_BY_DATA}

    def build(self, settings: Mapping[str, Any], classes: int, channels: int) -> nn.Module:
        """Build a network before training.

        Args:
            settings: Settings of a plan, of which those that are arguments of the factory are given to it.
            classes: Number of classes, given to a factory that takes ``classes``.
            channels: Number of channels of the inputs, given to a factory that takes ``channels``.
        """
        of_data = {"classes": classes, "channels": channels}
        takes_any = any(one.kind is one.VAR_KEYWORD for one in self._parameters.values())
        given = {name: value for name, value in settings.items() if name in self.arguments}
        given |= {name: value for name, value in of_data.items() if takes_any or name in self._parameters}
        try:
            with code_in(self.folder), same_directory(), limited_tensors(f"network {self.name!r}"):
                network = self.factory(**given)
        except AssayError:
            raise
        except ANYTHING as error:  # whatever a factory of the user's raises is about what it was given
            raise AssayError(f"network {self.name!r} with {given!r} failed ({reason(error)})") from error
        if not isinstance(network, nn.Module):
            raise AssayError(f"network {self.name!r} made a {type(network).__name__}, not a torch.nn.Module")
        return network
