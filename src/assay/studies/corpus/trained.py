"""A corpus in a folder: trained by a plan, resumable, read again without training.

``corpus.json`` says how the corpus was made. ``networks/NAME.safetensors`` holds the weights of a network,
``networks/NAME.initial.safetensors`` those before training, ``networks/NAME.history.csv`` the loss of every epoch, and
``networks/NAME.json`` the result of its training. A network is complete when its JSON file exists.
"""

from __future__ import annotations

import json
import logging
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from assay.core.checkpoints import read_tensors
from assay.core.csv_files import read_csv, to_csv
from assay.core.determinism import Arithmetic, seeded
from assay.core.device import device_named
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.folder import Folder
from assay.core.progress import of_more, report
from assay.core.reading import reading
from assay.plans.problems import Collector
from assay.plans.settings import Node
from assay.runs.executor import Job, Lost, Resources, Workers, execute
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import Normalize
from assay.studies.corpus.corpus import Corpus, accuracy
from assay.studies.corpus.plan import CorpusPlan, corpus_plan
from assay.studies.corpus.stored import MANIFEST, CorpusManifest, StoredNetworks
from assay.subject.source import load_weights
from assay.subject.subject import Subject
from assay.training import Recipe, Trained, train_many
from assay.training.supervised import EPOCHS

log = logging.getLogger(__name__)


