"""Does a language model straighten text? One that is trained here, beside itself untrained, layer by layer.

A small GPT-2 is trained on reviews of airport lounges to predict the next token. Its curvature, and that of its twin
with the weights it began with, is measured on reviews that neither was shown, and on the same tokens shuffled.

python language.py            # writes runs/language/report.html, tables/language.csv, tables/language.md and the figure
"""

from __future__ import annotations

import argparse
import copy
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import stats
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel

import assay
from assay.stats.correlation import spearman
from assay.stimuli import Texts, as_texts

LOG = logging.getLogger(__name__)
HERE = Path(__file__).parent
REVIEWS = HERE / "../../../shared/data/reviews/skytrax_lounge.csv"
HELD_OUT = 300  # reviews that no network is trained on
BLOCK = 64  # tokens in a row of training
VOCABULARY = 2000
LAYERS = ("transformer.drop", "transformer.h.?", "transformer.ln_f")
NAMES = {"transformer.drop": "embedding", "transformer.ln_f": "last normalisation"}


def reviews(path: Path) -> tuple[list[str], list[str]]:
    """Reviews to train on, and reviews that are held out."""
    texts = pd.read_csv(path)["content"].dropna().sample(frac=1, random_state=0).str.strip().tolist()
    return texts[HELD_OUT:], texts[:HELD_OUT]


def tokenizer_of(texts: list[str]) -> ByteLevelBPETokenizer:
    """Tokens learned from the reviews to train on."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=VOCABULARY, special_tokens=["<end>"], show_progress=False)
    return tokenizer


def new_network(seed: int) -> GPT2LMHeadModel:
    """A GPT-2 of six blocks, with random weights."""
    torch.manual_seed(seed)
    sizes = {"n_positions": BLOCK, "n_embd": 96, "n_layer": 6, "n_head": 4}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **sizes, **dropout, **ends)).eval()


def train(network: GPT2LMHeadModel, tokens: torch.Tensor, epochs: int, seed: int) -> None:
    """Train to predict the next token: AdamW, 32 blocks at a time, a learning rate that rises and falls."""
    generator = torch.Generator().manual_seed(seed)
    steps = epochs * (len(tokens) // BLOCK // 32)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.1, betas=(0.9, 0.95))
    warm_up = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm_up, (1 + np.cos(np.pi * step / steps)) / 2)
    )
    network.train()
    for step in range(steps):
        starts = torch.randint(len(tokens) - BLOCK, (32,), generator=generator)
        batch = torch.stack([tokens[start : start + BLOCK] for start in starts])
        loss = network(batch, labels=batch).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            LOG.info("step %d of %d: %.2f bits per token", step, steps, loss.item() / np.log(2))
    network.eval()


def texts_shown(held_out: list[str], tokenizer: ByteLevelBPETokenizer, length: int) -> Texts:
    """The first tokens of held-out reviews that are long enough, and the same tokens in random order."""
    rows = [ids[:length] for ids in (tokenizer.encode(text).ids for text in held_out) if len(ids) >= length]
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(row) for row in rows]
    source = "reviews of airport lounges, held out"
    return as_texts(rows, source=source) + as_texts(shuffled, condition="shuffled", source="the same, shuffled")


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t."""
    mean, error = values.mean(), stats.sem(values)
    half = stats.t.ppf(0.975, len(values) - 1) * error
    return mean, mean - half, mean + half


def by_layer(table: pd.DataFrame, bits: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Curvature of each layer, trained and untrained, their paired differences, and how it goes with surprisal."""
    table = table[table["status"] == "ok"]
    wide = table.pivot_table(index=["condition", "sequence"], columns=["subject", "order"], values="curvature_deg")
    names = table.drop_duplicates("order").set_index("order")["layer"]
    rows = []
    for condition, own in wide.groupby(level=0):
        for order, layer in names.sort_index().items():
            row: dict[str, object] = {
                "condition": condition,
                "layer": NAMES.get(layer, layer.removeprefix("transformer.")),
            }
            for subject in ("untrained", "trained"):
                row |= dict(zip(_columns(subject), mean_interval(own[subject, order].to_numpy()), strict=True))
            paired = (own["trained", order] - own["untrained", order]).to_numpy()
            row |= dict(zip(_columns("trained − untrained"), mean_interval(paired), strict=True))
            for subject in ("untrained", "trained"):
                change = (own[subject, order] - own[subject, 1]).to_numpy()  # 1 is the embedding
                row |= dict(zip(_columns(f"{subject}, from embedding"), mean_interval(change), strict=True))
                surprisal = bits[subject].set_index(["condition", "sequence"])["surprisal_bits"][own.index]
                row[f"{subject}, ρ with surprisal"] = spearman(own[subject, order].to_numpy(), surprisal.to_numpy())
            rows.append(row | {"n": len(own)})
    return pd.DataFrame(rows)


def _columns(name: str) -> tuple[str, str, str]:
    return name, f"{name}: low", f"{name}: high"


def markdown(table: pd.DataFrame) -> str:
    """The natural texts and the shuffled ones as tables in Markdown."""
    lines = []
    for condition, rows in table.groupby("condition", sort=False):
        said = ["untrained", "trained", "trained − untrained", "trained, from embedding"]
        lines += [
            f"\n{condition} texts, n = {rows['n'].iloc[0]}\n",
            f"| layer | {' | '.join(said)} | ρ with surprisal |",
        ]
        lines.append("|---" * (len(said) + 2) + "|")
        for row in rows.to_dict("records"):
            cells = ["{:.1f}° ({:.1f} to {:.1f})".format(*(row[c] for c in _columns(name))) for name in said]
            rho = row["trained, ρ with surprisal"]
            cells.append("" if np.isnan(rho) else f"{rho:.2f}")
            lines.append(f"| {row['layer']} | {' | '.join(cells)} |".replace("-", "−"))
    return "\n".join(lines).strip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=Path, default=REVIEWS)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--length", type=int, default=40, help="tokens of each text that is shown")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    training, held_out = reviews(options.reviews)
    tokenizer = tokenizer_of(training)
    tokens = torch.tensor([token for text in training for token in [*tokenizer.encode(text).ids, 0]])
    untrained = new_network(seed=0)
    trained = copy.deepcopy(untrained)
    train(trained, tokens, options.epochs, seed=0)

    texts = texts_shown(held_out, tokenizer, options.length)
    networks = {"untrained": untrained, "trained": trained}
    run = assay.evaluate(networks, assay.Straightness(texts, layers=LAYERS), options.out / "runs/language")
    run.report()
    bits = {name: assay.text_surprisal(network, texts) for name, network in networks.items()}
    table = by_layer(run.table("straightness"), bits)
    for folder in ("tables", "figures"):
        (options.out / folder).mkdir(parents=True, exist_ok=True)
    table.round(4).to_csv(options.out / "tables/language.csv", index=False)
    (options.out / "tables/language.md").write_text(markdown(table))
    run.plot("straightness").save(options.out / "figures/language.png")
    LOG.info("%d tokens to train on; %s", len(tokens), texts.description)
    for name, found in bits.items():
        for condition, rows in found.groupby("condition"):
            LOG.info("%s, %s: %.2f bits per token", name, condition, rows["surprisal_bits"].mean())
    LOG.info("%s", markdown(table))


if __name__ == "__main__":
    main()
