"""The parametric test: any family of transformations τ(x, γ) on any set of images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest, shown
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_array
from assay.stimuli.datasets import as_images, as_tuple
from assay.stimuli.images import Images
from assay.stimuli.invariance_test import OpenTest
from assay.stimuli.pictures import Array
from assay.stimuli.user_transformations import Transformation, UserTransformation, transformation_named


def rotation(x: Tensor, degrees: Tensor) -> Tensor:
    """Turn pictures counter-clockwise around their centre; pixels from outside the picture are 0."""
    from kornia.geometry.transform import rotate

    return rotate(x, degrees)  # type: ignore[no-any-return]


def translation_x(x: Tensor, pixels: Tensor) -> Tensor:
    """Shift pictures to the right; pixels from outside the picture are 0."""
    from kornia.geometry.transform import translate

    return translate(x, torch.stack([pixels, torch.zeros_like(pixels)], 1))  # type: ignore[no-any-return]


def translation_y(x: Tensor, pixels: Tensor) -> Tensor:
    """Shift pictures downwards; pixels from outside the picture are 0."""
    from kornia.geometry.transform import translate

    return translate(x, torch.stack([torch.zeros_like(pixels), pixels], 1))  # type: ignore[no-any-return]


def scale(x: Tensor, factor: Tensor) -> Tensor:
    """Enlarge pictures around their centre by a factor."""
    from kornia.geometry.transform import scale as kornia_scale

    return kornia_scale(x, torch.stack([factor, factor], 1))  # type: ignore[no-any-return]


def brightness(x: Tensor, amount: Tensor) -> Tensor:
    """Add a constant to all pixels of a picture."""
    return x + amount[:, None, None, None]


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply the difference of each pixel from the picture's mean by a factor."""
    mean = x.mean((1, 2, 3), keepdim=True)
    return mean + factor[:, None, None, None] * (x - mean)


def blur(x: Tensor, sigma: Tensor) -> Tensor:
    """Blur by a Gaussian of σ pixels, cut at 3σ of the largest σ; σ = 0 leaves the picture unchanged."""
    from kornia.filters import gaussian_blur2d

    reach = min(math.ceil(3 * float(sigma.max())), min(x.shape[-2:]) - 1)
    wide = sigma.clamp_min(1e-3)[:, None].expand(-1, 2)
    blurred = gaussian_blur2d(x, (2 * reach + 1, 2 * reach + 1), wide) if reach else x
    return torch.where((sigma > 0)[:, None, None, None], blurred, x)


NAMED: Mapping[str, Transformation] = {
    f.__name__: f for f in (rotation, translation_x, translation_y, scale, brightness, contrast, blur)
}


