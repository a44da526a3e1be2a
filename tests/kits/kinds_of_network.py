"""Networks of every kind that people have, asked every measure; writes the page that says what works.

``python tests/kits/kinds_of_network.py`` writes docs/what-works.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

import assay
import zoo
from assay import AssayError, Measure, Subject
from assay.measures.complexity.margin_bounds import NOT_POSITIVE
from assay.stimuli import Family, Images, Labelled, ParametricTest, Sequences, as_texts

PAGE = Path(__file__).parents[2] / "docs" / "what-works.md"
CLASSES = 3
LABELS = np.arange(24) % CLASSES
# Statuses that depend on the data of this page and its few inputs, not on the kind of network.
OF_THE_DATA = (
    "ok", "above 100", "below 1e-05", "the 10th percentile is not positive", NOT_POSITIVE, "undefined",
    "no input has one",
)  # fmt: skip
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


class Recurrent(nn.Module):
    """A recurrent layer, and a readout of its last step."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.recurrent = kind(6, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(x)[0][:, -1])


class Encoder(nn.Module):
    """Torch's own transformer encoder, and a readout of the mean over steps."""

    def __init__(self) -> None:
        super().__init__()
        block = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x).mean(1))


class TwoInputs(nn.Module):
    """Takes a picture and a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.see, self.read = nn.Conv2d(3, 4, 3), nn.Linear(4, 4)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, picture: Tensor, context: Tensor) -> Tensor:
        return self.head(torch.relu(self.see(picture).mean((2, 3)) + self.read(context)))


class Named(nn.Module):
    """Returns tensors by name, nested, the class scores among them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = convolutional()

    def forward(self, x: Tensor) -> dict[str, Any]:
        scores = self.body(x)
        return {"features": (x.mean((2, 3))[:, :, None], [scores[:, :1]]), "logits": scores}


def convolutional() -> nn.Module:
    body = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    return nn.Sequential(*body, nn.Linear(16, CLASSES)).eval()


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def residual() -> nn.Module:
    return nn.Sequential(zoo.build("resnet"), nn.Linear(10, CLASSES))


def of_transformers(name: str, config: str, **settings: Any) -> nn.Module:
    import transformers

    return getattr(transformers, name)(getattr(transformers, config)(num_labels=CLASSES, **settings))


