"""The command ``assay list``: what plans can name, the settings of one thing, or the layers of a network."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assay.cli.names import complete_name
from assay.cli.terminal import AsJson, out, print_json, print_table
from assay.core.errors import AssayError, nearest


def list_known(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A measure or stimuli, to show its settings, or a network, to list its layers.",
            autocompletion=complete_name,
        ),
    ] = None,
    shape: Annotated[str, typer.Option("--input", help="Shape of one input of the network.")] = "3x224x224",
    preprocess: Annotated[
        str | None, typer.Option(help="What is done to inputs first, in the words of a plan, such as grey,resize=32.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what a plan can name; or show the settings of a measure or of stimuli, or the layers of a network."""
    from pathlib import Path

    from assay.core.user_code import code_in

    with code_in(Path()):
        if name is None:
            _list_all(as_json)
        elif (meaning := _meaning(name)) is not None:
            print_json({"name": name, "what": meaning}) if as_json else out.print(f"{name}: {meaning}", markup=False)
        elif (thing := _with_settings(name)) is not None:
            _list_settings(name, thing, as_json)
        else:
            layers = _layers(name, shape, preprocess)
            print_json({"layers": layers}) if as_json else out.print("\n".join(layers), markup=False)


def _list_all(as_json: bool) -> None:
    from assay import networks
    from assay.measures import Measure
    from assay.plans.describe import first_sentence
    from assay.plans.preprocess import WORDS
    from assay.plans.stimuli import FACTORIES
    from assay.stimuli.perturbations import PERTURBATIONS, TRANSFORMATIONS

    groups = {
        "measures": {name: first_sentence(kind) for name, kind in Measure.known().items()},
        "networks": {f"assay.networks:{n}": first_sentence(getattr(networks, n)) for n in networks.__all__},
        **{group: {name: first_sentence(made) for name, made in kinds.items()} for group, kinds in FACTORIES.items()},
        "perturbations": {name: _perturbation(name, TRANSFORMATIONS) for name in PERTURBATIONS},
        "preprocess": WORDS,
    }
    rows = {
        group: [{"name": n, "what": what.replace("`", "")} for n, what in entries.items()]
        for group, entries in groups.items()
    }
    if as_json:
        print_json(rows)
        return
    for group, entries in rows.items():
        print_table(group, entries)
        out.print()
    out.print("'assay list NAME' shows the settings of a measure or of stimuli, or the layers of a network.")


def _perturbation(name: str, transformations: Any) -> str:
    from assay.plans.describe import first_sentence
    from assay.stimuli import Mixup, Noise

    if name in transformations:
        return first_sentence(transformations[name][0])
    return {
        "intra": "Mixing with another input of the same class.",
        "inter": "Mixing with an input of another class.",
    }.get(name, first_sentence(Noise if name == "noise" else Mixup))


def _meaning(name: str) -> str | None:
    """What a perturbation or a step of preprocessing is, which have no settings to list; None for anything else."""
    from assay.measures import Measure
    from assay.plans.preprocess import WORDS
    from assay.stimuli.perturbations import PERTURBATIONS, TRANSFORMATIONS

    if name in Measure.known():
        return None
    if name in PERTURBATIONS:
        return _perturbation(name, TRANSFORMATIONS).replace("`", "")
    return WORDS[name].replace("`", "") if name in WORDS else None


def _with_settings(name: str) -> Any:
    """The measure or the stimuli of a name; None for a network."""
    from assay.core.user_code import import_named
    from assay.measures import Measure
    from assay.plans.stimuli import FACTORIES

    stimuli = {kind: made for kinds in FACTORIES.values() for kind, made in kinds.items()}
    known = {**stimuli, **Measure.known()}
    if name in known:
        return known[name]
    if name.startswith(("timm:", "hf:")) or name.endswith(".onnx"):
        return None
    if ":" not in name:
        from assay import networks

        raise AssayError(
            f"unknown name {name!r}{nearest(name, [*known, *(f'assay.networks:{n}' for n in networks.__all__)])}"
        )
    thing = import_named(name, f"{name!r}")
    return thing if isinstance(thing, type) and issubclass(thing, Measure) else None


def _list_settings(name: str, thing: Any, as_json: bool) -> None:
    import inspect

    from assay.plans.describe import settings_of
    from assay.plans.stimuli import HIDDEN

    settings = settings_of(thing, HIDDEN.get(name, ()))
    rows = [
        {
            "setting": s.name,
            "type": s.type,
            "default": "(must be given)" if s.default is None else s.default,
            "meaning": s.meaning.replace("`", ""),
        }
        for s in settings
    ]
    if as_json:
        print_json({"name": name, "settings": [vars(s) for s in settings]})
        return
    out.print((inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ").replace("`", ""), markup=False)
    out.print()
    print_table(name, rows)


def _layers(source: str, shape: str, preprocess: str | None) -> list[str]:
    """The layers of a network, as it is shown an input of a shape."""
    from assay.core.shapes import shape_of
    from assay.plans.preprocess import preprocess_from_text
    from assay.subject.source import SubjectSource
    from assay.subject.taking import NotTaken

    subject = SubjectSource(source, preprocess=preprocess_from_text(preprocess)).load()
    subject.example = shape_of(shape, "--input")
    try:
        return subject.layers
    except NotTaken as error:
        raise AssayError(f"{error}; --input gives the shape of one input that it takes, as --input 1x28x28") from error
