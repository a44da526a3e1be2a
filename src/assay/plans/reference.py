"""The reference of plans, written from the settings themselves: every key, with its type, default and meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from assay.measures import Measure
from assay.plans.describe import Setting, first_sentence, settings_of
from assay.plans.plan import KEYS
from assay.plans.preprocess import WORDS
from assay.plans.stimuli import FACTORIES, HIDDEN
from assay.runs.executor import Resources
from assay.stimuli import (
    Family,
    Mixup,
    Noise,
    Transformed,
    load_coil20_pictures,
    load_human_stimuli,
    novel_objects,
)
from assay.stimuli.perturbations import PERTURBATIONS
from assay.subject.source import SubjectSource

INTRODUCTION = """\
# The reference of plans

A plan is a YAML file that says which networks are measured, what is measured, and where the results go. `assay init`
writes a first plan, `assay check` finds all problems of a plan, and `assay run` carries it out. Paths in a plan are
relative to its file. To learn by example, start with the [tutorial](tutorial.md).

```yaml
run: runs/first
subjects:
  - source: assay.networks:vgg
    args: {channels: 1}
    weights: vgg.safetensors
    preprocess: {normalize: {mean: [0.13], std: [0.31]}}
data: {path: digits.npz, split: train}
measures:
  - norms
  - measure: margins
    samples: 500
  - measure: invariance
    test:
      gratings: {size: 28, phases: 8}
```

Networks, measures and functions of your own are named `module:object`. Modules are looked for beside the plan first, as
they are for a script, also in other processes (`--processes`) and on a Ray cluster (`--ray`).

```python
>>> import tempfile
>>> from pathlib import Path
>>> from assay import load_plan
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "shallow.py").write_text('''
... from torch import nn
...
... def make(width=4):
...     return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, width), nn.ReLU())
...
... def darken(batch):
...     return batch / 2
... ''')
>>> _ = (folder / "plan.yaml").write_text('''
... subjects:
...   - {source: "shallow:make", args: {width: 2}, preprocess: [{resize: 16}, "shallow:darken"]}
... measures:
...   - {measure: straightness, sequences: {camera: {size: 24, length: 4, pictures: 1}}}
... ''')
>>> load_plan(folder / "plan.yaml").execute().table("straightness")["layer"].unique().tolist()
['pixels', '0', '1', '2']

```

Settings of a measure of your own are the fields of its dataclass: text, numbers, true or false, lists, mappings, paths,
arrays (the path of an `.npy` file, or a list of numbers), other dataclasses, and labelled data, images and sequences as
below. `assay check` reports all problems of a plan at once, each with its line. With `--keep-going`, `assay run`
measures what can be measured though a measure does not fit a network, and `assay check plan.yaml --keep-going` shows
which cells would fail, with exit code 3 if there is one.

```python
>>> _ = (folder / "plan.yaml").write_text('''
... subjects: ["shallow:mak"]
... measures:
...   - {measure: invarience}
...   - {measure: norms, convolution: 3}
... ''')
>>> import assay
>>> from assay.plans.check import check_plan
>>> try:
...     check_plan(folder / "plan.yaml")
... except assay.AssayError as error:
...     print(str(error).replace(f"{folder}/", ""))
plan.yaml:4: measures[0].measure: unknown measure 'invarience'; did you mean 'invariance'?
plan.yaml:5: measures[1].convolution: is 3, expected one of 'reshaped', 'circular'
plan.yaml:2: subjects[0]: source='shallow:mak': 'shallow' has no 'mak'; did you mean 'make'?

```
"""


SUBJECTS = """\
### `subjects`

A subject is its `source` alone, or a mapping:
"""
PREPROCESS = """\
### `preprocess`

One of these steps, or a list of them, applied in order; words may also be joined by commas, as in `grey,resize=32`.
The option `--preprocess` of commands takes the same.
"""
MEASURES = """\
## Measures

A measure is its name alone, or a mapping of `measure` and its settings; `name` is what tables and the report call it.
[The pages of the measures](measures/README.md) have formulas, examples, costs and limits.
"""
SEQUENCES = """\
## Stimuli and data

### Sequences

The path of a folder or file of clips, or a mapping with one of these keys, its settings under it; those of `folder`
stand beside it. `moving` also needs `motion`, which is `translation` or `rotation_2d`. The key `control` beside them is
one or several of `natural`, `pixel_fade` and `contrast_fade`.
"""
TESTS = """\
### Tests of invariance

A mapping with one of these keys, its settings under it. A transformation of the test `parametric` is a name or a
function of your own, which must give pictures of the same shape back, the same ones whenever it is asked, without NaN;
`assay check` tries it on two pictures.

