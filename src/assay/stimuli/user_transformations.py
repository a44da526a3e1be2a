"""Transformations of the user's: any function of pictures and magnitudes, found by name, checked as it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.core.errors import ANYTHING, AssayError, reason, shown
from assay.core.fingerprint import fingerprint
from assay.core.source_code import source_fingerprint
from assay.core.user_code import import_named

Transformation = Callable[..., Tensor]
"""A function τ of pictures N×C×H×W and one magnitude for each of them; it returns pictures of the same shape."""

_CALLED = {
    False: "pictures N×C×H×W and a tensor of N magnitudes; set each: true for a function of one picture and one number",
    True: "one picture C×H×W and one number",
}


def transformation_named(name: str) -> Transformation:
    """The function that ``module:function`` names."""
    function = import_named(name, f"transformation {name!r}", "'module:function'")
    if isinstance(function, type) or not callable(function):
        raise AssayError(f"transformation {name!r} is {shown(function)}, not a function of pictures and magnitudes")
    fingerprint(function)  # an object that cannot be told from another is refused here, not in the middle of a run
    return function  # type: ignore[no-any-return]


@dataclass(frozen=True)
class UserTransformation:
    """A function of the user's that is called as it wants to be; what it does wrong is one sentence.

    Args:
        function: The function.
        name: What sentences call it.
        each: Whether it takes one picture C×H×W and one number, not N pictures and a tensor of N magnitudes.

    Example:
        >>> roll = UserTransformation(lambda picture, pixels: picture.roll(int(pixels), -1), "roll", each=True)
        >>> roll(torch.arange(3.0).expand(2, 1, 1, 3), torch.tensor([0.0, 1.0])).flatten().tolist()
        [0.0, 1.0, 2.0, 2.0, 0.0, 1.0]
    """

    function: Transformation
    name: str
    each: bool = False

    def __call__(self, pictures: Tensor, magnitudes: Tensor) -> Tensor:
        """Transform pictures N×C×H×W, each by its magnitude; an error where the function gives no pictures back."""
        try:
            with torch.no_grad():
                transformed = self._called(pictures, magnitudes)
        except AssayError:
            raise
        except ANYTHING as error:  # the function is the user's
            raise AssayError(
                f"transformation {self.name!r} fails ({reason(error)}): it is called with {_CALLED[self.each]}"
            ) from error
        self._require(pictures, transformed, "a batch of " if not self.each else "")
        transformed = transformed.to(pictures)
        bad = ~transformed.isfinite().flatten(1).all(1)
        if bad.any():
            magnitude = float(magnitudes[bad.nonzero()[0, 0]])
            raise AssayError(f"transformation {self.name!r} gives NaN or infinite pixels at magnitude {magnitude:g}")
        return transformed

    @property
    def source(self) -> str:
        """Hash of the module that the function is from, and of all that it imports, in whichever function."""
        return source_fingerprint(getattr(self.function, "__module__", None) or type(self.function).__module__)

    def _called(self, pictures: Tensor, magnitudes: Tensor) -> Tensor:
        """What the function gives back."""
        if not self.each:
            return self.function(pictures.clone(), magnitudes.clone())  # which it may write to
        transformed = []
        for picture, magnitude in zip(pictures, magnitudes.tolist(), strict=True):
            one = self.function(picture.clone(), magnitude)
            self._require(picture, one, "")
            transformed.append(one.clone())  # it may be memory that the function uses again
        return torch.stack(transformed)

    def _require(self, pictures: Tensor, transformed: object, of: str) -> None:
        """Refuse anything but as many floating-point pictures of the same size."""
        if not isinstance(transformed, Tensor):
            raise AssayError(f"transformation {self.name!r} gives back {shown(transformed)}, not a tensor")
        if transformed.shape != pictures.shape:
            given, taken = ("×".join(map(str, x.shape)) or "a single number" for x in (transformed, pictures))
            raise AssayError(f"transformation {self.name!r} makes {given} of {of}{taken}: the shape must stay the same")
        if not transformed.is_floating_point():
            raise AssayError(
                f"transformation {self.name!r} gives back {transformed.dtype}, not floating-point pictures"
            )

    def require_repeatable(self, pictures: Tensor, magnitudes: Tensor) -> None:
        """Refuse a function that is random, for which the other pictures of a batch matter, or that changes nothing.

        It is called twice, and then with the last picture by itself. Differences of the size of rounding, which may
        depend on the size of a batch, are ignored. One that changes no picture is tried on noise too.
        """
        first = self(pictures, magnitudes).clone()
        if _alike(first, pictures):
            noise = torch.rand(pictures.shape, generator=torch.Generator().manual_seed(0)).to(pictures)
            if _alike(self(noise, magnitudes), noise):
                at = ", ".join(f"{m:g}" for m in dict.fromkeys(magnitudes.tolist()))
                raise AssayError(
                    f"transformation {self.name!r} gives pictures back as they are, at all magnitudes ({at}): every "
                    "network would be invariant to it; return what was made of them"
                )
        if not _alike(first, self(pictures, magnitudes)):
            raise AssayError(
                f"transformation {self.name!r} gives two results for the same pictures and magnitudes: it must not be "
                "random; draw from a generator that the function makes from a fixed seed"
            )
        if not _alike(first[-1:], self(pictures[-1:], magnitudes[-1:])):
            raise AssayError(
                f"transformation {self.name!r} makes something else of a picture when it is shown with others: the "
                "result must depend on the picture and its own magnitude alone"
            )


def _alike(one: Tensor, other: Tensor) -> bool:
    # Sums in another order differ by a few units in the last of 24 bits; pixels are of the order of 1.
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)
