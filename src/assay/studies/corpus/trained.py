"""A corpus in a folder: trained by a plan, resumable, read again without training.

``corpus.json`` says how it was made, ``networks/NAME.safetensors`` are weights and ``networks/NAME.json`` what became
of the training. A network is there when its JSON is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from assay.core.determinism import seeded
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.folder import Folder
from assay.plans.settings import Node
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import Normalize
from assay.studies.corpus.corpus import Corpus, accuracy
from assay.studies.corpus.plan import CorpusPlan, corpus_plan
from assay.subject.source import device_named, load_weights
from assay.subject.subject import Subject
from assay.training import Trained, train_many

log = logging.getLogger(__name__)
MANIFEST = "corpus.json"


class TrainedCorpus(Corpus):
    """What `train_corpus` made; networks that did not reach the training criterion are in ``left_out`` only.

    Args:
        plan: How it was made.
        folder: Where it is, by default where the plan says.
        device: Where its networks run.
    """

    def __init__(self, plan: CorpusPlan, folder: str | None = None, device: str | None = None) -> None:
        self.plan, self.folder = plan, Folder(folder or plan.folder)
        self.device = str(device_named(device or plan.device))
        self.name = Path(self.folder.url).name
        self._train, self._test = plan.data.load(plan.seed)
        self.mean, self.std = _standard(self.train)
        if self.folder.exists(MANIFEST):
            told = json.loads(self.folder.read(MANIFEST))["made_of"]
            if told != self.made_of:
                raise AssayError(
                    f"corpus {self.folder.url} was made by another plan (other data, grid or training): "
                    "give another folder, or delete it"
                )
        self._read()

    @property
    def train(self) -> Labelled:
        """As the plan says."""
        return self._train

    @property
    def test(self) -> Labelled:
        """As the plan says."""
        return self._test

    @property
    def left_out(self) -> pd.DataFrame:
        """Networks that diverged or did not reach the criterion."""
        return self._left_out

    def _read(self) -> None:
        rows = [json.loads(self.folder.read(name)) for name in self.folder.names("networks", ".json")]
        found = pd.DataFrame(rows, columns=[*self._columns])
        whole = found["status"] == "stopped" if self._has_criterion else found["status"] != "diverged"
        self.table = found[whole].reset_index(drop=True)
        self._left_out = found[~whole].reset_index(drop=True)

    @property
    def _columns(self) -> list[str]:
        results = ("train_accuracy", "test_accuracy", "gap", "trained_accuracy", "trained_loss", "epochs", "status")
        return ["network", *self.plan.grid, *results]

    @property
    def _has_criterion(self) -> bool:
        settings = {**self.plan.fixed, **self.plan.grid}
        return any(settings.get(key) is not None for key in ("stop_loss", "stop_accuracy"))

    @property
    def hyperparameters(self) -> list[str]:
        """Those of the plan's grid."""
        return list(self.plan.grid)

    @property
    def made_of(self) -> str:
        """Hash of data, grid and training."""
        plan = self.plan
        data = (self.train.fingerprint, self.test.fingerprint)
        return fingerprint(plan.network, dict(plan.grid), dict(plan.fixed), plan.seed, data)

    def subject(self, network: str) -> Subject:
        """A network with its trained weights, standardising its input as in training."""
        self.require(network)
        module = self.plan.build(self.plan.combinations()[network], self.train)
        weights = Path(self.folder.path(f"networks/{network}.safetensors"))
        load_weights(module, weights)
        return self._wrapped(module, network)

    def _wrapped(self, module: nn.Module, name: str) -> Subject:
        return Subject(
            module.eval(),
            name,
            preprocess=Normalize(self.mean, self.std),
            example=self.train.shape,
            device=self.device,
            channels_last=self.device.startswith("cuda"),  # as it was trained there
        )


def load_corpus(folder: str | Path, data: str | Path | None = None, device: str | None = None) -> TrainedCorpus:
    """A corpus by its folder alone.

    Args:
        folder: Where `train_corpus` put it.
        data: Where its data are now, if not where the plan said.
        device: Where its networks run, if not where they were trained.
    """
    place = Folder(str(folder))
    if not place.exists(MANIFEST):
        raise AssayError(f"{folder} is not a corpus: it has no {MANIFEST}")
    try:
        manifest = json.loads(place.read(MANIFEST))
        root = Node(manifest["plan"], Path(manifest["file"]))
    except (ValueError, KeyError) as error:
        raise AssayError(f"{place.path(MANIFEST)} is damaged ({error})") from error
    plan = corpus_plan(root)
    if data is not None:
        plan = replace(plan, data=replace(plan.data, path=Path(data)))
    return TrainedCorpus(plan, str(folder), device)