@dataclass(frozen=True)
class Family:
    """One transformation at several magnitudes γ ∈ Γ.

    Args:
        transformation: A name (rotation in degrees, translation_x and translation_y in pixels, scale, brightness,
            contrast, blur in pixels) or any function of pictures N×C×H×W and a tensor of N magnitudes, which gives
            pictures of the same shape back and is not random; in a plan ``module:function``.
        magnitudes: Γ, the magnitudes at which every picture is shown.
        each: Whether a function is called with one picture C×H×W and one number at a time.
    """

    transformation: str | Transformation
    magnitudes: tuple[float, ...]
    each: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.transformation, str) and ":" in self.transformation:
            object.__setattr__(self, "transformation", transformation_named(self.transformation))
        if isinstance(self.transformation, str) and self.transformation not in NAMED:
            known = nearest(self.transformation, [*NAMED, "module:function"])
            raise AssayError(f"unknown transformation {self.transformation!r}{known}")
        if not isinstance(self.transformation, str) and not callable(self.transformation):
            raise AssayError(f"transformation={shown(self.transformation)} is no name and no function of pictures")
        if self.each and isinstance(self.transformation, str):
            raise AssayError(f"each is for functions of your own: {self.transformation} takes pictures together")
        object.__setattr__(self, "magnitudes", as_tuple(self.magnitudes, "magnitudes", (int, float)))
        if not self.magnitudes or not all(math.isfinite(m) for m in self.magnitudes):
            raise AssayError(f"magnitudes={self.magnitudes} must be finite numbers, at least one")

    @property
    def name(self) -> str:
        """The name of the transformation, as given or that of the function."""
        chosen = self.transformation
        return chosen if isinstance(chosen, str) else getattr(chosen, "__name__", type(chosen).__name__)

    def __call__(self, pictures: Tensor) -> Tensor:
        """Transform pictures N×C×H×W by all M magnitudes, to N×M×C×H×W."""
        function = NAMED[self.transformation] if isinstance(self.transformation, str) else self._of_the_user
        transformed = function(*self._repeated(pictures))
        return transformed.reshape(len(pictures), len(self.magnitudes), *pictures.shape[1:])

    def require_repeatable(self, pictures: Tensor) -> None:
        """Try a function of the user's on a few pictures N×C×H×W; refuse one that is random or gives no pictures."""
        if not isinstance(self.transformation, str):
            self._of_the_user.require_repeatable(*self._repeated(pictures))

    @property
    def source(self) -> str:
        """Hash of the source of a function of the user's; empty for a named transformation."""
        return "" if isinstance(self.transformation, str) else self._of_the_user.source

    @property
    def _of_the_user(self) -> UserTransformation:
        assert not isinstance(self.transformation, str)
        return UserTransformation(self.transformation, self.name, self.each)

    def _repeated(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Each picture once for each magnitude, and the magnitude of each."""
        gamma = torch.tensor(self.magnitudes, dtype=pictures.dtype, device=pictures.device)
        at_once = f"{len(pictures)} pictures at {len(gamma)} magnitudes at a time"
        require_array(at_once, (len(gamma), *pictures.shape), pictures.element_size())
        return pictures.repeat_interleave(len(gamma), 0), gamma.repeat(len(pictures))


@dataclass(frozen=True, eq=False)
class ParametricTest(OpenTest):
    """P(x) is a set of images; T(z) = {τ(z, γ) : γ ∈ Γ} is made of the image z, on the device of the network.

    Args:
        images: The images that are transformed.
        families: The families of transformations; their names must differ. Functions of the user's are tried on two
            of the images, on the CPU.

    Example:
        >>> test = ParametricTest(Images(torch.rand(4, 1, 8, 8).numpy()), (Family("rotation", (0, 90, 180, 270)),))
        >>> test.trajectory("rotation", torch.from_numpy(next(test.batches(4)))).shape
        torch.Size([4, 4, 1, 8, 8])
    """

    images: Images
    families: tuple[Family, ...]

    name = "parametric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", as_images(self.images))
        object.__setattr__(self, "families", as_tuple(self.families, "families", Family))
        names = [family.name for family in self.families]
        if not names:
            raise AssayError("families is empty: give at least one transformation")
        if len(set(names)) < len(names):
            raise AssayError(f"two families are called {next(n for n in names if names.count(n) > 1)!r}")
        for family in self.families:
            family.require_repeatable(torch.from_numpy(self.images.array[:2].copy()))

    @property
    def transformations(self) -> tuple[str, ...]:
        """Names of the families of transformations."""
        return tuple(family.name for family in self.families)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def description(self) -> str:
        """The images and the number of magnitudes of each family, in a line."""
        parts = (f"{f.name} at {len(f.magnitudes)} magnitudes" for f in self.families)
        return f"{self.images.description}; {', '.join(parts)}"

    @property
    def fingerprint(self) -> str:
        """Hash of the images, of their class and of the families, with the source of the functions."""
        return fingerprint("parametric", self.images, self.families, [family.source for family in self.families])

    def batches(self, size: int) -> Iterator[Array]:
        """Yield the images in order, ``size`` at a time."""
        for start in range(0, len(self), size):
            yield self.images.array[start : start + size].copy()

    def pictures(self, numbers: Array) -> Array:
        """Return the images of these numbers, N×C×H×W."""
        return self.images.array[numbers.ravel()]

    def magnitudes(self, transformation: str) -> Array:
        """Return the magnitudes of a family, in the order in which it has them."""
        return np.asarray(self.families[self.transformations.index(transformation)].magnitudes, dtype=np.float64)

    def trajectory(self, transformation: str, stimuli: Tensor) -> Tensor:
        """Transform stimuli N×C×H×W by all magnitudes of a family, chosen by its name."""
        return self.families[self.transformations.index(transformation)](stimuli)
