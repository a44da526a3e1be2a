"""A learner in a process of its own, with the interpreter and packages its team chose; connected by files only."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from assay.broad.data.dataset import Features
from assay.broad.data.features import packed
from assay.broad.systems.command import Command
from assay.core.errors import AssayError


class SubprocessLearner(Command):
    """A learner that is a command, called in three ways, always with ``--depth deep|shallow --parameters P.json``.

    - ``command layers`` prints a JSON list with ``{"name": …, "algorithm": …}`` for each layer, the first one first;
    - ``command fit --data X.npz --model DIR`` leaves what it learned in DIR;
    - ``command transform --model DIR --data X.npz --layer I --out Y.npz`` writes the representation of layer I.

    A file holds ``matrix``; or a sparse matrix as ``data``, ``indices``, ``indptr`` and ``shape``; or a list of arrays
    as ``list`` (their number n) and ``a0`` … ``a{n−1}``. Features are all that is ever written: there is nothing else
    to learn from. `assay.broad.systems.adapter.serve` is this protocol's other side, for commands in Python.

    Args:
        command: Program and its arguments.
        parameters: The system's own parameters, handed on as a JSON file.
        environment: Environment variables to set, on top of the present ones.
        timeout_s: Seconds that one call may take; None for no limit.
        workdir: Folder to run in, and to which file names in ``command`` and ``sources`` are relative.
        sources: Files and folders the system is made of, besides the files named in ``command``.
        depth: ``"deep"``, or ``"shallow"`` for one layer.
    """

    def __init__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        workdir: str | None = None,
        sources: Sequence[str] = (),
        depth: Literal["deep", "shallow"] = "deep",
    ) -> None:
        super().__init__(command, parameters, environment, timeout_s, workdir, sources)
        if depth not in ("deep", "shallow"):
            raise AssayError(f"depth={depth!r} is not 'deep' or 'shallow'")
        self.depth: Literal["deep", "shallow"] = depth
        self._described: list[dict[str, str]] | None = None

    @property
    def layers(self) -> list[str]:
        """Names of the layers, as the command prints them."""
        return [layer["name"] for layer in self._layers()]

    @property
    def algorithm(self) -> list[str]:
        """Name of the algorithm by which each layer learns."""
        return [layer["algorithm"] for layer in self._layers()]

    def shallow(self) -> Self:
        """Make a learner of the same command with one layer, not fitted."""
        return type(self)(
            self.command, self.parameters, self.environment, self.timeout_s, self.workdir, self.sources, "shallow"
        )

    def fit(self, X: Features) -> Self:
        """Run the command to learn from features, and keep what it learned."""
        self._learn({"X.npz": packed(X)}, "--data", "X.npz")
        return self

    def transform(self, X: Features, layer: int = -1) -> Features:
        """Run the command to compute the representation of a layer."""
        if not self.model_:
            raise AssayError("this learner has not learned yet: fit first")
        layers = len(self.layers)
        if not -layers <= layer < layers:
            raise AssayError(f"layer={layer}: there are {layers} layers")
        return self._answer("transform", {"X.npz": packed(X)}, "--data", "X.npz", "--layer", str(layer % layers))

    @property
    def _options(self) -> tuple[str, ...]:
        return ("--depth", self.depth)

    def _layers(self) -> list[dict[str, str]]:
        if self._described is None:
            with tempfile.TemporaryDirectory(prefix="assay-") as temporary:
                printed = self._call(Path(temporary), "layers")
            try:
                self._described = [{k: str(layer[k]) for k in ("name", "algorithm")} for layer in json.loads(printed)]
            except (ValueError, TypeError, KeyError) as error:
                raise AssayError(
                    f"{self._name} layers printed {printed[:80]!r}, not a JSON list of "
                    '{"name": …, "algorithm": …} for each layer'
                ) from error
        return self._described
