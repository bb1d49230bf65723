"""The text towers of VSE-infinity: words as a bidirectional GRU or BERT reads them, pooled by GPO."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

from .gpo import GPO
from .initialisation import embedding
from .scan_towers import states
from .size_augmentation import perturbed_words


@dataclass(frozen=True)
class Marks:
    """What word dropping must know of a tokeniser: the id of the mask, and the ids of parts that go on with a word."""

    mask_id: int
    continuing: tuple[int, ...] = ()


class GruWords(nn.Module):
    """GPO of the mean of both directions of GRU(words); the last id of the vocabulary is `<mask>`."""

    def __init__(self, vocabulary_size: int, words: int, dim: int, word_init: float, drop: float) -> None:
        super().__init__()
        self.size, self.drop = vocabulary_size, drop
        self.embed = embedding(vocabulary_size, words, word_init)
        self.rnn = nn.GRU(words, dim, batch_first=True, bidirectional=True)
        self.gpool = GPO()

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        if self.training and self.drop:
            each = torch.ones_like(ids, dtype=torch.bool)
            ids, lengths = perturbed_words(ids, lengths, each, ~each, self.size - 1, self.size, self.drop)
        pooled: Tensor = self.gpool(states(self.rnn, self.embed(ids), lengths), lengths)
        return pooled


class BertWords(nn.Module):
    """GPO of a linear map of BERT's last states, start and end included.

    marks: None when nothing is known of the tokeniser; then words can not be dropped. The pooler stays for its name
    in files; nothing reads it, so it does not train.
    """

    continuing: Tensor

    def __init__(self, bert: nn.Module, width: int, size: int, dim: int, drop: float, marks: Marks | None) -> None:
        super().__init__()
        self.bert = bert
        self.bert.get_submodule("pooler").requires_grad_(False)
        self.linear = nn.Linear(width, dim)
        self.gpool = GPO()
        self.size, self.drop, self.marks = size, drop, marks
        goes_on = torch.zeros(size, dtype=torch.bool)
        if marks is not None:
            goes_on[list(marks.continuing)] = True
        self.register_buffer("continuing", goes_on, persistent=False)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        if self.training and self.drop:
            ids, lengths = self._perturbed(ids, lengths)
        present = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        last = self.bert(input_ids=ids, attention_mask=present.long()).last_hidden_state
        pooled: Tensor = self.gpool(self.linear(last), lengths)
        return pooled

    def _perturbed(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        if self.marks is None:
            raise InputError(
                "dropping words in training needs to know where words begin: name the tokeniser's folder in the "
                "encoder's spec, tokeniser=FOLDER, or train with drop=0"
            )
        place = torch.arange(ids.shape[1], device=ids.device)
        ends = (place == 0) | (place == lengths.to(ids.device)[:, None] - 1)
        return perturbed_words(ids, lengths, ~self.continuing[ids], ends, self.marks.mask_id, self.size, self.drop)
