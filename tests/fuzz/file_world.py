"""What the fuzzer of files damages: one folder of every kind that assay reads, and the ways in which it is read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from torch import nn

import assay
import pgdl_kit
from assay import AssayError
from assay.broad.bundle import ingest, pack
from assay.broad.data.columns import read_columns
from assay.broad.data.reviews import load_we8there
from assay.broad.protocol import analyze, compare_folders
from assay.broad.run.results import FoldInfo, Results, RunRecord
from assay.core.checkpoints import read_checkpoint, read_tensors, write_checkpoint
from assay.networks.imported.onnx import load_onnx
from assay.plans.data import clips_in, image_set, labelled_data
from assay.runs.run import Run
from assay.stimuli import Sequences, load_images, load_labelled, load_rdms, load_sequences
from assay.stimuli.datasets import as_images, as_labelled, as_sequences
from assay.stimuli.text_files import load_texts
from assay.studies.corpus.pgdl import load_pgdl
from assay.studies.corpus.plan import load_corpus_plan
from assay.studies.corpus.trained import load_corpus, train_corpus
from assay.studies.search.table import Search, read_search
from assay.subject.source import SubjectSource, load_weights
from fuzz.harness import Broken, Case, command

Use = Callable[[Path, Case], None]
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 255, (40, 8, 8), dtype=np.uint8)
LABELS = np.arange(40) % 3


# -- runs -----------------------------------------------------------------------------------------------------


def networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "narrow": nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 3)),
        "wide": nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.Tanh(), nn.Linear(9, 3)),
        "unfit": nn.Sequential(nn.Flatten(), nn.Linear(5, 3)),
    }


def measures() -> list[assay.Measure]:
    frames = np.random.default_rng(1).random((2, 5, 1, 8, 8))
    return [assay.Straightness(Sequences.of(a=frames[0], b=frames[1])), assay.Norms()]


def evaluated(root: Path) -> Run:
    return assay.evaluate(networks(), measures(), root / "run", example=(1, 8, 8))


def make_run(root: Path) -> None:
    run = evaluated(root)
    np.savez(root / "truth.npz", **{label: run.table(label).to_numpy(dtype=str) for label in run.measures})
    run.report()


def open_run(root: Path, case: Case) -> None:
    run = Run(root / "run")
    repr(run), run._repr_html_(), run.failures, run.cells, run.done, run.keys
    for measure in run.measures:
        run.table(measure), run.summary(measure), run.evidence(measure)


def compare_run(root: Path, case: Case) -> None:
    str(Run(root / "run").compare("narrow", "wide"))


def plot_run(root: Path, case: Case) -> None:
    Run(root / "run").plot("straightness").save(root / "plot.png")


def report_run(root: Path, case: Case) -> None:
    command("report", "run")


def compare_runs(root: Path, case: Case) -> None:
    command("compare", "run", str(case.shared / "run" / "run"))


def run_again(root: Path, case: Case) -> None:
    """Nothing is lost: cells that were not harmed stay byte for byte, and the tables become whole again."""
    was = case.shared / "run"
    cells = [p.relative_to(was) for p in (was / "run" / "cells").iterdir()]
    unharmed = [p for p in cells if _same(was / p, root / p)]
    try:
        run = evaluated(root)
    except AssayError:
        lost = [p for p in unharmed if p.suffix == ".parquet" and not _same(was / p, root / p)]
        if lost:
            raise Broken(f"the run is refused, and {lost[0]} is lost") from None
        raise
    lost = [p for p in unharmed if p.suffix == ".parquet" and not _same(was / p, root / p)]
    if lost:
        raise Broken(f"{lost[0]} was whole, and was lost or written anew")
    done = [p for p in unharmed if p.suffix == ".parquet"]
    if run.outcome is None or run.outcome.kept < len(done):
        raise Broken(f"{len(done)} cells were whole: {run.outcome}")
    truth = np.load(was / "truth.npz")
    for label in run.measures:
        if not np.array_equal(run.table(label).to_numpy(dtype=str), truth[label]):
            raise Broken(f"the table of {label} is another than that of the undamaged run")


def _same(one: Path, other: Path) -> bool:
    try:
        return other.is_file() and one.read_bytes() == other.read_bytes()
    except OSError:
        return False


# -- corpora, studies and searches ----------------------------------------------------------------------------

PLAN = """
network: vgg
data: {path: digits.npz}
corpus: four
grid: {depth: [1, 2], learning_rate: [0.01, 0.003], width: 2}
training: {optimizer: adam, batch_size: 20, epochs: 1}
measures: [{measure: norms}]
scoring: {draws: 5}
run: study
"""


def make_corpus(root: Path) -> None:
    arrays = {f"{split}_images": PIXELS[part] for split, part in (("train", slice(30)), ("test", slice(30, 40)))}
    arrays |= {f"{split}_labels": LABELS[part] for split, part in (("train", slice(30)), ("test", slice(30, 40)))}
    np.savez(root / "digits.npz", **arrays)
    (root / "plan.yaml").write_text(PLAN)
    train_corpus(load_corpus_plan(root / "plan.yaml"))
    command("corpus", "study", str(root / "plan.yaml"))


def open_corpus(root: Path, case: Case) -> None:
    corpus = load_corpus(root / "four", data=root / "digits.npz")
    assert len(corpus) + len(corpus.left_out) <= 4
    repr(corpus.table), corpus.train, corpus.test
    for subject in corpus.subjects():
        subject(torch.zeros(1, 1, 8, 8))


def train_again(root: Path, case: Case) -> None:
    command("corpus", "train", "plan.yaml")


def study_again(root: Path, case: Case) -> None:
    command("corpus", "study", "plan.yaml")


def report_study(root: Path, case: Case) -> None:
    command("report", "study")


def make_search(root: Path) -> None:
    import pandas as pd

    trials = pd.DataFrame(
        {
            "trial": [0, 1, 2], "status": ["complete", "failed", "complete"], "loss": [0.1, np.nan, 0.3],
            "width": [2, 3, 4], "seed": [1, 2, 3], "epochs_done": [4, 1, 4], "train_s": [0.1, 0.2, 0.1],
            "seconds": [1.0, 2.0, 1.0], "ended_by": "", "error": ["", "no", ""],
        }
    )  # fmt: skip
    live = pd.DataFrame(
        {
            "trial": [0, 0, 2],
            "epoch": [1, 2, 1],
            "step": [10, 20, 10],
            "seconds": [0.1, 0.2, 0.1],
            "loss": [0.2, 0.1, 0.3],
            "quantity": "loss",
            "value": [0.2, 0.1, 0.3],
            "measure_s": 0.01,
        }
    )
    about = {
        "name": "small", "objectives": {"loss": "minimize"}, "hyperparameters": {"width": "2 to 4"}, "logarithmic": [],
        "fixed": {}, "sampler": "tpe", "seed": 0, "planned": 3, "live": "loss", "tracebacks": {"1": "Traceback"},
        "plan": {"name": "small"},
    }  # fmt: skip
    from assay.core.folder import Folder

    Search(trials, live, about, str(root)).write(Folder(str(root / "found")))


def open_search(root: Path, case: Case) -> None:
    found = read_search(str(root / "found"))
    repr(found), found.failures


def report_search(root: Path, case: Case) -> None:
    command("report", "found")


# -- broad evaluations ----------------------------------------------------------------------------------------

TRUTH = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [3.0], [2.0], [4.0]])
RUNS = ("1", "2s", "3s", "4s", "5s", "6s")


def make_evaluation(root: Path) -> None:
    import broad_report_kit

    broad_report_kit.make_evaluation(root / "shown", teams=1, text=False)
    for place in ("ours", "theirs"):
        results = Results(str(root / place))
        task = {"name": "text:Food", "modality": "text", "labels": ["Food"], "partition": "ab" * 32,
                "runs": list(RUNS), "training": 6, "validation": 0, "test": len(TRUTH), "data": "made up"}  # fmt: skip
        protocol = {"k": 2, "margin": {"MAP": 0.02, "RMSE": 0.02}, "bootstrap": 5}
        results.write_manifest(
            {"tasks": [task], "protocol": protocol, "teams": [{"letter": "s", "name": "S", "parts": {}}]}
        )
        results.write_truth("text:Food", TRUTH, None, tuple(f"i{i}" for i in range(len(TRUTH))))
        for run in RUNS:
            results.write_run(RunRecord("text:Food", run, "done", partition="ab" * 32, stages={"features": run}))
            for fold in (1, 2):
                info = FoldInfo("h", [{}], [0.5], [], 1.0)
                results.write_fold("text:Food", run, fold, {"predictions": np.clip(TRUTH + fold / 9, 1, 5)}, info)
        analyze(str(root / place))
    pack(str(root / "theirs"), root / "results.zip")


def report_evaluation(root: Path, case: Case) -> None:
    command("broad", "report", "shown")


def analyze_evaluation(root: Path, case: Case) -> None:
    analyze("ours")


def compare_evaluations(root: Path, case: Case) -> None:
    compare_folders("ours", "theirs")


def ingest_evaluation(root: Path, case: Case) -> None:
    ingest("ours", "results.zip", "site")


# -- checkpoints and networks ---------------------------------------------------------------------------------


def make_checkpoints(root: Path) -> None:
    state = networks()["narrow"].state_dict()
    torch.save(state, root / "weights.pt")
    torch.save({"state_dict": state, "epoch": 3}, root / "nested.pt")
    write_checkpoint(root / "training.safetensors", state, {"epoch": 3, "training": "x"})


def read_weights(root: Path, case: Case) -> None:
    for file in _files(root, case):
        read_tensors(file)


def load_into_a_network(root: Path, case: Case) -> None:
    for file in _files(root, case):
        load_weights(networks()["narrow"], file)


def read_progress(root: Path, case: Case) -> None:
    read_checkpoint(root / "training.safetensors")


def make_onnx(root: Path) -> None:
    def array(*shape: int) -> np.ndarray:
        return RNG.normal(size=shape).astype(np.float32)

    weights = {"kernel": array(2, 1, 3, 3), "offset": array(2), "matrix": array(3, 72), "shift": array(3)}
    for name, act in (("net", "Relu"), ("odd", "Acos")):  # the second is run by onnxruntime
        nodes = [
            helper.make_node("Conv", ["x", "kernel", "offset"], ["a"], name="/net/conv/Conv"),
            helper.make_node(act, ["a"], ["b"], name="act"),
            helper.make_node("Flatten", ["b"], ["c"]),
            helper.make_node("Gemm", ["c", "matrix", "shift"], ["y"], name="readout", transB=1),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 8])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
            [numpy_helper.from_array(value, key) for key, value in weights.items()],
        )
        opset = [helper.make_opsetid("", 18)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), root / f"{name}.onnx")


def run_onnx(root: Path, case: Case) -> None:
    for file in ("net.onnx", "odd.onnx"):
        subject = assay.Subject.from_onnx(root / file)
        subject.record(torch.zeros(1, 1, 8, 8))


def read_onnx(root: Path, case: Case) -> None:
    for file in ("net.onnx", "odd.onnx"):
        load_onnx(root / file)


def make_keras(root: Path) -> None:
    layers = [
        {"layer_name": "Conv2D", "filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"},
        {"layer_name": "Flatten"},
        {"layer_name": "Dense", "units": 2},
    ]
    rng = np.random.default_rng(0)
    arrays = [
        {"kernel": rng.normal(size=(3, 3, 3, 4)).astype("f4"), "bias": rng.normal(size=4).astype("f4")},
        {},
        {"kernel": rng.normal(size=(24, 2)).astype("f4"), "bias": rng.normal(size=2).astype("f4")},
    ]
    pictures = rng.normal(size=(6, 4, 5, 3)).astype(np.float32)
    described = {}
    for number in (1, 2):
        pgdl_kit.write_keras(root / f"model_{number}", layers, [4, 5, 3], arrays)
        levels = {"width": {"possible_values": [4], "current_value": number}}
        described[str(number)] = {"hparams": levels, "metrics": {"train_acc": 0.75, "test_acc": 0.5}}
    pgdl_kit.write_data(root / "dataset_1" / "train", pictures, [0, 1] * 3)
    pgdl_kit.write_data(root / "dataset_1" / "test", pictures[:3], [0, 1, 0], shards=1)
    (root / "model_configs.json").write_text(json.dumps(described))


def open_pgdl(root: Path, case: Case) -> None:
    corpus = load_pgdl(root)
    repr(corpus.table)
    for subject in corpus.subjects():
        subject(torch.zeros(1, 3, 4, 5))
    assert len(corpus.train) and len(corpus.test)


# -- what people give -----------------------------------------------------------------------------------------


def make_pictures(root: Path) -> None:
    for kind in ("cat", "owl"):
        (root / "classes" / kind).mkdir(parents=True)
        for i, suffix in enumerate(("png", "jpg", "bmp", "tif", "webp", "ppm", "gif")):
            colours = np.stack([PIXELS[i]] * 3, -1)
            name = f"{i}.{suffix}" if suffix != "gif" else f"{i}.png"
            Image.fromarray(colours).save(root / "classes" / kind / name)
    rows = [f"classes/{kind}/{i}.png,{kind}" for kind in ("cat", "owl") for i in (0, 6)]
    (root / "table.csv").write_text("\n".join(["path,label", *rows]))


def read_classes(root: Path, case: Case) -> None:
    as_labelled(root / "classes", size=8)


def read_folder(root: Path, case: Case) -> None:
    load_images(root / "classes" / "cat", 8), image_set(root / "classes", 8)


def read_csv(root: Path, case: Case) -> None:
    labelled_data(root / "table.csv", size=8, color="grey"), as_labelled(root / "table.csv")
    as_images(root / "table.csv")


def read_frames(root: Path, case: Case) -> None:
    for clip in load_sequences(root / "classes" / "owl", 8):
        sum(frame.sum() for frame in clip.frames())


def make_videos(root: Path) -> None:
    import av

    for name, codec in (("clip.avi", "mpeg4"), ("clip.mp4", "mpeg4")):
        with av.open(str(root / name), "w") as container:
            stream = container.add_stream(codec, rate=10)
            stream.width = stream.height = 16
            stream.pix_fmt = "yuv420p"
            for i in range(6):
                pixels = np.full((16, 16, 3), 30 * i, np.uint8)
                for packet in stream.encode(av.VideoFrame.from_ndarray(pixels)):
                    container.mux(packet)
            for packet in stream.encode():
                container.mux(packet)


def read_videos(root: Path, case: Case) -> None:
    for file in _files(root, case):
        for clip in clips_in(file, 8):
            sum(frame.sum() for frame in clip.frames())


def make_arrays(root: Path) -> None:
    np.savez(root / "plain.npz", images=PIXELS, labels=LABELS)
    np.savez_compressed(root / "parts.npz", train_images=PIXELS, train_labels=LABELS)
    np.save(root / "inputs.npy", PIXELS)
    np.save(root / "labels.npy", LABELS)
    np.save(root / "clips.npy", PIXELS.reshape(4, 10, 1, 8, 8))
    (root / "idx").mkdir()
    head = b"\0\0\x08\x03" + np.array(PIXELS.shape, ">u4").tobytes()
    (root / "idx" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + PIXELS.tobytes()))
    head = b"\0\0\x08\x01" + np.array([40], ">u4").tobytes()
    (root / "idx" / "train-labels-idx1-ubyte").write_bytes(head + LABELS.astype(np.uint8).tobytes())
    import pandas as pd

    pd.DataFrame({"label": LABELS}).to_parquet(root / "table.parquet")


def read_labelled(root: Path, case: Case) -> None:
    files: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (as_labelled, (root / "plain.npz",)),
        (load_labelled, (root / "parts.npz",)),
        (labelled_data, (root / "plain.npz",)),
        (labelled_data, (root / "parts.npz", "train")),
        (as_labelled, ((str(root / "inputs.npy"), str(root / "labels.npy")),)),
        (load_labelled, (root / "idx",)),
        (as_labelled, (root / "idx",)),
    ]
    _each(files, case)


def read_images(root: Path, case: Case) -> None:
    files: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (as_images, (root / "inputs.npy",)),
        (load_images, (root / "plain.npz",)),
        (image_set, (root / "plain.npz",)),
        (as_sequences, (root / "clips.npy",)),
        (as_sequences, (root / "plain.npz",)),
        (as_labelled, (root / "table.parquet",)),
        (as_images, (root / "table.parquet",)),
    ]
    _each(files, case)


def _each(files: list[tuple[Callable[..., object], tuple[object, ...]]], case: Case) -> None:
    """Read them all, in an order by chance: what is refused does not keep the others from being read."""
    for read, given in files:
        try:
            read(*given)
        except AssayError:
            continue


def _files(root: Path, case: Case) -> list[Path]:
    """The files that a folder had before it came to harm."""
    return [root / file.name for file in sorted((case.shared / root.name).iterdir())]


def make_rdms(root: Path) -> None:
    from scipy import io

    matrices = np.stack([(m := RNG.random((5, 5))) + m.T for _ in range(3)])
    matrices[:, range(5), range(5)] = 0
    io.savemat(root / "people.mat", {"RDMs": matrices})
    np.savez(root / "people.npz", anna=matrices[0], carl=matrices[1])
    np.save(root / "one.npy", matrices[0])
    import h5py

    with h5py.File(root / "people.h5", "w") as file:
        file["RDMs"] = matrices


def read_rdms(root: Path, case: Case) -> None:
    _each([(load_rdms, (file,)) for file in _files(root, case)], case)


def make_reviews(root: Path) -> None:
    from scipy import sparse

    counts = sparse.random(12, 7, 0.5, "csr", random_state=0)
    counts.data = np.ones_like(counts.data)
    np.savez(
        root / "we8there.npz", data=counts.data, indices=counts.indices, indptr=counts.indptr, shape=counts.shape,
        ratings=np.arange(60).reshape(12, 5) % 6, rating_names=list("abcde"), doc_ids=np.arange(12),
    )  # fmt: skip
    rows = ["text,stars", *(f"a review {i},{i % 5}" for i in range(9))]
    (root / "reviews.csv").write_text("\n".join(rows))
    (root / "reviews.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))


def read_reviews(root: Path, case: Case) -> None:
    files = [(load_we8there, (root / "we8there.npz",))]
    files += [(read_columns, (root / name, ["text", "stars"])) for name in ("reviews.csv", "reviews.csv.gz")]
    _each(files, case)


def make_texts(root: Path) -> None:
    """A Hugging Face checkpoint, and texts that its tokenizer reads."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    network = ViTForImageClassification(ViTConfig(**sizes, image_size=8, patch_size=4, num_labels=3))
    network.save_pretrained(root / "vit")
    processor = {"do_resize": True, "size": {"height": 8, "width": 8}, "do_rescale": True}
    (root / "vit" / "preprocessor_config.json").write_text(json.dumps(processor))
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"one": 0, "text": 1, "[UNK]": 2}, "unk_token": "[UNK]"},
    }  # fmt: skip
    (root / "tokenizer.json").write_text(json.dumps(tokenizer))
    (root / "texts.txt").write_text("one text a line\nand another\n")


