"""Perturbations T_α: mixing with another input, moving, recolouring, noise; at any magnitude, of anything."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.stimuli import families
from assay.stimuli.families import Transformation
from assay.stimuli.pictures import Array


class Perturbation(ABC):
    """A family of changes T_α of a batch, α from ``low`` to ``high``; a frozen dataclass.

    What is random in it (another input, noise) is drawn once for each input, so that along a curve only α changes.
    """

    low: float
    high: float
    affine: ClassVar[bool] = False
    """Whether an affine layer may come before it instead of after it: A(T_α(x)) = T_α(A(x))."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What tables call it."""

    @property
    def identity(self) -> float | None:
        """The magnitude that changes nothing, if there is one."""
        return 0.0

    @property
    def ends(self) -> bool:
        """Whether ``high`` itself is one of the magnitudes."""
        return True

    def magnitudes(self, count: int) -> tuple[float, ...]:
        """So many magnitudes, evenly from ``low`` to ``high``."""
        return tuple(np.linspace(self.low, self.high, count, endpoint=self.ends).tolist())

    def draw(self, labels: Array, rng: np.random.Generator) -> tuple[Any, Array]:
        """What is random for a batch with these labels, and which of its inputs can be perturbed."""
        return int(rng.integers(2**62)), np.ones(len(labels), dtype=bool)

    @abstractmethod
    def on(self, x: Tensor, drawn: Any) -> Callable[[Tensor], Tensor]:
        """α ↦ T_α(x): a function of one magnitude for each input."""


@dataclass(frozen=True)
class Mixup(Perturbation):
    """T_α(x) = (1−α)x + αx', x' another input of the same class (``intra``) or of another class (``inter``).

    α is in [0, 0.5] within a class and in [0, 0.5) between classes: at 0.5 nobody can tell whose label counts.
    Partners are found within a batch.

    Example:
        >>> mix = Mixup("intra")
        >>> partner, ok = mix.draw(np.array([0, 1, 0, 1, 2]), np.random.default_rng(0))
        >>> partner.tolist(), ok.tolist()
        ([2, 3, 0, 1, 4], [True, True, True, True, False])
        >>> mix.on(torch.eye(5)[:, :3], partner)(torch.full((5,), 0.25))[0].tolist()
        [0.75, 0.0, 0.25]

    Schiff et al. 2021, section 4.1.1.
    """

    kind: Literal["intra", "inter"] = "intra"
    low: float = 0.0
    high: float = 0.5

    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in ("intra", "inter"):
            raise AssayError(f"kind={self.kind!r} is not 'intra' or 'inter'")
        _require_range(self)

    @property
    def name(self) -> str:
        """``intra`` or ``inter``."""
        return self.kind

    @property
    def ends(self) -> bool:
        """Only within a class."""
        return self.kind == "intra"

    def draw(self, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """For each input the row of its partner; inputs without one cannot be perturbed."""
        partner = np.arange(len(labels))
        for label in np.unique(labels):
            mine = np.flatnonzero(labels == label)
            if self.kind == "inter":
                others = np.flatnonzero(labels != label)
                if len(others):
                    partner[mine] = rng.choice(others, len(mine))
            else:
                order = rng.permutation(mine)
                partner[order] = np.roll(order, 1)
        return partner, partner != np.arange(len(labels))

    def on(self, x: Tensor, drawn: Array) -> Callable[[Tensor], Tensor]:
        """Mix with other rows of the batch."""
        other = x.index_select(0, torch.from_numpy(drawn).to(x.device))
        return lambda magnitudes: torch.lerp(x, other, _spread(magnitudes, x))


@dataclass(frozen=True)
class Transformed(Perturbation):
    """T_α is any function of a batch and one magnitude for each of its inputs.

    Args:
        function: A name of `TRANSFORMATIONS`, or a function (batch, magnitudes) → batch of the same shape.
        low: The smallest magnitude; by default the one usual for the name.
        high: The largest.
    """

    function: str | Transformation
    low: float = math.nan
    high: float = math.nan

    def __post_init__(self) -> None:
        if isinstance(self.function, str):
            if self.function not in TRANSFORMATIONS:
                raise AssayError(f"unknown perturbation {self.function!r}{nearest(self.function, PERTURBATIONS)}")
            _, low, high = TRANSFORMATIONS[self.function]
            object.__setattr__(self, "low", low if math.isnan(self.low) else self.low)
            object.__setattr__(self, "high", high if math.isnan(self.high) else self.high)
        elif math.isnan(self.low) or math.isnan(self.high):
            raise AssayError("a function as perturbation needs its range: give low and high")
        _require_range(self)

    @property
    def name(self) -> str:
        """That of the function."""
        given = self.function
        return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)

    @property
    def identity(self) -> float | None:
        """0 for those of `TRANSFORMATIONS`; nothing is known of other functions."""
        return 0.0 if isinstance(self.function, str) else None

    def on(self, x: Tensor, drawn: int) -> Callable[[Tensor], Tensor]:
        """Apply the function."""
        function = TRANSFORMATIONS[self.function][0] if isinstance(self.function, str) else self.function
        if isinstance(self.function, str) and self.function != "dim" and x.dim() != 4:
            raise AssayError(f"{self.name} changes pictures N×C×H×W, not {tuple(x.shape)}: choose another layer")

        def changed(magnitudes: Tensor) -> Tensor:
            y = function(x, magnitudes)
            if y.shape != x.shape:
                raise AssayError(f"{self.name} made {tuple(y.shape)} of a batch of {tuple(x.shape)}")
            return y

        return changed


