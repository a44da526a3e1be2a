"""Object matching: is the same object, seen otherwise, the most similar picture in a gallery?

Blanchard, Kinnison, RichardWebster, Bashivan & Scheirer 2019, with objects of our own (see `assay.stimuli.objects`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured
from assay.measures.table import NAN, Predictor
from assay.stats.evidence import Evidence
from assay.stats.proportions import mean_interval
from assay.stimuli.galleries import ANY, DISTRACTORS, Galleries, draw_galleries
from assay.stimuli.objects import ObjectPictures
from assay.subject.stills import FRAMES, require_frames, visit_stills
from assay.subject.subject import Subject
from assay.subject.taking import showing

Array = np.ndarray[Any, Any]
ALL_FACTORS = "all"
GALLERY = 50
_TIE = 1e-9  # similarities that differ by less are equal but for rounding
_NUMBERS_AT_ONCE = 1 << 24


def match(probe_features: Tensor | Array, gallery_features: Tensor | Array) -> Array:
    """Which picture of a gallery matches a probe: 1 for the most similar one, shares of 1 where several are equal.

    The similarity to picture i is s_i = (1/T) Σ_t p_t·g_it / (‖p_t‖·‖g_it‖), the cosine of the angle between the
    features, or its mean over T time steps. The one of the largest s_i is the match; k pictures whose similarities are
    equal (to 1e-9) share it, 1/k each, as if one of them was drawn at random.

    Args:
        probe_features: Features of the probe, D numbers, or T × D.
        gallery_features: Features of the gallery, pictures × D, or pictures × T × D.

    Returns:
        The share of each picture of the gallery.

    Example:
        >>> match(np.array([1.0, 0.0]), np.array([[0.0, 2.0], [3.0, 1.0], [1.0, 1.0]])).tolist()
        [0.0, 1.0, 0.0]
        >>> match(np.array([1.0, 0.0]), np.array([[1.0, 1.0], [2.0, 2.0], [-1.0, 1.0]])).tolist()
        [0.5, 0.5, 0.0]
    """
    probe, gallery = as_tensor(probe_features), as_tensor(gallery_features)
    if gallery.dim() not in (2, 3) or gallery.shape[1:] != probe.shape or not len(gallery):
        raise AssayError(
            f"probe_features is {tuple(probe.shape)} and gallery_features {tuple(gallery.shape)}: give D and pictures "
            "× D, or T × D and pictures × T × D"
        )
    together = torch.cat([probe[None].to(gallery), gallery])
    status = response_status(together)
    if status != "ok":
        raise AssayError(f"the cosine of the features is undefined: {status}, the probe being the first")
    shares: Array = shares_of_the_match(cosines(together)[:1, 1:])[0]
    return shares


def cosines(features: Tensor) -> Array:
    """Cosine similarities of the features of every two pictures, mean over time steps; NaN where they are undefined.

    Args:
        features: Pictures × D, or pictures × T × D.

    Returns:
        Pictures × pictures, in float64.
    """
    steps = features if features.dim() == 3 else features[:, None]
    n, times, width = steps.shape
    mean = torch.zeros(n, n, dtype=torch.float64, device=steps.device)
    at_once = max(1, _NUMBERS_AT_ONCE // n)
    for t in range(times):
        products = torch.zeros_like(mean)
        for start in range(0, width, at_once):
            block = steps[:, t, start : start + at_once].double()
            products.addmm_(block, block.T)
        norms = products.diagonal().sqrt()
        mean += products / norms / norms[:, None] / times
    averages: Array = mean.cpu().numpy()
    return averages


def shares_of_the_match(similarities: Array) -> Array:
    """Share of the match that each picture of each gallery has, by similarity; trials × pictures in and out."""
    tied = similarities >= similarities.max(axis=1, keepdims=True) - _TIE
    shares: Array = tied / tied.sum(axis=1, keepdims=True)
    return shares


def response_status(features: Tensor) -> str:
    """``ok``, or for how many of the pictures the responses are not finite, or 0 throughout a time step."""
    steps = features.flatten(2) if features.dim() > 2 else features[:, None]
    broken = int((~steps.isfinite()).flatten(1).any(1).sum())
    if broken:
        return f"not finite for {broken} of {len(steps)} pictures"
    silent = int((steps == 0).all(2).any(1).sum())
    return f"0 for {silent} of {len(steps)} pictures" if silent else "ok"


@dataclass(frozen=True)
class ObjectMatching(Measure):
    """How often the picture of a gallery that is most similar to a probe shows the same object.

    The probe is a picture of an object. The gallery has exactly one other picture of it, which differs in its rotation,
    its light, its colour, or in several of them (mix), and one picture each of other objects. Similar means the cosine
    of a layer's responses, for a network of videos its mean over the time steps. Pictures that are equally similar
    share the match; so a layer that responds to everything alike is at chance.

    Table: one row per factor, and one for all trials (``factor`` is ``all``). ``accuracy`` is the share of trials in
    which the same object was chosen, with ``low`` and ``high``, its 95 % interval over other objects (trials of one
    object are not independent: `assay.stats.proportions.mean_interval` over objects); ``chance`` is one over the
    pictures of a gallery, ``n`` the number of trials, ``objects`` that of objects probed. ``status``: ``ok``, or for
    how many pictures the layer's responses are ``0``, which are at no angle to others, or ``not finite``; there is no
    accuracy then.

    Args:
        objects: Pictures of objects and the conditions under which they were taken: `stimuli.novel_objects`,
            `stimuli.load_coil20_pictures`, or labelled pictures, whose conditions are unknown (factor ``any``).
        layer: The layer whose responses are compared; by default the last.
        gallery: Number of pictures in a gallery; by default 50, or as many as there are objects if those are fewer.
        trials: Number of trials for each object and factor; fewer where an object has fewer pairs of pictures.
        distractors: The pictures of other objects: ``"any"``, drawn at random, or ``"alike"``, those taken under the
            conditions of the match, so that shape alone tells it from them.
        frames: Number of time steps for which a picture is shown to a network of videos; the first is left out.
        seed: Seed of the random trials, which are the same for all networks.
        batch_size: Number of pictures per pass; by default 32 on a CPU and 256 on a GPU.

    Example:
        >>> from assay.stimuli.objects import novel_objects
        >>> measure = ObjectMatching(novel_objects(count=4, size=16, changes=1), trials=2)
        >>> table = measure(Subject(torch.nn.Flatten(), "pixels"))
        >>> table[["factor", "chance", "n"]].to_numpy().tolist()[0]
        ['rotation', 0.25, 8]

    Blanchard et al. 2019, §3.2.
    """

    objects: ObjectPictures
    layer: str | int | float = -1
    gallery: int | None = None
    trials: int = 10
    distractors: Literal["any", "alike"] = ANY
    frames: int = FRAMES
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "matching"
    value: ClassVar[str] = "accuracy"
    higher_is: ClassVar[str] = "more objects recognised"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        require_frames(self.frames)
        if self.distractors not in DISTRACTORS:
            raise AssayError(f"distractors={self.distractors!r} is unknown{nearest(self.distractors, DISTRACTORS)}")
        self.galleries()  # which says what is wrong with the pictures before a network is shown any

    def galleries(self) -> Galleries:
        """The trials: probes, and galleries whose first picture is the match. They depend on no network."""
        present = len(np.unique(self.objects.labels))
        gallery = min(GALLERY, present) if self.gallery is None else self.gallery
        if self.trials < 1 or gallery < 2:
            raise AssayError(f"trials={self.trials} must be at least 1, and a gallery of {gallery} at least 2 pictures")
        if gallery > present:
            raise AssayError(
                f"gallery={gallery} needs as many objects, and there are {present} ({self.objects.source}): give "
                f"gallery={present}, or more objects"
            )
        return draw_galleries(self.objects, gallery, self.trials, self.distractors, self.seed)

    def check(self, subject: Subject) -> None:
        """Check that the network takes a picture, and has the layer."""
        with showing("object matching shows pictures"):
            visit_stills(subject, self.objects.shown(slice(0, 1)), lambda layer, output: None, 0, frames=self.frames)
        subject.choose_one(self.layer)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show all pictures once, and match each probe to its gallery; one row per factor, and one for all."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show all pictures once; the table, and the accuracy of every object."""
        self.check(subject)
        layer = subject.choose_one(self.layer)
        return self.of_features(self.features(subject, layer), layer)

    def features(self, subject: Subject, layer: str) -> Tensor:
        """Responses of a layer to all pictures, pictures × time steps × numbers; one time step if it takes images."""
        size = batch_size(subject, self.batch_size)
        kept: list[Tensor] = []
        shown = 0

        def keep(name: str, output: Tensor) -> None:
            if output.dim() < 1 or len(output) != shown:
                raise AssayError(f"layer {name!r} of {subject.name!r} gives no row per picture: choose another layer")
            real = torch.view_as_real(output) if output.is_complex() else output
            kept.append(real.reshape(shown, output.shape[1], -1).float().clone())

        with subject.showing():
            for start in range(0, len(self.objects), size):
                batch = self.objects.shown(slice(start, start + size), subject.device)
                shown = min(size, len(self.objects) - start)
                visit_stills(subject, batch, keep, layer, frames=self.frames, steps=True)
                report(f"{subject.name}: pictures", start + shown, len(self.objects))
        return torch.cat(kept)

    def of_features(self, features: Tensor | Array, layer: str = "") -> Measured:
        """The table of any features of the pictures, such as their pixels, and the accuracy of every object.

        Args:
            features: Features of all pictures, pictures × D, or pictures × T × D.
            layer: What the column ``layer`` says.
        """
        values = as_tensor(features)
        if values.dim() not in (2, 3) or len(values) != len(self.objects):
            shape = "×".join(map(str, values.shape))
            raise AssayError(f"features are {shape}, not {len(self.objects)} pictures × D or pictures × T × D")
        galleries = self.galleries()
        status = response_status(values)
        if status == "ok":
            similarities = cosines(values)[galleries.probes[:, None], galleries.pictures]
            correct = shares_of_the_match(similarities)[:, 0]
        else:
            correct = np.full(len(galleries.probes), NAN)
        rows = []
        for factor in (*galleries.factors, ALL_FACTORS):
            chosen = np.ones(len(correct), bool) if factor == ALL_FACTORS else galleries.factor == factor
            # The mean over objects, each of which counts the same.
            probed = self.objects.labels[galleries.probes[chosen]]
            by_object = pd.Series(correct[chosen]).groupby(probed).mean()
            low, high = mean_interval(by_object.to_numpy(), int(chosen.sum()))
            rows.append(
                {
                    "factor": factor,
                    "layer": layer,
                    "accuracy": float(by_object.mean()),
                    "low": low,
                    "high": high,
                    "chance": 1 / galleries.pictures.shape[1],
                    "n": int(chosen.sum()),
                    "objects": len(by_object),
                    "status": status,
                    "draws": by_object.to_numpy(),
                }
            )
        return Measured.of(rows)

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The accuracy of all trials and of each factor; its parts are objects."""
        evidence = []
        for number, row in measured.table.iloc[::-1].iterrows():
            by_object = measured.draws.get(int(str(number)), np.zeros(0))
            items = {f"object {i + 1}": float(value) for i, value in enumerate(by_object)}
            changed = "" if row["factor"] == ALL_FACTORS else f", {row['factor']} changed"
            value, n, status = float(row["accuracy"]), int(row["n"]), str(row["status"])
            quantity = f"object matching{changed}"
            evidence.append(Evidence(quantity, value, "", "higher", items, n=n, status=status, proportion=True))
        return evidence

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the accuracy of all trials, and of each factor."""
        accuracies = zip(table["factor"], table["accuracy"].astype(float), strict=True)
        return {
            Predictor("matching accuracy", of="" if factor == ALL_FACTORS else factor): accuracy
            for factor, accuracy in accuracies
        }
