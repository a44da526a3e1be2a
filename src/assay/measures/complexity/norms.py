"""Norms: how large a network's weights are, layer by layer and along its paths; and how many there are.

Jiang, Neyshabur, Mobahi, Krishnan, Bengio 2020, "Fantastic generalization measures and where to find them".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import e, log, log2, prod, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError
from assay.core.shapes import shape_of
from assay.measures.base import Measure
from assay.measures.complexity.affine import Affine, affine_layers
from assay.measures.complexity.path_norm import AffineLayer
from assay.measures.complexity.path_operations import ONLY
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, row
from assay.stats.evidence import Evidence
from assay.subject.classifier import Array
from assay.subject.network import Batch
from assay.subject.subject import Subject

Convolution = Literal["reshaped", "circular"]


def spectral_norm(weight: Tensor | Array, groups: int = 1) -> float:
    """The largest singular value of a matrix outputs × inputs, or of a kernel reshaped to such a matrix.

    ‖W‖₂ = max_x ‖Wx‖₂/‖x‖₂, W of shape outputs × (inputs · kernel). For a linear layer this is its operator norm; for
    a convolution it is the norm of what it does to one patch. With ``groups`` the matrix is block-diagonal, and the
    norm the largest of the blocks'.

    Example:
        >>> spectral_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        4.0

    Yoshida & Miyato 2017, section 3.2.
    """
    w = _precise(weight)
    return _largest(w.reshape(groups, len(w) // groups, -1))


def convolution_norm(
    weight: Tensor | Array,
    size: Sequence[int],
    stride: Sequence[int] | int = 1,
    dilation: Sequence[int] | int = 1,
    groups: int = 1,
) -> float:
    """The operator norm of a convolution on a torus, that is of a map of inputs whose opposite edges are joined.

    With K̂(k) the outputs × inputs matrix of the discrete Fourier transform of the kernel at frequency k:
    ‖K‖₂ = max_k ‖K̂(k)‖₂. With stride s, the frequencies k + j·n/s, j = 0 … s−1, fall together along each axis:
    ‖K‖₂ = max_k ‖[K̂(k + j·n/s)]_j‖₂/√Πs. The norm of the zero-padded layer is close to it.

    Args:
        weight: The kernel, outputs × inputs/groups × its size along each axis.
        size: Size of the map of inputs, along each axis of the kernel.
        stride: Stride along each axis; it must divide the size.
        dilation: Distance between the kernel's elements.
        groups: Number of groups of channels that do not meet.

    Example:
        >>> blur = torch.full((1, 1, 3), 1 / 3)   # leaves a constant as it is
        >>> round(convolution_norm(blur, [8]), 6)
        1.0

    Sedghi, Gupta & Long 2019.
    """
    w = _precise(weight)
    axes = w.dim() - 2
    strides, dilations = (tuple(v) if isinstance(v, Sequence) else (v,) * axes for v in (stride, dilation))
    if axes < 1 or not len(size) == len(strides) == len(dilations) == axes:
        raise AssayError(f"a kernel of shape {tuple(w.shape)} does not fit a map of size {tuple(size)}")
    if any(n % s for n, s in zip(size, strides, strict=True)):
        raise AssayError(f"stride {strides} does not divide the size {tuple(size)}")
    spread = w
    for axis, (n, d) in enumerate(zip(size, dilations, strict=True), start=2):  # onto the torus, wrapped around it
        place = torch.arange(spread.shape[axis], device=w.device) * d % n
        shape = (*spread.shape[:axis], n, *spread.shape[axis + 1 :])
        spread = spread.new_zeros(shape).index_add(axis, place, spread)
    transform = torch.fft.fftn(spread, dim=tuple(range(2, w.dim())))
    folded = transform.reshape(*w.shape[:2], *(m for n, s in zip(size, strides, strict=True) for m in (s, n // s)))
    aliases, places = list(range(2, folded.dim(), 2)), list(range(3, folded.dim(), 2))
    matrices = folded.permute(*places, 0, 1, *aliases).reshape(-1, groups, len(w) // groups, w.shape[1] * prod(strides))
    return _largest(matrices) / sqrt(prod(strides))


def layer_spectral_norm(layer: AffineLayer, convolution: Convolution) -> tuple[float, str]:
    """The spectral norm of a layer of a network, and ``ok``; or NaN, and why it has none.

    Args:
        layer: The layer, as `affine_layers` finds it.
        convolution: Which norm a convolution has, as in `Norms`.
    """
    axes = layer.weight.dim() - 2
    if convolution == "reshaped" or axes == 0:
        return spectral_norm(layer.weight, layer.groups), "ok"
    try:
        size = layer.inputs[-axes:]
        return convolution_norm(layer.weight, size, layer.stride, layer.dilation, layer.groups), "ok"
    except AssayError as error:
        return NAN, str(error)


def vc_dimension_bound(parameters: Sequence[int], units: Sequence[int]) -> float:
    """An upper bound on the VC dimension of all ReLU networks of one architecture.

    With q_i parameters and a_i units in layer i = 1 … L, R = Σ_i i·a_i:
    VC ≤ L + (Σ_i (L − i + 1)·q_i) · log₂(4e·R·log₂(2e·R)).

    Parameters that are shared count once. Skip connections to later layers are allowed; pooling is not counted.

    Example:
        >>> round(vc_dimension_bound([6, 3], [2, 1]), 3)   # 2 inputs, 2 hidden units, 1 output
        115.912

    Bartlett, Harvey, Liaw & Mehrabian 2019, theorem 6, of which a ReLU is the case p = 1, d = 1.
    """
    if len(parameters) != len(units) or not len(units) or min(*parameters, *units) < 1:
        raise AssayError(f"parameters={list(parameters)} and units={list(units)}: give at least 1 for each layer")
    depth = len(units)
    depth_weighted = sum((depth - i) * q for i, q in enumerate(parameters))
    reach = sum(i * a for i, a in enumerate(units, start=1))
    return depth + depth_weighted * log2(4 * e * reach * log2(2 * e * reach))


def require_layers(subject: Subject, shape: tuple[int, ...] | Batch | None = None) -> Affine:
    """The affine layers of a network as of `affine_layers`; an error where it has none, or weights not finite."""
    affine = affine_layers(subject, shape)
    for name, weight in affine.weights.items():
        if not weight.isfinite().all():
            raise AssayError(f"the weights {name!r} of {subject.name!r} are not finite")
    if not affine.layers and affine.unreached:
        raise AssayError(
            f"{subject.name!r} has no norms: its weights {affine.unreached[0]!r} do not lead to its output by "
            "operations of torch, as where it computes with NumPy"
        )
    if not affine.layers:
        raise AssayError(f"{subject.name!r} has no linear or convolutional layer: it has no norms")
    return affine


def without_unreached(affine: Affine) -> str:
    """The status of a number over all layers: ``ok``, or which weights are in no layer, and so not in the number."""
    more = f" and {len(affine.unreached) - 1} more" if len(affine.unreached) > 1 else ""
    return f"without {affine.unreached[0]}{more}" if affine.unreached else "ok"


def path_norm(subject: Subject, shape: tuple[int, ...] | None = None) -> float:
    """The ℓ₂ norm over all paths from an input or a bias to an output of the product of the weights along it.

    φ = √(Σ_paths Π_{w on the path} w²) = √(Σ_i f_{w²}(1)_i): the network with all weights and biases squared, shown
    ones; |w|² for complex weights. Batch norm is folded in first (see `affine_layers`). An average over n is a layer of
    weights 1/n; of a maximum the largest input counts, as in the network.

    Defined for affine layers, ReLUs, pooling, sums and concatenations; an error for anything else.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1, bias=False))
        >>> with torch.no_grad():
        ...     _ = net[0].weight.fill_(3.0), net[0].bias.fill_(4.0), net[2].weight.fill_(-2.0)
        >>> path_norm(Subject(net), (1,))   # √((3·2)² + (4·2)²)
        10.0

    Neyshabur, Tomioka & Srebro 2015, φ₂; the "path-norm" of Jiang et al. 2020 is its square.
    """
    affine = affine_layers(subject, shape)
    if affine.unsupported:
        raise AssayError(f"{subject.name!r} has no path norm: {_no_paths(affine)}")
    return sqrt(affine.squared)


@dataclass(frozen=True)
class Norms(Measure):
    """Norms of the weights, of each layer and of the whole network; needs only the shape of an input.

    Layers are the linear and convolutional ones, as called, W_i with the batch norm after it folded in; a batch norm
    after anything else is a diagonal layer. L is how many there are. Biases count in the path norm and the number of
    parameters only.

    Table: ``quantity`` per ``layer``: ``frobenius norm`` ‖W_i‖_F and ``spectral norm`` ‖W_i‖₂. Of the whole network
    (``layer`` empty): ``parameters``, ``layers`` L, ``vc dimension`` (see `vc_dimension_bound`), ``parameter norm``
    Σ‖W_i‖_F², ``log frobenius product`` Σ log ‖W_i‖_F², ``log spectral product`` Σ log ‖W_i‖₂², ``log frobenius sum``
    log L + Σ log ‖W_i‖_F²/L and ``log spectral sum`` log L + Σ log ‖W_i‖₂²/L (the sum of squared norms once the scale
    is balanced over layers), ``stable rank`` Σ‖W_i‖_F²/‖W_i‖₂² and ``log path norm``, the logarithm of `path_norm`.
    A complex weight w counts as two parameters and with |w|²; of networks that have one, no ``vc dimension`` is known.
    ``n`` counts layers. ``status``: ``ok``, or why a value is missing or what it leaves out.

    Args:
        convolution: Which spectral norm a convolution has: ``reshaped`` (see `spectral_norm`) as in published
            comparisons, or ``circular`` (see `convolution_norm`), the norm of the layer on its map; slower.
        shape: Shape of one input, without the batch axis; by default that of the subject's example, or in a run that of
            the stimuli of other measures.

    Example:
        >>> net = torch.nn.Linear(2, 2)
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> table = Norms(shape=(2,))(Subject(net)).set_index("quantity")
        >>> table.value[["frobenius norm", "spectral norm", "parameter norm"]].tolist()
        [5.0, 4.0, 25.0]

    Jiang et al. 2020, appendix C: the measures "params", "prod-of-fro", "prod-of-spec", "sum-of-fro", "sum-of-spec",
    "param-norm", "fro/spec" and "path-norm".
    """

    convolution: Convolution = "reshaped"
    shape: tuple[int, ...] | None = None

    name: ClassVar[str] = "norms"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "log path norm"
    higher_is: ClassVar[str] = "larger weights"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape is not None:
            shape_of(self.shape)
        if self.convolution not in ("reshaped", "circular"):
            raise AssayError(f"convolution={self.convolution!r} is not 'reshaped' or 'circular'")

    def check(self, subject: Subject) -> None:
        """Check that the network has weights, all finite, and takes an input of the shape."""
        require_layers(subject, self.shape)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Compute the norms of each layer and of the whole network."""
        return pd.DataFrame(self.rows(require_layers(subject, self.shape)))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The logarithms of the product of spectral norms and of the path norm: exact, as weights are all of it."""
        names = ("log spectral product", "log path norm")
        return [replace(one, exact=True) for one in from_rows(measured, [(name, name, "") for name in names])]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take every quantity of the whole network.

        Norms and stable ranks are expected to rise with the gap, as the bounds that they come from do (Bartlett et al.
        2017, Neyshabur et al. 2018). Of the counts of weights and layers nothing is expected: larger networks
        generalize no worse (Neyshabur et al. 2015).
        """
        counts = dict.fromkeys(("parameters", "layers", "vc dimension"), 0)
        return chosen(table, table["quantity"], dict.fromkeys(table["quantity"], 1) | counts)

    def rows(self, affine: Affine) -> Iterator[dict[str, Any]]:
        """The rows of the table, of layers that are known already."""
        layers = affine.layers
        frobenius = [layer.weight.norm().item() for layer in layers]
        spectral = []
        for layer, norm in zip(layers, frobenius, strict=True):
            yield row("frobenius norm", norm, 1, layer=layer.name)
            value, status = layer_spectral_norm(layer, self.convolution)
            spectral.append(value)
            yield row("spectral norm", value, 1, layer=layer.name, status=status)
        left_out = without_unreached(affine)
        for quantity, value in _totals(np.array(frobenius), np.array(spectral)).items():
            status = left_out if np.isfinite(value) else "a layer is zero or has no norm"
            yield row(quantity, value, len(layers), status=status)
        yield row("parameters", sum(w.numel() * (1 + w.is_complex()) for w in affine.weights.values()), len(layers))
        yield row("layers", len(layers), len(layers), status=left_out)
        paths = _no_paths(affine)
        bound = vc_dimension_bound([x.parameters for x in layers], [prod(x.outputs) for x in layers])
        unbounded = paths or ("of real weights only" if any(w.is_complex() for w in affine.weights.values()) else "")
        yield row("vc dimension", NAN if unbounded else bound, len(layers), status=unbounded or left_out)
        defined = not paths and 0 < affine.squared < float("inf")
        squared = log(affine.squared) / 2 if defined else NAN
        yield row("log path norm", squared, len(layers), status=paths or ("ok" if defined else "no path, or too large"))


