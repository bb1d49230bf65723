"""Captions from regions: the encoder-decoder whose loss VSRN adds while it trains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

HIDDEN = 512
DROPOUT = 0.2


class Captioning(nn.Module):
    """Loss = −Σ log p(word_t | words before, regions) / captions, teacher forced.

    Encoder: Linear(d -> 512), dropout, GRU over regions; its last state starts the decoder. Decoder, a word at a
    time: additive attention on the encoder's states by its own, GRU on [word, context], Linear(512 -> V).
    words: width of its own word vectors. longest: ids of a caption, `<start>` included, the rest cut off before the
    last, which stays `<end>`; one padding id after it is learnt too. Source: Li et al. 2019 (VSRN), section 3.4; the
    parts are those of Venugopalan et al. 2015.
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
        targets, learnt = self.targets(ids, lengths)
        states, last = self.encoder(self.dropout(self.project(regions)))
        keys, state = self._keys(states), last.squeeze(0)
        predicted = []
        for word in self.dropout(self.embed(targets[:, :-1])).unbind(1):
            context = self.dropout(self._context(keys, states, state))
            state = self.decoder(torch.cat([word, context], 1), state)
            predicted.append(state)
        logits = self.out(torch.stack(predicted, 1)).flatten(0, 1)  # of rows, which has a deterministic kernel
        losses = nn.functional.cross_entropy(logits, targets[:, 1:].flatten(), reduction="none")
        return (losses * learnt[:, 1:].flatten()).sum() / len(ids)

    def targets(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(m, T) ids that are cut and have one padding id behind them, and (m, T) bool which of them count."""
        kept = lengths.clamp(max=self.longest)
        ends = ids.gather(1, (lengths - 1).to(ids.device)[:, None])
        steps = min(int(kept.max()) + 1, self.longest)
        cut = nn.functional.pad(ids, (0, 1))[:, :steps].clone()
        place = torch.arange(steps, device=ids.device)
        size = kept.to(ids.device)[:, None]
        cut = torch.where(place == size - 1, ends, cut) * (place < size)
        return cut, place <= size

    def _keys(self, states: Tensor) -> Tensor:
        """The part of the attention's first layer that reads the encoder, once for all steps."""
        return states @ self.attend.weight[:, :HIDDEN].T + self.attend.bias

    def _context(self, keys: Tensor, states: Tensor, state: Tensor) -> Tensor:
        """Σ_r a_r · states_r, a = softmax(w · tanh(W [states_r, state] + b)), (m, 512)."""
        asked = state @ self.attend.weight[:, HIDDEN:].T
        shares = self.weigh((keys + asked[:, None, :]).tanh()).softmax(1)
        return (shares * states).sum(1)  # type: ignore[no-any-return]
