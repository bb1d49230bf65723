"""Captions from regions: the encoder-decoder whose loss VSRN adds in training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

HIDDEN = 512
DROPOUT = 0.2


class Captioning(nn.Module):
    """Loss = −Σ log p(word_t | words before, regions) / number of captions, with teacher forcing.

    Encoder: Linear(d -> 512), dropout, GRU over regions; its last state starts the decoder. Decoder, a word at a
    time: additive attention over the encoder's states, GRU on [word, context], Linear(512 -> V).
    Source: Li et al. 2019 (VSRN), section 3.4; the parts are those of Venugopalan et al. 2015.

    Args:
        dim: width of the regions.
        vocabulary_size: number of ids.
        words: width of its own word vectors.
        longest: ids of a caption, `<start>` included; longer ones lose those before the last, which stays `<end>`. One
            padding id after the caption is learnt too.
    """

    def __init__(self, dim: int, vocabulary_size: int, words: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.project = nn.Linear(dim, HIDDEN)
        self.encoder = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.embed = nn.Embedding(vocabulary_size, words)
        self.attend = nn.Linear(2 * HIDDEN, HIDDEN)
        self.weigh = nn.Linear(HIDDEN, 1, bias=False)
        self.decoder = nn.GRUCell(HIDDEN + words, HIDDEN)
        self.out = nn.Linear(HIDDEN, vocabulary_size)
        self.dropout = nn.Dropout(DROPOUT)
        for layer in (self.project, self.out):
            nn.init.xavier_normal_(layer.weight)

    def forward(self, regions: Tensor, ids: Tensor, lengths: Tensor) -> Tensor:
        """(m, R, d) regions of each caption's image, (m, L) ids, (m,) lengths -> ()."""
        targets, counted = self.targets(ids, lengths)
        states, last = self.encoder(self.dropout(self.project(regions)))
        keys, state = self._keys(states), last.squeeze(0)
        predicted = []
        for word in self.dropout(self.embed(targets[:, :-1])).unbind(1):
            context = self.dropout(self._context(keys, states, state))
            state = self.decoder(torch.cat([word, context], 1), state)
            predicted.append(state)
        logits = self.out(torch.stack(predicted, 1)).flatten(0, 1)  # as rows, for a deterministic kernel
        losses = nn.functional.cross_entropy(logits, targets[:, 1:].flatten(), reduction="none")
        return (losses * counted[:, 1:].flatten()).sum() / len(ids)

    def targets(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (m, T) ids, cut and followed by one padding id, and (m, T) bool, which of them count in the loss."""
        kept = lengths.clamp(max=self.longest)
        ends = ids.gather(1, (lengths - 1).to(ids.device)[:, None])
        steps = min(int(kept.max()) + 1, self.longest)
        cut = nn.functional.pad(ids, (0, 1))[:, :steps].clone()
        position = torch.arange(steps, device=ids.device)
        size = kept.to(ids.device)[:, None]
        cut = torch.where(position == size - 1, ends, cut) * (position < size)
        return cut, position <= size

    def _keys(self, states: Tensor) -> Tensor:
        """Return the part of the attention's first layer that reads the encoder's states, once for all steps."""
        return states @ self.attend.weight[:, :HIDDEN].T + self.attend.bias

    def _context(self, keys: Tensor, states: Tensor, state: Tensor) -> Tensor:
        """Return Σ_r a_r · states_r, a = softmax(w · tanh(W [states_r, state] + b)), (m, 512)."""
        query = state @ self.attend.weight[:, HIDDEN:].T
        a = self.weigh((keys + query[:, None, :]).tanh()).softmax(1)
        return (a * states).sum(1)  # type: ignore[no-any-return]
