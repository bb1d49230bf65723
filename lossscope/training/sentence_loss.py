"""A loss of lossscope in the form of sentence-transformers: loss(sentence_features, labels)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from lossscope.errors import InputError


class SentenceLoss(nn.Module):
    """L of the embeddings of columns of texts; `Loss.for_sentence_transformers` builds it.

    Columns are (query, positive) or (query, positive, negative, ...); a single column is of texts with class labels.

    Args:
        model: a SentenceTransformer.
        loss: `lossscope.Loss`, of the embeddings.
    """

    def __init__(self, model: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Embed each column, and return L, ().

        Args:
            sentence_features: tokens of each column.
            labels: of the classes of a single column.

        Raises:
            InputError: labels of pairs, which no objective reads, or a single column without labels.
        """
        columns = [self.model(features)["sentence_embedding"] for features in sentence_features]
        return self.compute_loss_from_embeddings(columns, labels)

    def compute_loss_from_embeddings(self, embeddings: Sequence[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return L, (), of the embeddings of each column."""
        if len(embeddings) == 1:
            if labels is None:
                raise InputError(
                    "a data set of one column must have labels of classes; got none. Give it a second column, of texts "
                    "that match the first"
                )
            return cast(Tensor, self.loss(embeddings[0], labels))
        if labels is not None:
            raise InputError(
                "pairs of texts must come without labels, since text i of the second column matches text i of the "
                "first; got labels. Remove the column: dataset.remove_columns('label'), or 'score'"
            )
        return cast(Tensor, self.loss(embeddings[0], torch.cat(list(embeddings[1:]))))

    def get_config_dict(self) -> dict[str, Any]:
        """Return what a model card says of the loss."""
        return {"objective": self.loss.extra_repr()}
