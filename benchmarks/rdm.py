"""Claim: the correlation RDM of 1,000 × 50,000 responses in float32 takes, on one thread, at most 1.2 × the CPU time of
one BLAS syrk of the same responses, at least 20 × less than rsatoolbox, and at most 100 MB beside the responses.

On a GPU (--device cuda): 10,000 stimuli × 100,000 features in float32, in seconds and as a share of the arithmetic that
plain products of this GPU reach in full float32 (m²p operations: the symmetric half of a product).
"""

from __future__ import annotations

import resource
import statistics
import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import blas
from scipy.spatial import distance
from threadpoolctl import threadpool_limits
from timing import arguments, cpu_seconds, race, ratio, where

from assay import rdm
from assay.core.determinism import reproducible

STIMULI, FEATURES = 1_000, 50_000
GPU_STIMULI, GPU_FEATURES = 10_000, 100_000


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rsatoolbox_rdm() -> Callable[[np.ndarray], object]:
    """rsatoolbox's correlation RDM, or, where it is not installed, its arithmetic."""
    with warnings.catch_warnings():  # deprecations inside the package
        warnings.simplefilter("ignore")
        try:
            from rsatoolbox.data import Dataset
            from rsatoolbox.rdm import calc_rdm

            return lambda responses: calc_rdm(Dataset(responses), "correlation")
        except ImportError:
            print("rsatoolbox is not installed: its arithmetic stands for it")

    def arithmetic(responses: np.ndarray) -> np.ndarray:
        centred = responses - responses.mean(axis=1, keepdims=True)
        centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None]
        return 1 - np.einsum("ik,jk", centred, centred)

    return arithmetic


def cpu(rounds: int) -> None:
    torch.set_num_threads(1)
    responses = np.random.default_rng(0).standard_normal((STIMULI, FEATURES), dtype=np.float32)
    rdm(responses[:10])  # what is loaded at the first call is no memory of the measure
    before = peak_mb()
    ours = rdm(responses)
    memory = peak_mb() - before
    times: dict[str, list[float]] = {"assay": [], "syrk": [], "rsatoolbox": []}
    peer = rsatoolbox_rdm()
    for _ in range(rounds):
        times["assay"].append(cpu_seconds(lambda: rdm(responses)))
        times["syrk"].append(cpu_seconds(lambda: blas.ssyrk(1.0, responses.T, trans=1)))
        times["rsatoolbox"].append(cpu_seconds(lambda: peer(responses)))
    took = {name: statistics.median(values) for name, values in times.items()}
    exact = distance.pdist(responses[:50].astype(np.float64), "correlation")
    rows = np.stack(np.triu_indices(STIMULI, 1))
    error = np.abs(ours[(rows < 50).all(axis=0)] - exact).max()
    print(f"correlation RDM of {STIMULI:,} × {FEATURES:,} float32, {where('cpu')}")
    print(f"  assay / syrk (the limit): {ratio(times, 'assay', 'syrk'):.2f} × (target ≤ 1.2)")
    print(f"  rsatoolbox / assay: {ratio(times, 'rsatoolbox', 'assay'):.1f} × (target ≥ 20)")
    print(f"  rsatoolbox / syrk, which nothing exact in float32 can pass: {ratio(times, 'rsatoolbox', 'syrk'):.1f} ×")
    print(f"  memory beside the responses: {memory:.0f} MB (target ≤ 100); responses {responses.nbytes / 2**20:.0f} MB")
    print("  CPU seconds: " + ", ".join(f"{name} {value:.2f}" for name, value in took.items()))
    print(f"  largest error, from float64: {error:.1e}")


def gpu(device: str, rounds: int) -> None:
    generator = torch.Generator(device).manual_seed(0)
    responses = torch.randn(GPU_STIMULI, GPU_FEATURES, device=device, generator=generator)
    square = torch.randn(8192, 8192, device=device)

    def plain_products() -> None:
        with reproducible():
            for _ in range(4):
                square @ square

    torch.cuda.reset_peak_memory_stats()
    rdm(responses)
    memory = torch.cuda.max_memory_allocated() - responses.nbytes
    times = race({"assay": lambda: rdm(responses), "products": plain_products}, device, rounds)
    took = statistics.median(times["assay"])
    peak = 4 * 2 * 8192**3 / statistics.median(times["products"])
    needed = GPU_STIMULI**2 * GPU_FEATURES
    exact = 1 - torch.corrcoef(responses[:50].double())
    triangle = exact[torch.ones_like(exact, dtype=torch.bool).triu(1)].cpu()
    error = float((rdm(responses[:50]).cpu() - triangle).abs().max())
    print(f"correlation RDM of {GPU_STIMULI:,} × {GPU_FEATURES:,} float32, {where(device)}")
    print(
        f"  {took:.3f} s; {needed / took / 1e12:.1f} of the {peak / 1e12:.1f} TFLOP/s that plain float32 products reach"
    )
    print(f"  that is {100 * needed / took / peak:.0f} % of the peak, counting each pair of stimuli once")
    print(f"  memory beside the responses: {memory / 2**30:.1f} GiB; largest error, from float64: {error:.1e}")


def main() -> None:
    options = arguments(__doc__ or "")
    if options.device.startswith("cuda"):
        gpu(options.device, options.rounds)
    else:
        with threadpool_limits(1):
            cpu(options.rounds)


if __name__ == "__main__":
    main()