def _totals(frobenius: Array, spectral: Array) -> dict[str, float]:
    count = len(frobenius)
    with np.errstate(divide="ignore", invalid="ignore"):
        products = {"frobenius": 2 * np.log(frobenius).sum(), "spectral": 2 * np.log(spectral).sum()}
        rank = (frobenius**2 / spectral**2).sum()
    return {
        "parameter norm": (frobenius**2).sum(),
        **{f"log {kind} product": value for kind, value in products.items()},
        **{f"log {kind} sum": log(count) + value / count for kind, value in products.items()},
        "stable rank": rank,
    }


def _no_paths(affine: Affine) -> str:
    return f"{ONLY}: it has {affine.unsupported}" if affine.unsupported else ""


def _precise(weight: Tensor | Array) -> Tensor:
    """A weight in float64, or complex128 where it is complex."""
    w = as_tensor(weight).detach()
    return w.to(torch.complex128 if w.is_complex() else torch.float64)


def _largest(matrices: Tensor) -> float:
    """The largest singular value of a batch of matrices, by the smaller of the two Gram matrices of each."""
    a = matrices if matrices.shape[-2] <= matrices.shape[-1] else matrices.mH
    return float(torch.linalg.eigvalsh(a @ a.mH)[..., -1].amax().clamp_min(0).sqrt())
