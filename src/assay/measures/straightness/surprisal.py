"""Surprisal: how unexpected the tokens of a text are to a language model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor, first_tensor
from assay.core.errors import AssayError
from assay.measures.base import require_batch_size
from assay.stimuli.texts import as_texts
from assay.subject.as_subject import as_subject


def surprisal(logits: Tensor | np.ndarray[Any, Any], ids: Tensor | np.ndarray[Any, Any]) -> Tensor:
    """Surprisal, in bits, of every token of a text after the first, given the tokens before it.

    s_t = −log₂ p(token_t | token_1 … token_{t−1}), with p the softmax of the scores after token t − 1, in float64.

    Args:
        logits: Scores of the vocabulary after each token: … × T × vocabulary.
        ids: The tokens: … × T.

    Example:
        >>> surprisal(torch.zeros(3, 8), torch.tensor([1, 5, 2]))      # of eight tokens that are equally likely
        tensor([3., 3.], dtype=torch.float64)
    """
    scores, tokens = as_tensor(logits).double(), as_tensor(ids)
    if scores.dim() < 2 or scores.shape[:-1] != tokens.shape:
        raise AssayError(
            f"logits of shape {tuple(scores.shape)} do not fit ids of shape {tuple(tokens.shape)}: give scores of the "
            "vocabulary for each token"
        )
    if tokens.numel() and int(tokens.max()) >= scores.shape[-1]:
        raise AssayError(
            f"ids has the token {int(tokens.max())}, and logits are scores of {scores.shape[-1]} tokens: give a "
            "network whose output are scores of its whole vocabulary, and the ids of its own tokenizer"
        )
    log_p = scores[..., :-1, :].log_softmax(-1)
    return -log_p.gather(-1, tokens[..., 1:, None].to(log_p.device))[..., 0] / math.log(2)


def text_surprisal(network: Any, texts: Any, batch_size: int = 32) -> pd.DataFrame:
    """Mean surprisal of each text to a causal language model, to set beside its curvature.

    Args:
        network: A causal language model, whose output are scores of the next token: a `Subject` or a bare module.
        texts: Texts of two tokens or more, in any form that `assay.stimuli.as_texts` takes.
        batch_size: Number of texts of equal length per pass.

    Returns:
        One row per text: ``sequence``, ``condition``, ``surprisal_bits`` (the mean over tokens after the first) and
        their number ``n``.
    """
    require_batch_size(batch_size)
    subject, shown_texts = as_subject(network), as_texts(texts)
    means: dict[int, float] = {}
    for ids, indices in shown_texts.by_length(batch_size):
        if ids.shape[1] < 2:
            name = shown_texts.texts[indices[0]].name
            raise AssayError(f"text {name!r} has 1 token: surprisal needs at least 2")
        bits = surprisal(first_tensor(subject(torch.from_numpy(ids))), ids).mean(-1)
        if not bits.isfinite().all():
            name = shown_texts.texts[indices[int((~bits.isfinite()).nonzero()[0])]].name
            raise AssayError(
                f"{subject.name!r} gives scores for text {name!r} that are not finite, or rule a token out"
            )
        means.update(zip(indices.tolist(), bits.tolist(), strict=True))
    rows = [
        {
            "sequence": text.name,
            "condition": text.condition,
            "surprisal_bits": means[i],
            "n": text.count() - 1,
        }
        for i, text in enumerate(shown_texts.texts)
    ]
    return pd.DataFrame(rows)