@dataclass(frozen=True)
class Noise(Perturbation):
    """T_α(x) = x + αε, ε standard normal, the same for every α."""

    low: float = 0.0
    high: float = 0.5

    def __post_init__(self) -> None:
        _require_range(self)

    @property
    def name(self) -> str:
        """``noise``."""
        return "noise"

    def on(self, x: Tensor, drawn: int) -> Callable[[Tensor], Tensor]:
        """Add the noise drawn for the batch."""
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(drawn)).to(x)
        return lambda magnitudes: x + _spread(magnitudes, x) * noise


def shift_x(x: Tensor, share: Tensor) -> Tensor:
    """Shift to the right by a share of the width; what comes in from outside is 0."""
    return families.translation_x(x, share * x.shape[-1])


def shift_y(x: Tensor, share: Tensor) -> Tensor:
    """Shift downwards by a share of the height; what comes in from outside is 0."""
    return families.translation_y(x, share * x.shape[-2])


def color_jitter(x: Tensor, amount: Tensor) -> Tensor:
    """Brightness, contrast and saturation by the factor 1 + α and hue by α of a turn, in this order; in [0, 1].

    Grey pictures have neither saturation nor hue.
    """
    from kornia import enhance

    factor = 1 + amount
    x = (x * _spread(factor, x)).clamp(0, 1)
    x = enhance.adjust_contrast_with_mean_subtraction(x, factor)
    if x.shape[1] == 3:
        x = enhance.adjust_saturation_with_gray_subtraction(x, factor)
        x = enhance.adjust_hue(x, 2 * math.pi * amount)
    return x


def dim(x: Tensor, amount: Tensor) -> Tensor:
    """(1 − α)x: the intensity scaled down."""
    return x * _spread(1 - amount, x)


TRANSFORMATIONS: Mapping[str, tuple[Transformation, float, float]] = {
    "rotation": (families.rotation, -180.0, 179.0),
    "translation_x": (shift_x, -0.5, 0.5),
    "translation_y": (shift_y, -0.5, 0.5),
    "color_jitter": (color_jitter, -0.25, 0.25),
    "blur": (families.blur, 0.0, 3.0),
    "dim": (dim, 0.0, 0.9),
}
PERTURBATIONS = ("intra", "inter", "noise", *TRANSFORMATIONS)
"""Names of perturbations with a usual range."""


def perturbation(named: str | Perturbation) -> Perturbation:
    """A perturbation by its name, over its usual range; a perturbation stays what it is.

    Example:
        >>> perturbation("inter").magnitudes(5)
        (0.0, 0.1, 0.2, 0.30000000000000004, 0.4)
    """
    if isinstance(named, Perturbation):
        return named
    if named in ("intra", "inter"):
        return Mixup(named)  # type: ignore[arg-type]
    return Noise() if named == "noise" else Transformed(named)


def _spread(magnitudes: Tensor, x: Tensor) -> Tensor:
    return magnitudes.to(x).reshape(-1, *[1] * (x.dim() - 1))


def _require_range(perturbation: Perturbation) -> None:
    low, high = perturbation.low, perturbation.high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise AssayError(f"{perturbation.name}: low={low} and high={high} must be finite, low below high")