def load_checkpoint(root: Path, case: Case) -> None:
    SubjectSource(f"hf:{root / 'vit'}").load().record(torch.zeros(1, 3, 8, 8))


def read_texts(root: Path, case: Case) -> None:
    load_texts(root / "texts.txt", root / "tokenizer.json")


@dataclass(frozen=True)
class Kind:
    """A kind of folder: what makes it, how it is read in a moment, and how it is read for longer, by ``make fuzz``."""

    make: Callable[[Path], None]
    quick: tuple[Use, ...] = ()
    slow: tuple[Use, ...] = ()


KINDS = {
    "run": Kind(make_run, (open_run, run_again, run_again, compare_run), (report_run, compare_runs, plot_run)),
    "corpus": Kind(make_corpus, (), (open_corpus, train_again, study_again, report_study)),
    "search": Kind(make_search, (open_search,), (report_search,)),
    "evaluation": Kind(
        make_evaluation, (analyze_evaluation, compare_evaluations, ingest_evaluation), (report_evaluation,)
    ),
    "checkpoints": Kind(make_checkpoints, (read_weights, load_into_a_network, read_progress)),
    "onnx": Kind(make_onnx, (read_onnx,), (run_onnx,)),
    "pgdl": Kind(make_keras, (open_pgdl,)),
    "pictures": Kind(make_pictures, (read_classes, read_folder, read_csv, read_frames)),
    "videos": Kind(make_videos, (read_videos,)),
    "arrays": Kind(make_arrays, (read_labelled, read_images)),
    "rdms": Kind(make_rdms, (read_rdms,)),
    "reviews": Kind(make_reviews, (read_reviews,)),
    "hugging-face": Kind(make_texts, (), (load_checkpoint, read_texts)),
}
