"""Losses of sentence-transformers on queries, documents and mined negatives, plain or cached."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..library_options import construct, keyword_arguments, load_class
from .base import LibraryTrainer, Step

_LIBRARY, _MODULE = "sentence-transformers", "sentence_transformers.sentence_transformer.losses"
_KEY = "embedding"  # of the features that hold what the model returns


class _Identity(nn.Module):
    """A model whose sentence embeddings are in its features; losses with a guide want a tokeniser of it."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast

        super().__init__()
        self.max_seq_length = 1
        words = Tokenizer(models.WordLevel({"word": 0}, unk_token="word"))
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)

    def forward(self, features: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        return {**features, "sentence_embedding": features[_KEY]}


@dataclass(frozen=True)
class SentenceTransformers(LibraryTrainer):
    """A loss that is called as loss(sentence_features, labels), with a model that returns the embeddings it is given.

    A guide, where the loss has one, returns the same embeddings as the model. Source: sentence-transformers 6.2.
    """

    loss: str = "MultipleNegativesRankingLoss"  # its class
    gather: bool = True  # gather_across_devices, where it has this
    options: str = ""  # further arguments of the loss, as in "scale=50 directions=query_to_doc+doc_to_query"

    def __post_init__(self) -> None:
        keyword_arguments(self.options)

    @property
    def takes_negatives(self) -> bool:
        """Whether mined negatives may be given."""
        return self.loss != "MegaBatchMarginLoss"

    @property
    def needs_negatives(self) -> bool:
        """Whether it is a loss of triplets."""
        return self.loss == "TripletLoss"

    @property
    def is_chunked(self) -> bool:
        """Whether it embeds in mini-batches."""
        return "mini_batch_size" in inspect.signature(self._class.__init__).parameters

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return the loss as a step; see Trainer.

        Raises:
            InputError: sentence-transformers is not installed.
            SpecError: the loss does not take an option.
        """
        given = keyword_arguments(self.options)
        optional = {"gather_across_devices": self.gather, "guide": _model()}
        loss = construct(self._class, {"model": _model(), "mini_batch_size": chunk_size, **given}, optional)

        def step(queries: Tensor, candidates: Tensor, negatives: Tensor | None = None) -> Tensor:
            columns = [queries, candidates]
            if negatives is not None:
                columns += negatives.unbind(1) if negatives.ndim == 3 else [negatives]
            labels = torch.zeros(len(queries), dtype=torch.int64, device=queries.device)
            value: Tensor = loss([{_KEY: column} for column in columns], labels)
            return value

        return step

    @property
    def _class(self) -> Any:
        return load_class(_MODULE, self.loss, _LIBRARY)


def _model() -> Any:
    model = load_class("sentence_transformers", "SentenceTransformer", _LIBRARY)
    return model(modules=[_Identity()], device="cpu")
