"""The command ``assay init``, which writes a plan to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.terminal import out
from assay.core.errors import AssayError

PLAN = """\
# A plan: which networks are measured, what is measured, and where the results go.
#
#   assay check {file}    finds all problems and measures nothing
#   assay run {file}      measures and writes a report; run again, it measures only what is missing
#   assay list            lists measures, networks, stimuli, and words for preprocess
#   assay list NAME       shows the settings of a measure or of stimuli, or the layers of a network
#
# Paths are relative to this file, and modules beside it are found.

run: {run}                  # folder of the run
# seed: 0                         # seed of the random numbers at the start of every measurement

subjects:
  - source: assay.networks:small_resnet    # module:function, where the function makes a torch.nn.Module
    name: resnet
  - source: assay.networks:small_vgg
    name: vgg

  # A network of your own: the function make() in mynet.py, beside this file.
  # - source: mynet:make
  #   name: mine
  #   args: {{classes: 10}}               # arguments of the function
  #   weights: mynet.safetensors        # or a .pt file of tensors
  #   preprocess: [{{resize: 32}}, cifar10]   # or imagenet, mnist, none, {{normalize: {{mean: […], std: […]}}}}, …
  #   device: cuda

  # Networks from elsewhere.
  # - source: network.onnx
  # - source: timm:resnet18
  # - source: hf:microsoft/resnet-18

measures:
  # How much does each layer straighten the path of a moving picture?
  - measure: straightness
    sequences:
      camera: {{size: 32, length: 6, pictures: 3}}    # camera motion over photographs that come with assay
      # folder: clips                               # or your own: a folder of videos or of folders of frames
      # control: [natural, pixel_fade]              # also show the clips' frames faded into each other
    # layers: [depth=1]                             # names, patterns such as layer?.2, or a depth; all by default

  # How invariant is each layer to the orientation and the phase of gratings?
  - measure: invariance
    test:
      gratings: {{size: 32, channels: 3, orientations: 8, phases: 8}}
    units: channels
    bootstrap: 50                                   # resamples for the intervals

  # How large are the weights?
  - measure: norms
    shape: [3, 32, 32]

  # Measures that need labelled data (see the last key).
  # - measure: perturbation
  #   perturbation: [intra, noise, rotation]
  # - measure: margins

  # A measure of your own: the class MyMeasure in mymeasure.py, beside this file.
  # - measure: mymeasure:MyMeasure

# Labelled data for the measures that need them: a folder of class folders, an .npz file, or a .csv file of paths and
# labels.
# data: {{path: data.npz, split: train}}
"""


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plan.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write it even if the file exists.")] = False,
) -> None:
    """Write a plan to begin with: it runs as it is, and shows the common settings in comments."""
    if file.is_dir():
        raise AssayError(f"{file} is a folder: give the name of a file, such as {file / 'plan.yaml'}")
    if file.exists() and not force:
        raise AssayError(f"{file} exists already: give another name, or --force to overwrite it")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(first_plan(file), encoding="utf-8")
    except OSError as error:
        raise AssayError(f"{file} cannot be written ({error.strerror or error})") from error
    out.print(f"wrote {file}; next: assay check {file}, then assay run {file}", markup=False)


def first_plan(file: Path) -> str:
    """The text of a plan to begin with."""
    return PLAN.format(file=file.name, run=f"runs/{file.stem}")
