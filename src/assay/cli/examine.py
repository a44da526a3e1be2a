"""The command for one question: ``assay examine SOURCE…``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.names import complete_source
from assay.cli.terminal import AsJson, Quiet, progress, whole_place
from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.stimuli import Labelled


def examine(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Networks: module:factory, file.onnx, hf:name or timm:name; NAME=SOURCE names one.",
            autocompletion=complete_source,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Labelled data: a folder of class folders, an .npz file, or a .csv of paths. The training data, "
            "on which the measures of generalization are defined; held-out data for how networks do on new inputs."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="Side that the central square of pictures in files is resized to, or HEIGHTxWIDTH."),
    ] = None,
    color: Annotated[str | None, typer.Option(help="grey or rgb, to convert pictures in files to.")] = None,
    weights: Annotated[
        list[Path] | None, typer.Option(help="A checkpoint for each source, in order; - for none.")
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(help="A word for each source, in order, that networks trained alike share; - for none."),
    ] = None,
    preprocess: Annotated[
        str | None, typer.Option(help="What is done to every input, as in a plan: imagenet, cifar10, resize=224, …")
    ] = None,
    shape: Annotated[str | None, typer.Option("--input", help="Shape of one input, as 3x32x32, without data.")] = None,
    time: Annotated[
        str, typer.Option("--time", help="The time there is, as 90s, 10m or 2h, once all is loaded.")
    ] = "10m",
    folder: Annotated[str, typer.Option("--run", callback=whole_place, help="Folder of the run.")] = "runs/examination",
    device: Annotated[str | None, typer.Option(help="Device of the networks, as cuda.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask networks everything that can be asked of them in the time given, and write the report."""
    from assay.cli.run import finish
    from assay.core.durations import seconds_of
    from assay.core.shapes import shape_of
    from assay.core.user_code import code_in
    from assay.plans.examination import examine as examine_networks
    from assay.plans.preprocess import preprocess_from_text
    from assay.report import write_report
    from assay.subject.source import SubjectSource

    if data is None and shape is None:
        raise AssayError("give --data, or the shape of one input, as --input 3x32x32")
    if data is None and (size is not None or color is not None):
        raise AssayError("--size and --color are about the pictures of --data: give these too")
    seconds, input_shape = seconds_of(time, "--time"), None if shape is None else shape_of(shape, "--input")
    for option, values in (("--weights", weights), ("--recipe", recipe)):
        if values and len(values) != len(sources):
            raise AssayError(
                f"{option} is given {len(values)} times for {len(sources)} networks: give one for each, or -"
            )
    given = [None if str(w) == "-" else w for w in weights or []]
    recipes = ["" if word == "-" else word for word in recipe or []]
    subjects = []
    steps = preprocess_from_text(preprocess)
    with code_in(Path.cwd()):
        for i, source in enumerate(sources):
            name, _, rest = source.rpartition("=")
            made = SubjectSource(
                rest,
                name or None,
                weights=given[i] if given else None,
                preprocess=steps,
                device=device,
                recipe=recipes[i] if recipes else "",
            )
            subjects.append(made.load())
        labelled = None if data is None else _data(data, size, color)
        with progress(quiet):
            done = examine_networks(
                subjects,
                folder,
                data=labelled,
                shape=input_shape,
                seconds=seconds,
            )
    finish(done, write_report(done), as_json)


def _data(path: Path, size: str | None, color: Any) -> Labelled:
    """Load labelled data; what is wrong with it is said in the words of the command line."""
    from assay.plans.data import labelled_data
    from assay.stimuli.picture_files import PicturesDiffer

    sides = [] if size is None else [int(side) if side.isdecimal() else 0 for side in size.split("x")]
    if len(sides) > 2 or 0 in sides:
        raise AssayError(f"--size={size} is no side, as 32, and no height and width, as 32x48")
    if color is not None and color not in ("grey", "rgb"):
        raise AssayError(f"--color={color} is not grey or rgb")
    side: Any = sides[0] if len(sides) == 1 else tuple(sides) or None
    try:
        return labelled_data(path, size=side, color=color)
    except PicturesDiffer as error:
        raise AssayError(error.sentence("--size 32", "--color rgb")) from error
