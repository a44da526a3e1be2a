"""Adversarial examples: inputs within a distance ε of given ones at which a network's loss is larger.

Pure functions on tensors. Inputs are pixels, before any normalisation, because ε and the bounds are in their units;
``scores`` is a function from such inputs N×… to class scores N×K, and normalises them itself. Each step is computed
as in foolbox, so that the two agree to the last bit where nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, SupportsFloat, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError, nearest, shown

Norm = Literal["linf", "l2"]
MOST_STEPS = 10_000
StepSize = float | tuple[float, ...] | None
Scores = Callable[[Tensor], Tensor]
Bounds = tuple[float, float]
PIXELS: Bounds = (0.0, 1.0)

_RELATIVE_REACH = 2.5  # of all steps together, in units of ε: enough to cross the ball from any start, Madry et al.
_LARGEST = 1e9  # distance: float32 holds its square, and that of a step of it
_SMALLEST_EXPONENT = -126  # of a power of two whose inverse is a float32 too


def fgsm(scores: Scores, x: Tensor, labels: Tensor, norm: Norm, epsilon: float, *, bounds: Bounds = PIXELS) -> Tensor:
    """Adversarial examples by one step of length ε along the gradient of the loss (fast gradient method).

    x' = clip(x + ε·d), with d = sign(∇_x L) for L∞ and ∇_x L/‖∇_x L‖₂ for L2; L is the cross-entropy of the label.

    Args:
        scores: Function from inputs to class scores N×K.
        x: Inputs N×… within the bounds.
        labels: The true class of each input.
        norm: ``"linf"`` or ``"l2"``.
        epsilon: ε, the distance; 0 returns the inputs unchanged.
        bounds: Smallest and largest value of an input; examples are clipped to them.

    Example:
        >>> weight = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
        >>> x = torch.tensor([[0.5, 0.5]])
        >>> fgsm(lambda x: x @ weight.T, x, torch.tensor([0]), "linf", 0.1)
        tensor([[0.4000, 0.4000]])
        >>> fgsm(lambda x: x @ weight.T, x, torch.tensor([0]), "l2", 0.1)
        tensor([[0.4400, 0.4200]])

    Goodfellow, Shlens & Szegedy 2015, "Explaining and harnessing adversarial examples".
    """
    return pgd(scores, x, labels, norm, epsilon, steps=1, step_size=epsilon, random_start=False, bounds=bounds)


def pgd(
    scores: Scores,
    x: Tensor,
    labels: Tensor,
    norm: Norm,
    epsilon: float,
    *,
    steps: int = 7,
    step_size: StepSize = None,
    random_start: bool = True,
    generator: torch.Generator | None = None,
    bounds: Bounds = PIXELS,
) -> Tensor:
    """Adversarial examples by several steps along the gradient, each back into the ball of radius ε around the input.

    x_{t+1} = clip(x_0 + P(x_t + α_t·d_t − x_0)), with the direction d of `fgsm`. P leaves changes of norm up to ε as
    they are, and shortens others to it (L2) or clips every value to [−ε, ε] (L∞). The last x_t is returned.

    Args:
        scores: Function from inputs to class scores N×K.
        x: Inputs N×… within the bounds.
        labels: The true class of each input.
        norm: ``"linf"`` or ``"l2"``.
        epsilon: ε, the radius; 0 returns the inputs unchanged.
        steps: Number of steps.
        step_size: Size α of the steps, or a size for each of them; see `step_sizes`.
        random_start: Whether to start at a random place in the ball (see `random_change`) instead of its centre.
        generator: Random numbers of the start; torch's own by default.
        bounds: Smallest and largest value of an input; examples are clipped to them.

    Example:
        >>> weight = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
        >>> x = torch.tensor([[0.5, 0.0]])   # the second value cannot fall: it is 0
        >>> pgd(lambda x: x @ weight.T, x, torch.tensor([0]), "linf", 0.1, random_start=False)
        tensor([[0.4000, 0.0000]])

    Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks".
    """
    sizes = step_sizes(norm, epsilon, steps, step_size)
    if epsilon == 0:
        return x
    require_within(x, bounds)
    step = 0

    def gradient(at: Tensor) -> Tensor:
        nonlocal step
        step += 1
        return require_finite(loss_gradient(scores, at, labels), step)

    start = x + random_change(x, norm, epsilon, generator) if random_start else x
    return climb(gradient, x, start, norm, epsilon, sizes, bounds)


def climb(
    gradient: Scores, x: Tensor, start: Tensor, norm: Norm, epsilon: float, sizes: Sequence[float], bounds: Bounds
) -> Tensor:
    """Take the steps of `pgd` without checking anything, so that they can be recorded as a CUDA graph.

    A gradient that is not a number makes the example one that is not a number.

    Args:
        gradient: Function from inputs to the gradient of their loss.
        x: The inputs, centres of the balls.
        start: Where the steps begin.
        norm: ``"linf"`` or ``"l2"``.
        epsilon: Radius of the balls.
        sizes: Size of each step.
        bounds: Smallest and largest value of an input.
    """
    at = start if start is x else start.clamp(*bounds)
    for size in sizes:
        at = at + size * direction(gradient(at), norm)
        at = (x + project(at - x, norm, epsilon)).clamp(*bounds)
    return at


def loss_gradient(scores: Scores, x: Tensor, labels: Tensor) -> Tensor:
    """The gradient of each input's cross-entropy with respect to that input; no gradient of weights is computed.

    Example:
        >>> loss_gradient(lambda x: x * torch.tensor([2.0, 1.0]), torch.zeros(1, 2), torch.tensor([0]))
        tensor([[-1.0000,  0.5000]])
    """
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        loss = F.cross_entropy(scores(at), labels, reduction="sum")
        gradient = torch.autograd.grad(loss, at, allow_unused=True)[0] if loss.requires_grad else None
    if gradient is None:
        raise AssayError(
            "the scores have no gradient with respect to the inputs: an attack needs a network that computes them in "
            "torch, without torch.no_grad() and detach()"
        )
    return gradient


def direction(gradient: Tensor, norm: Norm) -> Tensor:
    """The direction of steepest ascent of length 1 in a norm: sign(g) for L∞, g/‖g‖₂ for L2; 0 where g is 0.

    Example:
        >>> direction(torch.tensor([[3.0, -4.0], [0.0, 0.0]]), "l2")
        tensor([[ 0.6000, -0.8000],
                [ 0.0000,  0.0000]])
    """
    if norm == "linf":
        return torch.where(gradient.isnan(), gradient, gradient.sign())  # torch's sign of NaN is 0
    # A network that is very sure has gradients whose squares underflow. Powers of two change no digit.
    _, exponent = torch.frexp(gradient.flatten(1).abs().amax(1))
    scale = torch.exp2(-exponent.clamp(min=_SMALLEST_EXPONENT).to(gradient.dtype))
    scaled = gradient * _per_input(scale, gradient)
    return scaled * _per_input(1 / _lengths(scaled), gradient)


def project(change: Tensor, norm: Norm, epsilon: float) -> Tensor:
    """The nearest change whose norm is at most ε: values clipped to [−ε, ε] for L∞, the whole shortened for L2.

    Example:
        >>> project(torch.tensor([[3.0, -4.0]]), "linf", 3.5), project(torch.tensor([[3.0, -4.0]]), "l2", 1.0)
        (tensor([[ 3.0000, -3.5000]]), tensor([[ 0.6000, -0.8000]]))
    """
    if norm == "linf":
        return change.clamp(-epsilon, epsilon)
    return change * _per_input((epsilon / _lengths(change)).clamp(max=1), change)


def random_change(x: Tensor, norm: Norm, epsilon: float, generator: torch.Generator | None = None) -> Tensor:
    """A random change of each input, uniform in the ball of radius ε.

    For L∞ every value is uniform in [−ε, ε]. For L2 the direction is that of a normal vector of n values, and the
    length ε·u^{1/n} with u uniform in [0, 1].

    Example:
        >>> change = random_change(torch.zeros(4, 100), "l2", 0.5, torch.Generator().manual_seed(0))
        >>> bool((change.norm(dim=1) <= 0.5).all()), bool((change.norm(dim=1) > 0.45).all())
        (True, True)
    """
    if norm == "linf":
        return torch.empty_like(x).uniform_(-epsilon, epsilon, generator=generator)
    normal = torch.empty_like(x).normal_(generator=generator)
    share = torch.empty_like(x[:, :1].flatten(1)[:, 0]).uniform_(generator=generator)
    return normal * _per_input(epsilon * share ** (1 / x[0].numel()) / _lengths(normal), x)


def step_sizes(norm: Norm, epsilon: float, steps: int, step_size: StepSize = None) -> tuple[float, ...]:
    """The size of each step of an attack; an error where norm, ε, number or sizes cannot be those of one.

    By default 2.5·ε/steps, so that the steps together reach across the ball (Madry et al. 2018); a single step is ε.

    Example:
        >>> step_sizes("l2", 1.0, 5), step_sizes("linf", 0.1, 1), step_sizes("l2", 1.0, 2, (0.8, 0.2))
        ((0.5, 0.5, 0.5, 0.5, 0.5), (0.1,), (0.8, 0.2))
    """
    if norm not in get_args(Norm):
        raise AssayError(f"unknown norm {shown(norm)}{nearest(norm, get_args(Norm))}")
    if not isinstance(epsilon, SupportsFloat) or not 0 <= epsilon <= _LARGEST:
        raise AssayError(
            f"epsilon={shown(epsilon)} is a distance: give 0 for none, or a positive number up to {_LARGEST:g}"
        )
    if not isinstance(steps, int) or steps < 1:
        raise AssayError(f"steps={shown(steps)} must be at least 1, a whole number; give epsilon=0 for no attack")
    if steps > MOST_STEPS:
        raise AssayError(f"steps={steps} is more than any attack takes: give at most {MOST_STEPS}")
    each = step_size if isinstance(step_size, tuple | list) else (step_size,)
    if step_size is not None and not all(isinstance(size, SupportsFloat) for size in each):
        raise AssayError(f"step_size={shown(step_size)} is no number: give one, or a tuple with one for each step")
    if step_size is None:
        sizes = (epsilon if steps == 1 else _RELATIVE_REACH * epsilon / steps,) * steps
    elif isinstance(step_size, tuple | list):
        sizes = tuple(float(size) for size in step_size)
        if len(sizes) != steps:
            raise AssayError(
                f"step_size={shown(step_size)} has {len(sizes)} sizes for steps={steps}: give one for each"
            )
    else:
        sizes = (float(step_size),) * steps
    if epsilon > 0 and not all(0 < size < math.inf for size in sizes):
        raise AssayError(f"step_size={shown(step_size)} must be positive: no step leaves the input where it is")
    return sizes


def require_radius(norm: Norm, epsilon: float, bounds: Bounds, values: int | None = None) -> None:
    """Raise an error where no two inputs within the bounds are ε apart, as for 8 of L∞ where 8/255 was meant.

    Two inputs of n values differ in L2 by at most √n times the width of the bounds; an ε of L2 is left alone where the
    number of ``values`` is not known yet.
    """
    low, high = bounds
    farthest = high - low if norm == "linf" else math.inf if values is None else (high - low) * math.sqrt(values)
    if epsilon > farthest:
        raise AssayError(
            f"epsilon={shown(epsilon)} is more than inputs in [{low:g}, {high:g}] can differ by: give it in their "
            "units, such as 8/255 for 8 of 255 grey levels in [0, 1], or other bounds"
        )


def require_within(x: Tensor, bounds: Bounds, tolerance: float = 0.0) -> None:
    """Raise an error unless all inputs are within the bounds to which examples are clipped."""
    low, high = bounds
    if not low < high:
        raise AssayError(f"bounds={bounds} must be a smaller and a larger number")
    if x.dtype not in (torch.float32, torch.float64) or not x.numel():
        raise AssayError(
            f"inputs of shape {tuple(x.shape)} are {x.dtype}: give one or more in float32, and let the network convert "
            "them, because coarser numbers cannot hold a change as small as an attack's"
        )
    least, most = (float(value) for value in x.aminmax())
    if not (low - tolerance <= least and most <= high + tolerance):  # NaN is not within them either
        raise AssayError(
            f"inputs reach from {least:g} to {most:g}, and adversarial examples are clipped to [{low:g}, {high:g}]: "
            "give pixels and let the network normalise them, the mean and std of their normalisation, or their bounds"
        )


def require_finite(gradient: Tensor, step: int = 1) -> Tensor:
    """The gradient as it is, or an error that names the inputs for which it has NaN or infinite values."""
    finite = gradient.isfinite().flatten(1).all(1)
    if not finite.all():
        numbers = (~finite).nonzero()[:, 0].tolist()
        first = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
        raise AssayError(
            f"the gradient of the loss is NaN or infinite at step {step} for {len(numbers)} of {len(finite)} inputs "
            f"({first}): the network's weights may not be finite, or it divides by zero or takes the root of zero"
        )
    return gradient


def _lengths(x: Tensor) -> Tensor:
    """The Euclidean norm of each input, at least 1e-12, because it divides."""
    return x.flatten(1).square().sum(1).sqrt().clamp(min=1e-12)


def _per_input(values: Tensor, x: Tensor) -> Tensor:
    """One value for each input, in a shape that multiplies all of it."""
    return values.reshape(-1, *(1,) * (x.dim() - 1))
