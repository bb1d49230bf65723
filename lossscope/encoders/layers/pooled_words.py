"""The text towers of VSE-infinity: words read by a bidirectional GRU or by BERT, pooled by GPO."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

from .gpo import GPO
from .initialisation import build_embedding
from .scan_towers import gru_states
from .size_augmentation import perturb_words


@dataclass(frozen=True)
class MaskingIds:
    """The ids of a tokeniser that masking words needs."""

    mask_id: int  # id of the mask
    continuing: tuple[int, ...] = ()  # ids of parts that continue a word


class PooledGruWords(nn.Module):
    """GPO of the mean of both directions of GRU(words); the last id of the vocabulary is `<mask>`.

    Args:
        vocabulary_size: number of ids.
        words: width of a word vector.
        dim: joint width.
        word_init: word vectors start uniform in ±word_init.
        drop: probability that a word is masked, replaced or deleted in training.
        layers: number of GRUs, each of which reads the states of the one before.
    """

    def __init__(
        self, vocabulary_size: int, words: int, dim: int, word_init: float, drop: float, layers: int = 1
    ) -> None:
        super().__init__()
        self.size, self.drop = vocabulary_size, drop
        self.embed = build_embedding(vocabulary_size, words, word_init)
        self.rnn = nn.GRU(words, dim, layers, batch_first=True, bidirectional=True)
        self.gpool = GPO()

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        if self.training and self.drop:
            all_true = torch.ones_like(ids, dtype=torch.bool)
            ids, lengths = perturb_words(ids, lengths, all_true, ~all_true, self.size - 1, self.size, self.drop)
        pooled: Tensor = self.gpool(gru_states(self.rnn, self.embed(ids), lengths), lengths)
        return pooled


class PooledBertWords(nn.Module):
    """GPO of a linear map of BERT's last states, start and end included.

    The pooler exists for its name in files; nothing reads it, so it is not trained.

    Args:
        bert: a BertModel.
        width: of its states.
        size: number of ids.
        dim: joint width.
        drop: probability that a word is masked, replaced or deleted in training.
        masking_ids: ids that masking needs; None when the tokeniser is unknown, and then words cannot be dropped.
    """

    continuing: Tensor

    def __init__(
        self, bert: nn.Module, width: int, size: int, dim: int, drop: float, masking_ids: MaskingIds | None
    ) -> None:
        super().__init__()
        self.bert = bert
        self.bert.get_submodule("pooler").requires_grad_(False)
        self.linear = nn.Linear(width, dim)
        self.gpool = GPO()
        self.size, self.drop, self.masking_ids = size, drop, masking_ids
        continues = torch.zeros(size, dtype=torch.bool)
        if masking_ids is not None:
            continues[list(masking_ids.continuing)] = True
        self.register_buffer("continuing", continues, persistent=False)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        if self.training and self.drop:
            ids, lengths = self._perturb(ids, lengths)
        present = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        last = self.bert(input_ids=ids, attention_mask=present.long()).last_hidden_state
        pooled: Tensor = self.gpool(self.linear(last), lengths)
        return pooled

    def _perturb(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return ids and lengths after masking. Raises InputError without the ids that it needs."""
        if self.masking_ids is None:
            raise InputError(
                "a model that drops words in training must have a tokeniser, which marks where words begin; got none. "
                "Name its folder in the encoder's spec, tokeniser=FOLDER, or train with drop=0"
            )
        positions = torch.arange(ids.shape[1], device=ids.device)
        ends = (positions == 0) | (positions == lengths.to(ids.device)[:, None] - 1)
        return perturb_words(ids, lengths, ~self.continuing[ids], ends, self.masking_ids.mask_id, self.size, self.drop)
