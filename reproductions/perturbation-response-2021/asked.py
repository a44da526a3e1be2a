"""What each number of a network rests on, and whether the literature expects it to rise or fall with the gap."""

from __future__ import annotations

from collections.abc import Iterable

from common import BATCH, Scale, plan_of

from assay.stimuli import Family
from assay.studies.prediction import COMBINATIONS

MAGNITUDES = 21  # of a curve
WEIGHT_DRAWS = 3  # of noise on the weights, for sharpness
FASHION_MNIST = 60_000  # training pictures
FAMILIES = (
    Family("rotation", tuple(range(-40, 41, 10))),
    Family("translation_x", tuple(range(-6, 7, 2))),
    Family("scale", (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)),
)


def expected_and_budget(names: Iterable[str], corpus: str, scale: Scale) -> tuple[dict[str, int], dict[str, str]]:
    """Of each number: 1 if it is expected to rise with the gap, −1 if to fall, else 0; and what it rests on, in words.

    Gi rises, Pal and accuracies under perturbation fall (Schiff et al. 2021, §3.2). For the other numbers the
    expectations are those of assay's measures, which name their sources.
    """
    table = _first_words(corpus, scale)
    signs, budgets = {}, {}
    for name in names:
        if name in COMBINATIONS:
            _, parts, signs[name] = COMBINATIONS[name]
            said = [_of("mixup" if str(p) == "end accuracy intra ℓ=0" else str(p), table)[1] for p in parts]
            budgets[name] = "; ".join(dict.fromkeys(said))
        else:
            signs[name], budgets[name] = _of(name, table)
    return signs, budgets


def _of(name: str, table: dict[str, tuple[int, str]]) -> tuple[int, str]:
    return next(said for words, said in table.items() if name.startswith(words))


def _first_words(corpus: str, scale: Scale) -> dict[str, tuple[int, str]]:
    """What is expected of the numbers whose names begin with these words, and what they rest on."""
    train = plan_of(corpus, "", scale.small).data.train or FASHION_MNIST
    shown = min(scale.batches * BATCH, train)
    once, curve = f"{shown} inputs", f"{shown} inputs × {MAGNITUDES} magnitudes"
    few, weights = f"{scale.pictures} inputs", "weights alone"
    gratings, clips = ("140 gratings", "3 clips") if scale.small else ("5600 gratings", "27 clips")
    by_family = {f.transformation: (0, f"{few} × {len(f.magnitudes)} magnitudes") for f in FAMILIES}
    return {
        "gi ": (1, curve),
        "pal ": (-1, curve),
        "mean accuracy ": (-1, curve),
        "random accuracy ": (-1, once),
        "end accuracy ": (-1, once),
        "mixup": (-1, once),
        "manifold mixup": (-1, once),
        "davies-bouldin index": (1, "120 inputs × 10 rounds"),
        "parameter norm": (1, weights),
        "log frobenius": (1, weights),
        "log spectral": (1, weights),
        "log path norm": (1, weights),
        "stable rank": (1, weights),
        "parameters": (0, weights),
        "layers": (0, weights),
        "vc dimension": (0, weights),
        "accuracy": (0, few),
        "mean margin": (-1, few),
        "margin p": (-1, few),
        "normalised margin": (-1, few),
        "log inverse squared margin": (1, few),
        "log inverse squared sigma": (1, f"{few} × {WEIGHT_DRAWS} draws"),
        "augmentation penalty": (1, f"{few} × 7 augmentations"),
        "augmentation mean drop": (1, f"{few} × 7 augmentations"),
        "augmentation ": (1, few),  # one augmentation
        "curvature change": (0, f"{clips} × 11 frames"),
        "lowest curvature": (0, f"{clips} × 11 frames"),
        "frequency invariance": (0, gratings),
        "orientation invariance": (0, gratings),
        "phase invariance": (0, gratings),
        **{f"{name} invariance": said for name, said in by_family.items()},
    }
