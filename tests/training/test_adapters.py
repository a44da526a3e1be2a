"""Live measures in the trainers of Lightning and Hugging Face: called after every epoch, and without any influence."""

from __future__ import annotations

import logging
import math
import os
import pickle
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from assay import AssayError
from assay.core.determinism import seeded
from assay.training import (
    HuggingFaceCallback,
    LightningCallback,
    LiveLoss,
    LiveMeasure,
    StopWhenConverged,
    Together,
    adapters,
)

X = torch.rand(24, 6, generator=torch.Generator().manual_seed(0))
Y = (X.sum(1) > 3).long()


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))

    def forward(self, x, labels=None):
        logits = self.network(x)
        return {"logits": logits} if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def rude(module: nn.Module) -> float:
    """A measure that draws, changes modes and leaves gradients behind."""
    module.train()
    torch.rand(5)
    module(X).square().mean().backward()
    return float(torch.rand(()))


def scorer() -> Scorer:
    with seeded(0):
        return Scorer()


def require(package: str):
    if os.environ.get("ASSAY_REQUIRE_ALL"):
        __import__(package)
        return sys.modules[package]
    return pytest.importorskip(package)


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in module.state_dict().values()]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


# -- Lightning ------------------------------------------------------------------------------------------------------


def fit_by_lightning(tmp_path, callback, epochs=4, **settings):
    lightning = require("lightning.pytorch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.scorer = scorer()
            self.losses: list[float] = []

        def training_step(self, batch, _):
            loss = self.scorer(*batch)["loss"]
            self.losses.append(float(loss))
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    module = Module()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet |= {"enable_checkpointing": False, "accelerator": "cpu", "default_root_dir": tmp_path}
    adapters = [] if callback is None else [LightningCallback(callback, part="scorer.network")]
    with seeded(1):
        trainer = lightning.Trainer(max_epochs=epochs, callbacks=adapters, **quiet, **settings)
        trainer.fit(module, DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True))
    return module, trainer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Lightning's own: few workers, few steps, names that torch is to give up
def test_lightning_calls_after_every_epoch_and_trains_the_same_weights(tmp_path):
    plain, _ = fit_by_lightning(tmp_path, None)
    live, loss = LiveMeasure(rude, "rude", every=2), LiveLoss(every=1)
    watched, _ = fit_by_lightning(tmp_path, Together(live, loss))
    assert same(weights(plain), weights(watched)) and plain.losses == watched.losses
    assert live.epochs == [2, 4] and live.table["step"].tolist() == [6, 12]
    assert loss.values == pytest.approx([sum(watched.losses[i : i + 3]) / 3 for i in (0, 3, 6, 9)], rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lightning_is_stopped_and_its_loss_is_that_of_its_steps(tmp_path):
    loss = LiveLoss(every=1)
    stop = StopWhenConverged(loss, window=2, sd=10)
    module, trainer = fit_by_lightning(tmp_path, stop, epochs=9, accumulate_grad_batches=3)
    assert trainer.current_epoch == 3 and stop.stopped_at == 3
    assert loss.values[0] == pytest.approx(sum(module.losses[:3]) / 3, rel=1e-6)
    assert loss.table["step"].tolist() == [1, 2, 3]


# -- Hugging Face ---------------------------------------------------------------------------------------------------


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i):
        return {"x": X[i], "labels": Y[i]}


def fit_by_hugging_face(tmp_path, callback, epochs=4, **settings):
    transformers = require("transformers")
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    arguments = transformers.TrainingArguments(
        str(tmp_path), num_train_epochs=epochs, per_device_train_batch_size=8, seed=1, **quiet, **settings
    )
    adapters = [] if callback is None else [HuggingFaceCallback(callback, part="network")]
    model = scorer()
    with seeded(1):
        trainer = transformers.Trainer(model, arguments, train_dataset=Rows(), callbacks=adapters)
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return model, trainer


@pytest.mark.hf
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("logging_steps", [500, 2, 3])  # never in an epoch, within one, and at its very end
def test_hugging_face_calls_after_every_epoch_and_trains_the_same_weights(tmp_path, logging_steps):
    plain, trainer = fit_by_hugging_face(tmp_path, None, logging_steps=1)
    steps = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    live, loss = LiveMeasure(rude, "rude", every=2), LiveLoss(every=1)
    watched, _ = fit_by_hugging_face(tmp_path, Together(live, loss), logging_steps=logging_steps)
    assert same(weights(plain), weights(watched))
    assert live.epochs == [2, 4] and live.table["step"].tolist() == [6, 12]
    # The trainer may round what it logs to four digits.
    assert loss.values == pytest.approx([sum(steps[i : i + 3]) / 3 for i in (0, 3, 6, 9)], abs=1e-4)


@pytest.mark.hf
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_is_stopped(tmp_path):
    stop = StopWhenConverged(LiveLoss(every=1), window=2, sd=10)
    _, trainer = fit_by_hugging_face(tmp_path, stop, epochs=9)
    assert trainer.state.global_step == 9 and stop.stopped_at == 3 and not math.isnan(stop.live.values[0])


# -- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.hf
def test_adapters_can_be_sent_to_processes_and_name_an_unknown_part(tmp_path):
    require("transformers")
    adapter = pickle.loads(pickle.dumps(HuggingFaceCallback(LiveLoss(), part="netwrok")))
    assert adapter.part == "netwrok"
    with pytest.raises(AssayError, match="part='netwrok' is no submodule of Scorer; did you mean 'network'"):
        adapter.on_train_begin(None, None, None, model=scorer())


@pytest.mark.parametrize(
    ("adapter", "package"), [(LightningCallback, "lightning"), (HuggingFaceCallback, "transformers")]
)
def test_a_missing_package_is_one_sentence(monkeypatch, adapter, package):
    for name in [package, *(known for known in sys.modules if known.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)  # what Python takes for "not there"
    adapters._lightning_class.cache_clear()
    adapters._hugging_face_class.cache_clear()
    with pytest.raises(AssayError, match=rf"needs {package}[.\w]*: pip install 'assay\[(lightning|hf)\]'"):
        adapter(LiveLoss())
