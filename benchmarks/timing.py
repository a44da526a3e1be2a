"""Ratios on a noisy machine: contestants take turns, and the median of the per-round ratios is printed."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from assay import Subject
from assay.networks import resnet18


def arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--size", type=int, default=224)
    return parser.parse_args()


def resnet18_subject(options: argparse.Namespace) -> Subject:
    """The network of the claims: float32 on a CPU; bf16 and channels last on a GPU."""
    gpu = options.device.startswith("cuda")
    torch.manual_seed(0)
    dtype = torch.bfloat16 if gpu else torch.float32
    return Subject(resnet18().eval(), "resnet18", device=options.device, dtype=dtype, channels_last=gpu)


def random_pictures(subject: Subject, count: int, size: int) -> torch.Tensor:
    return subject.network.prepare(torch.rand(count, 3, size, size))


def seconds(work: Callable[[], object], device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


def race(contestants: dict[str, Callable[[], object]], device: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each contestant in each round, after a round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 2):
        for name, work in contestants.items():
            took = seconds(work, device)
            if turn >= 2:
                times[name].append(took)
    return times


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def race_on_cpu(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each contestant in each round, which do not depend on what else the machine does."""
    for work in contestants.values():
        work()
    turns = [{name: cpu_seconds(work) for name, work in contestants.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in contestants}


def ratio(times: dict[str, list[float]], name: str, to: str) -> float:
    return statistics.median(a / b for a, b in zip(times[name], times[to], strict=True))


def where(device: str) -> str:
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"CPU, {torch.get_num_threads()} threads, torch {torch.__version__}"