def train_corpus(plan: CorpusPlan, folder: str | None = None) -> TrainedCorpus:
    """Train what is missing of a corpus; the networks of one plan are each trained as they would be alone.

    A network whose training was broken off goes on where it was.
    """
    corpus = TrainedCorpus(plan, folder)
    place = corpus.folder
    combinations = plan.combinations()
    numbers = {name: i for i, name in enumerate(combinations)}
    recipes = {n: plan.recipe(h, numbers[n], corpus.mean, corpus.std) for n, h in combinations.items()}
    for name, recipe in recipes.items():
        if recipe.batch_size > len(corpus.train):
            raise AssayError(
                f"batch_size={recipe.batch_size} of {name} is larger than the data: {len(corpus.train)} inputs"
            )
    with torch.device("meta"):  # what cannot be built is said before anything is trained
        for hyperparameters in combinations.values():
            plan.build(hyperparameters, corpus.train)
    if not place.exists(MANIFEST):
        about = {"file": plan.file, "plan": dict(plan.text), "data": corpus.train.description}
        manifest = {"made_of": corpus.made_of, **about}
        place.write(MANIFEST, json.dumps(manifest, indent=1, default=str).encode())
    missing = [name for name in combinations if not place.exists(f"networks/{name}.json")]
    for name in combinations.keys() - set(missing):  # killed between the result and its tidying up
        place.remove(f"networks/{name}.training")
    log.info("%s: %d of %d networks to train", corpus.name, len(missing), len(combinations))
    if not missing:
        return corpus

    def networks() -> Iterator[nn.Module]:
        for name in missing:
            with seeded(plan.seed_of(numbers[name])):
                yield plan.build(combinations[name], corpus.train).to(corpus.device)

    def done(number: int, module: nn.Module, trained: Trained) -> None:
        name = missing[number]
        _keep(corpus, name, combinations[name], module, trained)
        place.remove(f"networks/{name}.training")

    folder_path = Path(place.path("networks"))
    folder_path.mkdir(parents=True, exist_ok=True)
    train_many(
        networks(),
        Normalize(corpus.mean, corpus.std)(corpus.train.shown(device=corpus.device)),
        torch.tensor(corpus.train.labels, device=corpus.device),
        [recipes[name] for name in missing],
        at_once=plan.at_once,
        checkpoints=[folder_path / f"{name}.training" for name in missing],
        on_done=done,
    )
    corpus._read()
    return corpus


def _keep(
    corpus: TrainedCorpus, name: str, hyperparameters: Mapping[str, Any], module: nn.Module, trained: Trained
) -> None:
    from safetensors.torch import save

    row: dict[str, Any] = {"network": name, **hyperparameters}
    nothing = {"train_accuracy": None, "test_accuracy": None, "gap": None}
    if trained.status == "diverged":
        row |= nothing
    else:
        subject = corpus._wrapped(module, name)
        right, tested = accuracy(subject, corpus.train), accuracy(subject, corpus.test)
        row |= {"train_accuracy": right, "test_accuracy": tested, "gap": right - tested}
        tensors = {key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()}
        corpus.folder.write(f"networks/{name}.safetensors", save(tensors))
    told = {"trained_accuracy": trained.accuracy, "trained_loss": trained.loss}
    row |= {key: value if value == value else None for key, value in told.items()}
    row |= {"epochs": trained.epochs, "status": trained.status}
    corpus.folder.write(f"networks/{name}.json", json.dumps(row).encode())


def _standard(train: Labelled) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel."""
    x = train.shown()
    axes = [axis for axis in range(x.dim()) if axis != 1]
    std = x.std(axes)
    if not (std > 0).all():
        raise AssayError(f"a channel of {train.source} is constant: there is nothing to learn from")
    return tuple(x.mean(axes).tolist()), tuple(std.tolist())