```python
>>> _ = (folder / "waves.py").write_text('''
... import torch
...
... def wave(pictures, heights):                   # N×C×H×W, and one magnitude for each
...     rows = torch.linspace(0, 6.28, pictures.shape[-2], device=pictures.device)
...     return pictures + heights[:, None, None, None] * rows.sin()[:, None]
...
... def roll(picture, pixels):                     # with `each: true`: C×H×W, and one number
...     return picture.roll(round(pixels), -1)
... ''')
>>> _ = (folder / "plan.yaml").write_text('''
... subjects: ["shallow:make"]
... measures:
...   - measure: invariance
...     firing_rate: 0.1
...     test:
...       parametric:
...         images: pictures.npy
...         families:
...           - {transformation: "waves:wave", magnitudes: [0, 0.1, 0.2]}
...           - {transformation: "waves:roll", magnitudes: [-2, -1, 0, 1, 2], each: true}
... ''')
>>> import numpy as np
>>> np.save(folder / "pictures.npy", np.random.default_rng(0).random((40, 3, 16, 16)))
>>> check_plan(folder / "plan.yaml").plan.execute().table("invariance")["transformation"].unique().tolist()
['wave', 'roll']

```
"""
HUMAN_STIMULI = """\
### Human stimuli

Images, and the RDMs of people who saw them: `{brain92: FOLDER}` with the folder of the 92-image set, for networks of
small pictures with a `size`, and `color: grey`; the path of that folder, or of one that holds the folders `images` and
`rdms`; or a mapping with these keys, such as `{images: pictures, rdms: rdms.h5, size: 64, color: rgb}`.
"""
OBJECT_PICTURES = """\
### Object pictures

A mapping with one of these keys, its settings under it, such as `{novel: {count: 20}}` or `{coil20: coil20.npz}`; or
labelled data, as above, whose classes are the objects.
"""
PERTURBED = """\
### Perturbations

A name, or a mapping for another range of magnitudes: `{mixup: intra, high: 0.4}`, `{noise: {}, high: 1}` or
`{function: rotation, low: -10, high: 10}`. The names are
"""


def plan_reference() -> str:
    """The page ``docs/plans.md``."""
    data = ((name.capitalize(), made) for name, made in FACTORIES["data"].items())
    parts = [
        INTRODUCTION,
        "## Keys",
        _two_columns("key", "meaning", KEYS),
        SUBJECTS,
        _table(settings_of(SubjectSource)),
        PREPROCESS,
        _two_columns("step", "what it does", WORDS),
        "### `resources`",
        _table(settings_of(Resources)),
        MEASURES,
        *_sections(Measure.known().items(), "###", lambda kind: kind.__module__.startswith("assay.")),
        SEQUENCES,
        *_sections(FACTORIES["sequences"].items(), "####"),
        TESTS,
        *_sections(FACTORIES["tests of invariance"].items(), "####"),
        *_sections([("families", Family)], "####"),
        *_sections(data, "###", code=False),
        "Labelled data and images may also be written as the path alone.",
        HUMAN_STIMULI,
        _table(settings_of(load_human_stimuli)),
        OBJECT_PICTURES,
        *_sections([("novel", novel_objects)], "####"),
        f"#### `coil20`\n\n{_markdown(first_sentence(load_coil20_pictures))}",
        _table(settings_of(load_coil20_pictures)),
        PERTURBED.rstrip() + f" {', '.join(f'`{name}`' for name in PERTURBATIONS)}.",
        *_sections([("mixup", Mixup), ("noise", Noise), ("function", Transformed)], "####"),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _sections(
    kinds: Iterable[tuple[str, Any]], heading: str, chosen: Callable[[Any], bool] = lambda _: True, code: bool = True
) -> list[str]:
    """A section for each kind: what it is, and its settings."""
    sections = []
    for name, made in kinds:
        if chosen(made):
            title = f"`{name}`" if code else name
            sections.append(f"{heading} {title}\n\n{_markdown(first_sentence(made))}")
            sections.append(_table(settings_of(made, HIDDEN.get(name, ()))))
    return [section for section in sections if section]


def _table(settings: list[Setting]) -> str:
    """Settings as a table of Markdown."""
    if not settings:
        return ""
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for s in settings:
        default = "must be given" if s.default is None else f"`{s.default}`"
        rows.append(f"| `{s.name}` | {s.type} | {default} | {_markdown(s.meaning)} |")
    return "\n".join(rows)


def _two_columns(first: str, second: str, entries: dict[str, str]) -> str:
    return "\n".join([f"| {first} | {second} |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in entries.items())])


def _markdown(text: str) -> str:
    """The text of a docstring as Markdown: code in single quotes, the words of YAML, no bars inside a table."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    for python, yaml in (("None", "null"), ("True", "true"), ("False", "false")):
        text = re.sub(rf"\b{python}\b(?!`)", f"`{yaml}`", text)
    return text.replace("|", "\\|")
