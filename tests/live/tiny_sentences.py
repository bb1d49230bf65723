"""Build a sentence-transformers model of two small layers with its vocabulary, and texts for it, without a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = "a the red green small large dog cat bird house tree runs sleeps sings near under of what where does it".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WIDTH = 32


def sentence_model(folder: Path, seed: int = 0, width: int = WIDTH, dropout: float = 0.1) -> Any:
    """Return a SentenceTransformer: a BERT of two layers from a config, with mean pooling.

    Args:
        folder: receives its files.
        seed: of its weights.
        width: of the embeddings.
        dropout: of BERT, which draws random numbers in training.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules.transformer import Transformer
    from sentence_transformers.sentence_transformer.modules.pooling import Pooling
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    words = folder / "vocab.txt"
    words.write_text("\n".join([*SPECIAL, *WORDS]), encoding="utf-8")
    BertTokenizerFast(vocab=str(words)).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS), hidden_size=width, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=2 * width, max_position_embeddings=16, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    torch.manual_seed(seed)
    BertModel(config).save_pretrained(folder)
    return SentenceTransformer(modules=[Transformer(str(folder)), Pooling(width, "mean")], device="cpu")


def texts(n: int, seed: int = 0) -> list[str]:
    """Return n short texts in the model's words."""
    import random

    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 7))) for _ in range(n)]
