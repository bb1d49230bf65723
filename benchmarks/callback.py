"""How much does the callback add to a step of a SentenceTransformerTrainer? A watched step against a step of MiniLM.

The model has the size of all-MiniLM-L6 (6 layers of width 384, random weights). The batch has 32 queries and 32
documents of 64 tokens, and mined negatives if the loss takes any. Times are CPU time of one thread. The added time is
measured on the loss alone, called on embeddings of the batch, with and without the callback in turns: steps are too
long for a difference of two. The ratio is the cost of watching each step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from measuring import machine, medians, table
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from lossscope.live.callbacks import SentenceTransformersHooks
from lossscope.live.monitor import LossScope

BATCH, TOKENS, WIDTH, LAYERS, HEADS, WORDS = 32, 64, 384, 6, 12, 30_522
SYMMETRIC: dict[str, Any] = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
HARD: dict[str, Any] = {"hardness_mode": "hard_negatives", "hardness_strength": 5.0}
CASES: dict[str, tuple[Callable[[Any], nn.Module], int]] = {  # the loss, and the number of its columns of texts
    "MultipleNegativesRanking": (lambda model: losses.MultipleNegativesRankingLoss(model), 2),
    "the same, symmetric": (lambda model: losses.MultipleNegativesRankingLoss(model, **SYMMETRIC), 2),
    "the same, 3 mined negatives": (lambda model: losses.MultipleNegativesRankingLoss(model), 5),
    "the same, hardness weights": (lambda model: losses.MultipleNegativesRankingLoss(model, **HARD), 5),
    "CoSENT": (lambda model: losses.CoSENTLoss(model), 2),
    "Contrastive": (lambda model: losses.ContrastiveLoss(model), 2),
}


class Encoder(nn.Module):
    """BERT of MiniLM's size and the mean of its tokens, as a loss calls a model."""

    def __init__(self) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=4 * WIDTH,
        )  # fmt: skip
        self.bert = BertModel(config)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the embeddings; take those in the features, if there are any."""
        if "sentence_embedding" in features:
            return features
        tokens = self.bert(features["input_ids"], features["attention_mask"]).last_hidden_state
        return {"sentence_embedding": tokens.mean(1)}


def batch_of(columns: int, device: str) -> list[dict[str, Tensor]]:
    """Return token ids of random texts, all of full length."""
    ids = torch.randint(1000, WORDS, (columns, BATCH, TOKENS), device=device)
    return [{"input_ids": column, "attention_mask": torch.ones_like(column)} for column in ids]


def functions(make: Callable[[Any], nn.Module], columns: int, device: str) -> list[Callable[[], object]]:
    """Return a training step, the loss on embeddings, and the same loss watched."""
    model = Encoder().train().to(device)
    loss, bare, watched = make(model), make(model), make(model)
    labels = (torch.arange(BATCH, device=device) % 2).float()  # of pairs; other losses ignore them
    batch, vectors = batch_of(columns, device), torch.randn(columns, BATCH, WIDTH, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-5)
    embedded = [{"sentence_embedding": column.clone().requires_grad_()} for column in vectors]
    hooks, state = SentenceTransformersHooks(LossScope(), watched), SimpleNamespace(global_step=0)
    hooks.on_train_begin(None, state, None)

    def step() -> None:
        loss([dict(column) for column in batch], labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    def watched_loss() -> None:
        hooks.on_step_begin(None, state, None)
        watched(embedded, labels)
        hooks.on_step_end(None, state, None)

    return [step, lambda: bare(embedded, labels), watched_loss]


def main() -> None:
    """Print the time of a step, of the loss with and without the callback, and the added share of a step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for name, (make, columns) in CASES.items():
        step, *losses_alone = functions(make, columns, device)
        bare, watched = medians(losses_alone, 101, device)
        (step_time,) = medians([step], 5, device)
        added = watched - bare
        rows.append([name, f"{1000 * step_time:.0f} ms", f"{1000 * added:.2f} ms", f"{100 * added / step_time:.2f} %"])
    print(f"batch of {BATCH}, {TOKENS} tokens; {machine(device)}")
    print(table(["loss", "step", "watched adds", "of the step"], rows))


if __name__ == "__main__":
    main()