class TrainedCorpus(Corpus):
    """A corpus made by `train_corpus`; networks that did not reach the training criterion are in ``left_out`` only.

    Args:
        plan: The plan by which the corpus was made.
        folder: Where the corpus is; by default where the plan says.
        device: Device on which its networks run; by default the plan's.
        damaged: What becomes of a network whose files are damaged: an error, or ``"left out"``, to be trained anew.
    """

    def __init__(
        self,
        plan: CorpusPlan,
        folder: str | None = None,
        device: str | None = None,
        damaged: Literal["error", "left out"] = "error",
    ) -> None:
        self.plan = plan
        self.folder = Folder(folder or plan.folder)
        self.device = str(device_named(device or plan.device))
        self.name = Path(self.folder.url).name
        self.pool, self._test = plan.data.load(plan.seed)
        self._train = self._seen_by_all()
        self.mean, self.std = channel_statistics(self.train)
        if self.folder.exists(MANIFEST) and CorpusManifest.read(self.folder).made_of != self.made_of:
            raise AssayError(
                f"corpus {self.folder.url} was made by another plan (other data, grid or training): "
                "give another folder, or delete it"
            )
        self.stored = StoredNetworks(self.folder, plan.combinations())
        self._show(self.stored.rows() if damaged == "error" else [*self.stored.whole_rows().values()])

    @property
    def train(self) -> Labelled:
        """What all networks were trained on: the training set, or the sample of it that the plan asks for.

        Where ``train_size`` differs between the networks, it is the smallest set, which is part of the others.
        """
        return self._train

    def trained_on(self, network: str) -> Labelled:
        """What a network was trained on: of ``pool``, the data of the plan, as many inputs as its ``train_size``."""
        size = self.plan.train_size(self.plan.combinations()[network])
        return self.pool if size is None else self.pool.balanced(size, self.plan.seed)

    def _seen_by_all(self) -> Labelled:
        sizes = [self.plan.train_size(one) for one in self.plan.combinations().values()]
        given = [size for size in sizes if size is not None]
        if not given:
            return self.pool
        least = len(np.unique(self.pool.labels))
        for size in (min(given), max(given)):
            if not least <= size <= len(self.pool):
                there = f"{self.pool.source} has {len(self.pool)} inputs in {least} classes"
                raise AssayError(f"train_size={size}: {there}; give at least {least} and at most {len(self.pool)}")
        return self.pool.balanced(min(given), self.plan.seed)

    @property
    def test(self) -> Labelled:
        """The test set, or the sample of it that the plan asks for."""
        return self._test

    @property
    def left_out(self) -> pd.DataFrame:
        """Networks that diverged or did not reach the training criterion."""
        return self._left_out

    def read(self) -> None:
        """Read which networks are trained now, and how each training ended."""
        self._show(self.stored.rows())

    def _show(self, rows: list[dict[str, Any]]) -> None:
        trained = pd.DataFrame(rows, columns=[*self._columns])
        status = trained["status"]
        usable = status == "stopped" if self._has_criterion else status != "diverged"
        self.table = trained[usable].reset_index(drop=True)
        self._left_out = trained[~usable].reset_index(drop=True)

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
        """Names of the hyper-parameters in the plan's grid; ``seed`` is none: it tells networks of one kind apart."""
        return [name for name in self.plan.grid if name != "seed"]

    @property
    def made_of(self) -> str:
        """Hash of the data, the grid and the training settings: equal for corpora made in the same way."""
        plan = self.plan
        data = (self.pool.fingerprint, self.test.fingerprint)
        return fingerprint(plan.network, dict(plan.grid), dict(plan.fixed), plan.seed, data)

    def subject(self, network: str) -> Subject:
        """Load a network with its trained weights and its past, standardising its input as in training."""
        self.require(network)
        module = self.plan.build(self.plan.combinations()[network], self.train)
        load_weights(module, self.stored.weights(network))
        subject = self._wrapped(module, network)
        subject.initial_weights, subject.history = self.initial_weights(network), self.history(network)
        return subject

    def initial_weights(self, network: str) -> dict[str, Tensor] | None:
        """The weights of a network before training, by name; None in corpora that did not keep them."""
        self.require(network)
        path = self.stored.initial_weights(network)
        return None if path is None else read_tensors(path)

    def history(self, network: str) -> pd.DataFrame | None:
        """The training of a network, one row per epoch; None in corpora that did not keep it.

        ``epoch`` from 1, ``steps`` of the optimiser until then, ``learning_rate``, ``running_loss`` (mean cross-entropy
        of the epoch's steps), and ``loss`` and ``accuracy`` on the training data after it, where these were checked.
        """
        self.require(network)
        data = self.stored.history(network)
        if data is None:
            return None
        history = read_csv(data)
        hyperparameters = self.plan.combinations()[network]
        batch: int = (dict(self.plan.fixed) | hyperparameters).get("batch_size", Recipe.batch_size)
        inputs = self.plan.train_size(hyperparameters) or len(self.pool)
        history.insert(1, "steps", history["epoch"] * (inputs // batch))
        return history

    @property
    def untrained(self) -> list[str]:
        """The names of the networks of the plan that are not trained yet."""
        trained = {*self.table["network"], *self.left_out["network"]}
        return [name for name in self.plan.combinations() if name not in trained]

    @property
    def epochs(self) -> dict[str, int]:
        """The largest number of epochs that each network of the plan is trained for."""
        recipes = enumerate(self.plan.combinations().items())
        return {name: self.plan.recipe(one, i, self.mean, self.std).epochs for i, (name, one) in recipes}

    def initial_network(self, network: str) -> nn.Module:
        """Make a network as it is before its training, with the random weights that its seed gives it."""
        combinations = self.plan.combinations()
        with seeded(self.plan.seed_of([*combinations].index(network), combinations[network])):
            return self.plan.build(combinations[network], self.train)

    def initial_subject(self, network: str) -> Subject:
        """A network as it is before its training, standardising its input as in training."""
        return self._wrapped(self.initial_network(network), network)

    def require_trainable(self) -> None:
        """Raise an error that names the networks which cannot be built, or whose batches are larger than their data."""
        problems = Collector()
        combinations = self.plan.combinations()
        for number, (name, hyperparameters) in enumerate(combinations.items()):
            with problems.watching():
                recipe = self.plan.recipe(hyperparameters, number, self.mean, self.std)
                inputs = self.plan.train_size(hyperparameters) or len(self.pool)
                if recipe.batch_size > inputs:
                    raise AssayError(
                        f"batch_size={recipe.batch_size} of {name} is larger than the data: {inputs} inputs"
                    )
                with torch.device("meta"):
                    self.plan.build(hyperparameters, self.train)
            report("networks built", number + 1, len(combinations))
        problems.raise_any()

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
    """Open a corpus by its folder alone.

    Args:
        folder: Where `train_corpus` wrote the corpus.
        data: Where its data are now, if not where the plan said.
        device: Device on which its networks run, if not the one they were trained on.
    """
    store = Folder(str(folder))
    if not store.exists(MANIFEST):
        raise AssayError(f"{folder} is not a corpus: it has no {MANIFEST}")
    manifest = CorpusManifest.read(store)
    with reading(store.path(MANIFEST), "the manifest of a corpus", "restore it, or train again by its plan"):
        plan = corpus_plan(Node(manifest.plan, Path(manifest.file)))
    if data is not None:
        plan = replace(plan, data=replace(plan.data, path=Path(data)))
    return TrainedCorpus(plan, str(folder), device)


def train_corpus(
    plan: CorpusPlan, folder: str | None = None, *, processes: int = 0, ray: bool | str = False
) -> TrainedCorpus:
    """Train the networks of a corpus that are not trained yet, each exactly as it would be trained alone.

    A network whose training was interrupted continues where it stopped.

    Args:
        plan: Which networks, on which data, trained how.
        folder: Where the corpus goes; by default where the plan says.
        processes: Networks at a time, each in a process of this machine; 0 for this process, in which the plan's
            ``at_once`` networks take turns.
        ray: True for a Ray cluster found or started here, or the address of one; it must see the corpus's folder.
    """
    workers = Workers(processes=processes, ray=ray)
    corpus = TrainedCorpus(plan, folder, damaged="left out")
    store = corpus.folder
    combinations = plan.combinations()
    corpus.require_trainable()
    if not store.exists(MANIFEST):
        about = {"file": plan.file, "plan": dict(plan.text), "data": corpus.train.description}
        manifest = {"made_of": corpus.made_of, **about}
        store.write(MANIFEST, json.dumps(manifest, indent=1, default=str).encode())
    missing = corpus.untrained
    for name in combinations.keys() - set(missing):  # left where a process was killed just after writing the result
        store.remove(f"networks/{name}.training")
    log.info("%s: %d of %d networks to train", corpus.name, len(missing), len(combinations))
    store.sweep("")
    store.sweep("networks")
    alone = workers.processes or workers.ray
    batches = [[name] for name in missing] if alone else _of_one_size(plan, missing)
    arithmetic = Arithmetic.here()
    resources = Resources(gpus=1 if corpus.device.startswith("cuda") else 0)
    jobs = [Job((names, arithmetic), kept=corpus, resources=resources) for names in batches]
    epochs = corpus.epochs
    trained = len(combinations) - len(missing)
    before = sum(epochs.values()) - sum(epochs[name] for name in missing)
    lost = []
    with (
        of_more(EPOCHS, sum(epochs.values()), before) as done,
        closing(execute(_train, jobs, workers)) as ending,  # at once, whatever happens: no process is left behind
    ):
        for count, outcome in enumerate(ending, 1):
            names = outcome.job.own[0]
            if isinstance(outcome.result, Lost):
                lost.append(f"{names[0]}: {outcome.result.reason}")
            done.steps += sum(epochs[name] for name in names)
            if alone:
                report("networks", trained + count, len(combinations))
    corpus.read()
    if lost:
        raise AssayError(
            f"{len(lost)} of {len(jobs)} networks were not trained ({lost[0]}); the others are kept: train again"
        )
    return corpus


def _train(_: None, corpus: TrainedCorpus, own: tuple[list[str], Arithmetic]) -> None:
    """Train some networks of a corpus side by side and keep each when it is done: a task of the executor."""
    names, arithmetic = own
    plan = corpus.plan
    combinations = plan.combinations()
    numbers = {name: i for i, name in enumerate(combinations)}

    data = corpus.trained_on(names[0])  # all of them are trained on as many

    def done(number: int, module: nn.Module, trained: Trained) -> None:
        name = names[number]
        _keep(corpus, name, data, corpus.initial_network(name), module, trained)
        corpus.folder.remove(f"networks/{name}.training")

    with arithmetic.used():
        train_many(
            (corpus.initial_network(name).to(corpus.device) for name in names),
            Normalize(corpus.mean, corpus.std)(data.shown(device=corpus.device)),
            torch.tensor(data.labels, device=corpus.device),
            [plan.recipe(combinations[name], numbers[name], corpus.mean, corpus.std) for name in names],
            at_once=plan.at_once,
            checkpoints=[Path(corpus.folder.path(f"networks/{name}.training")) for name in names],
            on_done=done,
        )


def _of_one_size(plan: CorpusPlan, names: list[str]) -> list[list[str]]:
    """The networks in groups that are trained on as many inputs, so that they can be trained side by side."""
    combinations = plan.combinations()
    groups: dict[int | None, list[str]] = {}
    for name in names:
        groups.setdefault(plan.train_size(combinations[name]), []).append(name)
    return list(groups.values())


def _keep(
    corpus: TrainedCorpus, name: str, data: Labelled, initial: nn.Module, module: nn.Module, trained: Trained
) -> None:
    """Measure a trained network's accuracies and write its weights, its history and its row of the table."""
    row: dict[str, Any] = {"network": name, **corpus.plan.combinations()[name]}
    weights = None
    if trained.status == "diverged":
        row |= {"train_accuracy": None, "test_accuracy": None, "gap": None}
    else:
        subject = corpus._wrapped(module, name)
        train, test = accuracy(subject, data), accuracy(subject, corpus.test)
        row |= {"train_accuracy": train, "test_accuracy": test, "gap": round(train - test, 12)}
        weights = _state(module)
    at_the_end_of_training = {"trained_accuracy": trained.accuracy, "trained_loss": trained.loss}
    row |= {key: value if value == value else None for key, value in at_the_end_of_training.items()}  # JSON has no NaN
    row |= {"epochs": trained.epochs, "status": trained.status}
    epochs = pd.DataFrame([asdict(epoch) for epoch in trained.history])
    epochs.insert(0, "epoch", range(1, len(epochs) + 1))
    corpus.stored.write(row, weights, _state(initial), to_csv(epochs))


def _state(module: nn.Module) -> bytes:
    """The weights of a network as a file of safetensors."""
    from safetensors.torch import save

    saved: bytes = save({key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()})
    return saved


def channel_statistics(train: Labelled) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, with which inputs are standardised."""
    x = train.shown()
    axes = [axis for axis in range(x.dim()) if axis != 1]
    std = x.std(axes)
    if not (std > 0).all():
        raise AssayError(f"a channel of {train.source} is constant: there is nothing to learn from")
    return tuple(x.mean(axes).tolist()), tuple(std.tolist())