def gpt2(name: str) -> nn.Module:
    sizes = {"vocab_size": 50, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return of_transformers(name, "GPT2Config", **sizes, pad_token_id=0, bos_token_id=1, eos_token_id=1)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(convolutional())


def exported() -> torch.export.ExportedProgram:
    batch = pictures().shown()
    return torch.export.export(convolutional(), (batch,), dynamic_shapes=({0: torch.export.Dim.AUTO},))


def imported() -> nn.Module:
    """A small network written as ONNX, and read back."""
    from onnx import TensorProto, helper, numpy_helper, save

    from assay.networks.imported.onnx import load_onnx

    draw = np.random.default_rng(0)
    shapes = {"w": (4, 3, 3, 3), "b": (4,), "v": (CLASSES, 4), "d": (CLASSES,)}
    weights = [numpy_helper.from_array(draw.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["convolved"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["convolved"], ["rectified"]),
        helper.make_node("GlobalAveragePool", ["rectified"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "v", "d"], ["scores"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])
    y = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "small.onnx"
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return load_onnx(path)


def pictures() -> Labelled:
    return Labelled(np.random.default_rng(0).random((24, 3, 16, 16), dtype=np.float32), LABELS, "the data")


def series() -> Labelled:
    return Labelled(np.random.default_rng(0).random((24, 5, 6), dtype=np.float32), LABELS, "the data")


def videos() -> Labelled:
    """Labelled videos of noise."""
    return Labelled(np.random.default_rng(0).random((24, 4, 3, 16, 16), dtype=np.float32), LABELS, "the data")


def words() -> Labelled:
    ids = np.random.default_rng(0).integers(1, 50, (24, 8))
    mask = np.ones_like(ids)
    mask[::2, 6:] = 0
    return Labelled({"input_ids": ids, "attention_mask": mask}, LABELS, "the data")


def pairs() -> Labelled:
    context = np.random.default_rng(1).random((24, 4), dtype=np.float32)
    return Labelled({"picture": pictures().inputs, "context": context}, LABELS, "the data")


class Kind(NamedTuple):
    """A kind of network: how one is made, and what it is shown."""

    make: Callable[[], Any]
    data: Callable[[], Labelled] = pictures


HISTORY = pd.DataFrame({"loss": [1.0, 0.1, 0.01]})
KINDS = {
    "multilayer perceptron": Kind(perceptron),
    "convolutional, in-place ReLU": Kind(convolutional),
    "residual network": Kind(residual),
    "in bfloat16": Kind(lambda: convolutional().bfloat16()),
    "several outputs by name": Kind(Named),
    "two inputs": Kind(TwoInputs, pairs),
    "LSTM": Kind(lambda: Recurrent(nn.LSTM), series),
    "GRU": Kind(lambda: Recurrent(nn.GRU), series),
    "transformer encoder": Kind(Encoder, series),
    "vision transformer (Hugging Face)": Kind(
        lambda: of_transformers("ViTForImageClassification", "ViTConfig", **SIZES, image_size=16, patch_size=8)
    ),
    "BERT classifier (Hugging Face)": Kind(
        lambda: of_transformers("BertForSequenceClassification", "BertConfig", **SIZES, vocab_size=50), words
    ),
    "GPT-2 classifier (Hugging Face)": Kind(lambda: gpt2("GPT2ForSequenceClassification"), words),
    "GPT-2 language model (Hugging Face)": Kind(lambda: gpt2("GPT2LMHeadModel"), words),
    "PredNet, a network of videos": Kind(lambda: assay.PredNet((3, 4)), videos),
    "`torch.compile`": Kind(lambda: torch.compile(convolutional(), backend="eager")),
    "`nn.DataParallel`": Kind(lambda: nn.DataParallel(convolutional())),
    "`torch.export.ExportedProgram`": Kind(exported),
    "TorchScript": Kind(scripted),
    "ONNX file": Kind(imported),
}


def subject_of(kind: str) -> Subject:
    """A network of a kind, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = KINDS[kind].make()
    subject = Subject(made, "the network", example=KINDS[kind].data().shown(slice(0, 1)), history=HISTORY)
    state = subject.module.state_dict()
    subject.initial_weights = {name: t / 2 if t.is_floating_point() else t for name, t in state.items()}
    return subject


def measures(data: Labelled, inner: Any) -> Iterator[tuple[str, Callable[[], Measure]]]:
    """Every measure with small settings, by what the page calls it; ``inner`` is a layer for margins."""
    draw = np.random.default_rng(0)
    clips = Sequences.of(noise=draw.random((5, 3, 16, 16), dtype=np.float32))
    test = ParametricTest(
        Images(draw.random((40, 3, 16, 16), dtype=np.float32)), (Family("translation_x", (0.0, 1.0)),)
    )
    sequences = as_texts(data.inputs) if "input_ids" in data.arrays else clips
    objects = pictures() if len(data.shape) == 4 else data  # to a network of videos, pictures are shown as stills
    seen, people = draw.random((10, 3, 16, 16), dtype=np.float32), draw.random((3, 45))
    none: Any = {"bootstrap": 0}
    yield "straightness", lambda: assay.Straightness(sequences)
    yield "invariance", lambda: assay.Invariance(test, firing_rate=0.1, **none)
    yield "perturbation of the input", lambda: assay.PerturbationResponse(data, layer=0, magnitudes=3, **none)
    yield "perturbation of a layer", lambda: assay.PerturbationResponse(data, layer=1, magnitudes=3, **none)
    yield "margins", lambda: assay.Margins(data, layers=inner, **none)
    yield (
        "sharpness",
        lambda: assay.Sharpness(data, kinds=("sigma", "alpha"), steps=3, draws=2, ascent=2, **none),
    )
    yield "clusters", lambda: assay.ClusterSeparation(data, rounds=2, **none)
    yield "augmentation", lambda: assay.AugmentationRobustness(data, **none)
    yield "matching", lambda: assay.ObjectMatching(objects, trials=2)
    yield "human similarity", lambda: assay.HumanSimilarity((seen, people), **none)
    yield "next-frame error", lambda: assay.NextFrameError(clips)
    yield "norms", lambda: assay.Norms()
    yield "distance", lambda: assay.InitialDistance()
    yield "margin bounds", lambda: assay.MarginBounds(data, **none)
    yield "PAC-Bayes", lambda: assay.PacBayes(data, steps=3, draws=2, **none)
    yield "training speed", lambda: assay.TrainingSpeed()


class Outcome(NamedTuple):
    """What came of asking: a table, and what it leaves out; or the sentence that says why not."""

    table: pd.DataFrame | None
    note: str


def ask(subject: Subject, measure: Callable[[], Measure]) -> Outcome:
    """Ask one measure of a network; anything but an `AssayError` comes through."""
    try:
        asked = measure()
        table = asked(subject)
        asked.summary(table)
    except AssayError as error:
        # What torch says of a shape differs from version to version.
        return Outcome(None, re.sub(r"(cannot take .*? of shape \([^)]*\))(, \d+ at a time)?: .*", r"\1", str(error)))
    missing = table[table[asked.value].isna() & ~table["status"].isin(OF_THE_DATA)]
    notes = []
    for status, rows in missing.groupby("status"):
        quantities = rows["quantity"].unique() if "quantity" in rows else ()
        layers = rows["layer"].unique()
        at = f"layer{'s' if len(layers) > 1 else ''} {', '.join(layers)}"
        notes.append(f"{' and '.join(quantities) if 0 < len(quantities) < 3 else at}: {status}")
    return Outcome(table, "; ".join(notes))


def outcomes() -> dict[str, dict[str, Outcome]]:
    """The outcome of every measure for every kind of network."""
    table: dict[str, dict[str, Outcome]] = {}
    for kind in KINDS:
        subject = subject_of(kind)
        inner = None if subject.layers == ["output"] else 0.5
        asked = measures(KINDS[kind].data(), inner)
        table[kind] = {name: ask(subject, measure) for name, measure in asked}
    return table


def page(table: dict[str, dict[str, Outcome]]) -> str:
    """The page: a table of kinds of network and measures, and numbered notes."""
    numbers: dict[str, int] = {}

    def cell(outcome: Outcome) -> str:
        note = f" ({numbers.setdefault(outcome.note, len(numbers) + 1)})" if outcome.note else ""
        return f"{'no' if outcome.table is None else 'works' if not note else 'in part'}{note}"

    columns = list(next(iter(table.values())))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for kind, row in table.items():
        lines.append(f"| {kind} | {' | '.join(cell(row[column]) for column in columns)} |")
    notes = [f"{number}. {note[0].upper()}{note[1:]}." for note, number in numbers.items()]
    return "\n".join([HEAD, *lines, "", "Notes:", "", *notes, ""])


HEAD = """# What works

This table shows which measures can be used with which kinds of network. A test writes it: it applies every measure to
a small network of every kind, with labelled data that the network takes (pictures, videos, series of vectors, words);
straightness, invariance, human similarity and next-frame error show their own frames and pictures, and straightness
shows [texts](language-models.md) to networks of words. A cell says "works"; "in part", with a note on what is missing
from the measure's table; or "no", with the error that the measure raises. Distance, margin bounds, PAC-Bayes and
training speed are asked of networks that [carry their past](generalization.md#the-past-of-a-network).

How to pass a network to assay (with examples in [what assay accepts](accepts.md)):

- **A torch module**, unchanged. Compiled modules and those wrapped in `nn.DataParallel`, `DistributedDataParallel` or
  `AveragedModel` are unwrapped. A `LightningModule` is a torch module.
- **Hugging Face**: `source: hf:FOLDER_OR_NAME` in a plan, or the model itself. The class scores are its `logits`.
- **Several inputs**, and words: labelled data, examples and batches are mappings by the names of the arguments of
  `forward`, such as `Labelled({"input_ids": ids, "attention_mask": mask}, labels)`. A measure that changes its input
  changes the first floating-point one, and leaves the others as they are. To show the frames of straightness or the
  pictures of invariance to such a network, give it a `preprocess` that turns a batch of them into such a mapping.
- **An exported program** that was exported with a batch size that may vary; **TorchScript**, of which only the output
  is visible.
- **An ONNX file**: `source: file.onnx` in a plan.
"""


if __name__ == "__main__":
    PAGE.write_text(page(outcomes()), encoding="utf-8")
