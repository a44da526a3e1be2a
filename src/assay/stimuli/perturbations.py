"""Perturbations T_α of inputs or of layers' outputs: mixing with another input, moving, recolouring, noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest, shown
from assay.stimuli import families
from assay.stimuli.pictures import Array
from assay.stimuli.user_transformations import Transformation

Magnitude = float | Tensor
"""How much a batch is changed: a number for all its inputs, or one for each."""


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
        """Name of the perturbation in tables."""

    @property
    def identity(self) -> float | None:
        """The magnitude that changes nothing, if there is one."""
        return 0.0

    @property
    def ends(self) -> bool:
        """Whether ``high`` itself is one of the magnitudes."""
        return True

    def magnitudes(self, count: int) -> tuple[float, ...]:
        """Return ``count`` magnitudes, spread evenly from ``low`` to ``high``."""
        return tuple(np.linspace(self.low, self.high, count, endpoint=self.ends).tolist())

    def draw(self, labels: Array, rng: np.random.Generator) -> tuple[Any, Array]:
        """Draw what is random for a batch with these labels; return it and which of the inputs can be perturbed."""
        return int(rng.integers(2**62)), np.ones(len(labels), dtype=bool)

    @abstractmethod
    def on(self, x: Tensor, drawn: Any) -> Callable[[Tensor], Tensor]:
        """Return the function α ↦ T_α(x), which takes one magnitude for each input."""

    def on_stack(self, x: Tensor, drawn: Any) -> Callable[[Sequence[Magnitude]], Tensor]:
        """Return the function of k magnitudes that gives the k changed batches one after the other, k·N inputs."""
        change = self.on(x, drawn)
        return lambda magnitudes: torch.cat([change(_for_each_input(magnitude, x)) for magnitude in magnitudes])


@dataclass(frozen=True)
class Mixup(Perturbation):
    """T_α(x) = (1−α)x + αx', x' another input of the same class (``intra``) or of another class (``inter``).

    α is in [0, 0.5] within a class and in [0, 0.5) between classes: at 0.5 neither of the two labels is the right one.
    Partners are drawn from the same batch.

    Args:
        kind: Whether the other input is of the same class, ``intra``, or of another, ``inter``.
        low: The smallest magnitude.
        high: The largest magnitude.

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
        """Name in tables: ``intra`` or ``inter``."""
        return self.kind

    @property
    def ends(self) -> bool:
        """Whether 0.5 itself is one of the magnitudes: only within a class."""
        return self.kind == "intra"

    def draw(self, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw, for each input, the row of its partner; inputs without a partner cannot be perturbed."""
        partner = np.arange(len(labels))
        for label in np.unique(labels):
            in_class = np.flatnonzero(labels == label)
            if self.kind == "inter":
                others = np.flatnonzero(labels != label)
                if len(others):
                    partner[in_class] = rng.choice(others, len(in_class))
            else:
                order = rng.permutation(in_class)
                partner[order] = np.roll(order, 1)
        return partner, partner != np.arange(len(labels))

    def on(self, x: Tensor, drawn: Array | Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function that mixes each input with its partner."""
        other = _picked(x, drawn)
        return lambda magnitudes: torch.lerp(x, other, _per_input(magnitudes, x))

    def on_stack(self, x: Tensor, drawn: Array | Tensor) -> Callable[[Sequence[Magnitude]], Tensor]:
        """Return the function that mixes at several magnitudes, each batch where the stack has its place.

        A magnitude that is one number for all inputs is not made into a number for each, with which a GPU mixes several
        times slower than it writes.
        """
        other = _picked(x, drawn)
        size, strides = x[0].numel(), torch.empty_like(x).stride()  # laid out in memory as x is, if x is rows on end
        strides = strides if strides[0] == size else torch.empty(x.shape, device="meta").stride()

        def mixed(magnitudes: Sequence[Magnitude]) -> Tensor:
            weights = [_per_input(m, x) if isinstance(m, Tensor) else m for m in magnitudes]
            if len(weights) == 1:
                return torch.lerp(x, other, weights[0])
            stack = x.new_empty_strided((len(weights) * len(x), *x.shape[1:]), strides)
            for place, weight in zip(torch.split(stack, len(x)), weights, strict=True):
                torch.lerp(x, other, weight, out=place)
            return stack

        return mixed


@dataclass(frozen=True)
class Transformed(Perturbation):
    """A perturbation T_α given as any function of a batch and one magnitude for each of its inputs.

    Args:
        function: A name in `TRANSFORMATIONS`, or a function (batch, magnitudes) → batch of the same shape.
        low: The smallest magnitude; by default the usual one of a named transformation.
        high: The largest magnitude, likewise.
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
        """Name of the function, as tables show it."""
        chosen = self.function
        return chosen if isinstance(chosen, str) else getattr(chosen, "__name__", type(chosen).__name__)

    @property
    def identity(self) -> float | None:
        """The magnitude that changes nothing: 0 for those of `TRANSFORMATIONS`, unknown for other functions."""
        return 0.0 if isinstance(self.function, str) else None

    def on(self, x: Tensor, drawn: int) -> Callable[[Tensor], Tensor]:
        """Return the function of the magnitudes that transforms the batch, and checks that its shape is kept."""
        function = TRANSFORMATIONS[self.function][0] if isinstance(self.function, str) else self.function
        if isinstance(self.function, str) and self.function != "dim" and x.dim() != 4:
            raise AssayError(f"{self.name} changes pictures N×C×H×W, not {tuple(x.shape)}: choose another layer")

        def transform(magnitudes: Tensor) -> Tensor:
            own = isinstance(self.function, str)
            transformed = function(x, magnitudes) if own else function(x.clone(), magnitudes.clone())  # to write to
            if not isinstance(transformed, Tensor):
                raise AssayError(f"{self.name} gave back {shown(transformed)}, not a tensor")
            if transformed.shape != x.shape:
                raise AssayError(f"{self.name} made {tuple(transformed.shape)} of a batch of {tuple(x.shape)}")
            return transformed

        return transform


@dataclass(frozen=True)
class Noise(Perturbation):
    """Additive noise T_α(x) = x + αε, ε standard normal and the same for every α.

    Args:
        low: The smallest magnitude.
        high: The largest magnitude.
    """

    low: float = 0.0
    high: float = 0.5

    def __post_init__(self) -> None:
        _require_range(self)

    @property
    def name(self) -> str:
        """Name in tables: ``noise``."""
        return "noise"

    def on(self, x: Tensor, drawn: int) -> Callable[[Tensor], Tensor]:
        """Return the function that adds the noise drawn for the batch."""
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(drawn)).to(x)
        return lambda magnitudes: x + _per_input(magnitudes, x) * noise


def shift_x(x: Tensor, share: Tensor) -> Tensor:
    """Shift pictures to the right by a share of their width; pixels from outside the picture are 0."""
    return families.translation_x(x, share * x.shape[-1])


def shift_y(x: Tensor, share: Tensor) -> Tensor:
    """Shift pictures downwards by a share of their height; pixels from outside the picture are 0."""
    return families.translation_y(x, share * x.shape[-2])


def color_jitter(x: Tensor, amount: Tensor) -> Tensor:
    """Multiply brightness, contrast and saturation by 1 + α, then turn the hue by α of a circle; stay in [0, 1].

    Grey pictures have neither saturation nor hue.
    """
    from kornia import enhance

    factor = 1 + amount
    x = (x * _per_input(factor, x)).clamp(0, 1)
    x = enhance.adjust_contrast_with_mean_subtraction(x, factor)
    if x.shape[1] == 3:
        x = enhance.adjust_saturation_with_gray_subtraction(x, factor)
        x = enhance.adjust_hue(x, 2 * math.pi * amount)
    return x


def dim(x: Tensor, amount: Tensor) -> Tensor:
    """Scale the intensity down, to (1 − α)x."""
    return x * _per_input(1 - amount, x)


TRANSFORMATIONS: Mapping[str, tuple[Transformation, float, float]] = {
    "rotation": (families.rotation, -180.0, 179.0),
    "translation_x": (shift_x, -0.5, 0.5),
    "translation_y": (shift_y, -0.5, 0.5),
    "color_jitter": (color_jitter, -0.25, 0.25),
    "blur": (families.blur, 0.0, 3.0),
    "dim": (dim, 0.0, 0.9),
}
PERTURBATIONS = ("intra", "inter", "noise", *TRANSFORMATIONS)
"""Names of the perturbations that have a usual range."""


def perturbation(named: str | Perturbation) -> Perturbation:
    """Return the perturbation of a name over its usual range, and a perturbation unchanged.

    Example:
        >>> perturbation("inter").magnitudes(5)
        (0.0, 0.1, 0.2, 0.30000000000000004, 0.4)
    """
    if isinstance(named, Perturbation):
        return named
    if named in ("intra", "inter"):
        return Mixup(named)  # type: ignore[arg-type]
    return Noise() if named == "noise" else Transformed(named)


def _per_input(magnitudes: Tensor, x: Tensor) -> Tensor:
    """Return one magnitude for each input, shaped to multiply the batch."""
    return magnitudes.to(x).reshape(-1, *[1] * (x.dim() - 1))


def _picked(x: Tensor, rows: Array | Tensor) -> Tensor:
    """Rows of a tensor, laid out in memory as the tensor is: a GPU mixes what lies alike several times faster."""
    return torch.index_select(x, 0, torch.as_tensor(rows, device=x.device), out=torch.empty_like(x))


def _for_each_input(magnitude: Magnitude, x: Tensor) -> Tensor:
    if isinstance(magnitude, Tensor):
        return magnitude
    return torch.full((len(x),), magnitude, dtype=torch.float32, device=x.device)


def _require_range(perturbation: Perturbation) -> None:
    low, high = perturbation.low, perturbation.high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise AssayError(f"{perturbation.name}: low={low} and high={high} must be finite, low below high")


def in_words(perturbation: str) -> str:
    """What readers call a perturbation of this name.

    Example:
        >>> in_words("intra"), in_words("translation_x")
        ('mixup within classes', 'translation x')
    """
    mixup = {"intra": "mixup within classes", "inter": "mixup between classes"}
    return mixup.get(perturbation, perturbation.replace("_", " "))
