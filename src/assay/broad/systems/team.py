"""Teams and evaluators: systems made of modules, each given by a registered name and parameters."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.broad.data.dataset import Modality
from assay.broad.systems.classifiers.estimator import EstimatorClassifier, is_estimator
from assay.broad.systems.sources import names_defined, own_sources, source_file
from assay.core.errors import AssayError, nearest
from assay.core.user_code import import_named

FORBIDDEN = ("architecture", "algorithm", "backbone", "model", "network", "network_type", "class", "type", "kind")
# Parts of names of settings that choose among architectures where their value is a word.
CHOOSING = {
    "arch", "architecture", "backbone", "cell", "design", "encoder", "family", "flavor", "flavour", "model", "net",
    "network", "structure", "topology", "variant",
}  # fmt: skip
REGISTRY: dict[str, str] = {
    "bag_of_features": "assay.broad.systems.features.bag_of_features:BagOfFeatures",
    "bag_of_words": "assay.broad.systems.features.words:BagOfWords",
    "grey_clips": "assay.broad.systems.features.clips:GreyClips",
    "contrast_clips": "assay.broad.systems.features.clips:ContrastClips",
    "isa": "assay.broad.systems.learners.clip_learner:isa_clips",
    "cdbn": "assay.broad.systems.learners.clip_learner:cdbn_clips",
    "sparse_autoencoder": "assay.broad.systems.learners.text_learner:sparse_autoencoder_text",
    "denoising_autoencoder": "assay.broad.systems.learners.text_learner:denoising_text",
    "random_projections": "assay.broad.systems.learners.guinea_pig:RandomProjections",
    "kernel_svm": "assay.broad.systems.classifiers.svm:KernelSVM",
    "linear_svm": "assay.broad.systems.classifiers.linear:LinearSVM",
    "windowed_svm": "assay.broad.systems.classifiers.windows:windowed_svm",
    "linear_svr": "assay.broad.systems.classifiers.linear:LinearSVR",
    "logistic": "assay.broad.systems.classifiers.linear:Logistic",
    "topics": "assay.broad.systems.classifiers.topics:TopicPredictor",
    "subprocess": "assay.broad.systems.subprocess_learner:SubprocessLearner",
    "subprocess_preprocessor": "assay.broad.systems.subprocess_preprocessor:SubprocessPreprocessor",
    "subprocess_classifier": "assay.broad.systems.subprocess_classifier:SubprocessClassifier",
}


def require_tuning(parameters: Iterable[str], whose: str) -> None:
    """Raise an error for parameters that choose an algorithm instead of tuning one (J3).

    Args:
        parameters: Names of the parameters, or a mapping with their values.
        whose: What they are the parameters of, for the message.
    """
    values = parameters if isinstance(parameters, Mapping) else dict.fromkeys(parameters)
    for name, value in values.items():
        chooses = isinstance(value, (str, type)) and CHOOSING & set(re.split(r"[^a-z]+", _spaced(name)))
        if name.lower() in FORBIDDEN or chooses:
            raise AssayError(
                f"{whose}: the parameter {name!r} would choose an architecture; parameters may only tune one"
            )


def _spaced(name: str) -> str:
    """A name in lower case, its words apart: ``modelName`` and ``model_name`` are ``model name``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).lower()


def arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the lists among parameters that were read from a file back into tuples.

    >>> arguments({"units": [8, 8], "seed": 0})
    {'units': (8, 8), 'seed': 0}
    """
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


@dataclass(frozen=True)
class Module:
    """A part of a system: the place of its code, and its parameters.

    Args:
        name: A registered name (`REGISTRY`), or ``package.module:Name``.
        parameters: Arguments of its constructor.
        frozen: Source hash that it was registered with; a module with another source is refused. None for any source.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    frozen: str | None = None

    def __post_init__(self) -> None:
        require_tuning(self.parameters, self.name)

    def factory(self) -> Callable[..., Any]:
        """Import the class or function that makes the module."""
        factory: Callable[..., Any] = import_named(self.place, f"module {self.name!r}")
        return factory

    def build(self) -> Any:
        """Make a fresh module: nothing fitted is ever used again for another fold, run or task."""
        self.verify()
        factory = self.factory()
        known = inspect.signature(factory).parameters
        strange = self._require_parameters(known)
        made = factory(**arguments({k: v for k, v in self.parameters.items() if k not in strange}))
        if is_estimator(made):
            return EstimatorClassifier(made, self.parameters["grid"] if strange else None)
        if strange:
            raise AssayError(f"{self.name}: unknown parameter {strange[0]!r}{nearest(strange[0], known)}")
        return made

    def _require_parameters(self, known: Mapping[str, inspect.Parameter]) -> list[str]:
        """Raise an error for parameters that the module lacks or does not have; return ``grid`` if it is one."""
        open_ended = any(p.kind is p.VAR_KEYWORD for p in known.values())
        strange = [key for key in self.parameters if key not in known and not open_ended]
        for key in strange:
            if key != "grid":  # which the plan may give for any estimator
                raise AssayError(f"{self.name}: unknown parameter {key!r}{nearest(key, known)}")
        for key, p in known.items():
            needed = p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            if needed and key not in self.parameters:
                raise AssayError(f"{self.name}: the parameter {key!r} has no default: give it")
        return strange

    @property
    def place(self) -> str:
        """Where the module's code is, ``package.module:Name``."""
        where = self.name if ":" in self.name else REGISTRY.get(self.name)
        if where is None:
            raise AssayError(f"no module is called {self.name!r}{nearest(self.name, REGISTRY)}")
        return where

    @property
    def foreign(self) -> bool:
        """Whether the code is a team's own, which only a worker may import."""
        return self.name not in REGISTRY and not self.place.startswith("assay.")

    @property
    def places(self) -> tuple[str, ...]:
        """Folders and files that the module works with, besides its code: the folder and files of a command."""
        if not self.name.startswith("subprocess"):
            return ()
        files = [str(file.absolute()) for file in self._further_files()]
        workdir = self.parameters.get("workdir")
        return (*files, *([str(Path(workdir).absolute())] if workdir else []))

    def require_found(self) -> None:
        """Raise an error unless there is such a module; a team's code is looked for, and not run."""
        if not self.foreign:
            self._require_parameters(inspect.signature(self.factory()).parameters)
            self.verify()
            return
        what = f"module {self.name!r}"
        module_name, colon, attribute = self.place.partition(":")
        if not module_name or not attribute or not colon:
            raise AssayError(f"{what}: give a registered name or 'package.module:object'")
        if module_name.endswith(".py"):
            raise AssayError(f"{what}: give the module without .py: '{module_name.removesuffix('.py')}:{attribute}'")
        file = source_file(module_name)
        if file is None:
            raise AssayError(f"{what}: cannot import {module_name!r}: it is neither beside the plan nor installed")
        names = names_defined(file)
        if names is not None and attribute not in names:
            raise AssayError(f"{what}: {module_name!r} has no {attribute!r}{nearest(attribute, sorted(names))}")

    def _further_files(self) -> list[Path]:
        """Files that are frozen besides the source, as the module itself says; asked of assay's own modules only."""
        extra = None if self.foreign else getattr(self.factory(), "frozen_files", None)
        return [] if extra is None else list(extra(**self.parameters))

    @cached_property
    def _sources(self) -> tuple[Path, ...]:
        """The source files, which go along to other processes: to find those of a large package takes seconds."""
        return own_sources(self.place.partition(":")[0])

    @property
    def source_hash(self) -> str:
        """SHA-256 of the module's source files: its own, and all it imports from its own package or folder.

        The code is read, and not run.
        """
        files = list(self._sources)
        if not all(file.exists() for file in files):  # found on another machine
            files = list(own_sources(self.place.partition(":")[0]))
        if not files:
            raise AssayError(f"the source of {self.name} cannot be found, so it cannot be frozen")
        files += self._further_files()
        digest = hashlib.sha256()
        for path in files:
            data = path.read_bytes()
            digest.update(f"{len(data)}:".encode() + data)
        return digest.hexdigest()

    def verify(self) -> None:
        """Raise an error unless the source is the one that was registered."""
        if self.frozen is not None and self.source_hash != self.frozen:
            raise AssayError(
                f"{self.name} is frozen as {self.frozen[:12]}…, but its source is {self.source_hash[:12]}…: only "
                "parameters may change; register it anew"
            )

    @property
    def described(self) -> dict[str, Any]:
        """Description of the module, for manifests."""
        return {"module": self.name, "parameters": dict(self.parameters), "source": self.source_hash}


@dataclass(frozen=True)
class Parts:
    """A team's system for one modality.

    Args:
        preprocessor: Module that makes features of instances.
        learner: Unsupervised deep learner.
        classifier: Simple linear classifier.
        trained_from: File of a deep learner that was trained elsewhere (a pickle of it); None to train it here.
        declaration: Declaration that such a learner was trained by the protocol, and by whom.
    """

    preprocessor: Module
    learner: Module
    classifier: Module
    trained_from: Path | None = None
    declaration: str = ""

    def __post_init__(self) -> None:
        if self.trained_from is not None and not self.declaration.strip():
            raise AssayError(
                f"trained_from={self.trained_from} needs a declaration that it was learned by the protocol, and by whom"
            )

    @property
    def described(self) -> dict[str, Any]:
        """Description of the system, for manifests."""
        return {
            "preprocessor": self.preprocessor.described,
            "learner": self.learner.described,
            "classifier": self.classifier.described,
            "trained_from": str(self.trained_from) if self.trained_from else None,
            "declaration": self.declaration,
        }


@dataclass(frozen=True)
class Team:
    """A development team: exactly one system for each modality it takes part in.

    Args:
        letter: Letter that marks its runs, such as ``s`` in ``6s``.
        name: Name of the team in reports.
        parts: Its systems, by modality.
        documents: Places of its artifacts (architecture, pseudocode, example), for the checklist.
    """

    letter: str
    name: str
    parts: Mapping[Modality, Parts]
    documents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (len(self.letter) == 1 and self.letter.isalpha() and self.letter.islower()):
            raise AssayError(f"team {self.name!r}: letter={self.letter!r} is one lower-case letter")


@dataclass(frozen=True)
class Evaluators:
    """The evaluators' own modules for one modality: feature extractor and state-of-the-art classifier."""

    extractor: Module
    classifier: Module


def system_hash(described: Mapping[str, Any]) -> str:
    """Hash the description of a system, by `Parts.described` or a manifest; other code or parameters change it."""
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()


def require_one_each(teams: tuple[Team, ...]) -> None:
    """Raise an error if a team is there twice: each has exactly one system for each task."""
    for what in ("letter", "name"):
        seen: set[str] = set()
        for team in teams:
            value = getattr(team, what)
            if value in seen:
                raise AssayError(f"a second system of team {value!r}: exactly one for each team and task")
            seen.add(value)
