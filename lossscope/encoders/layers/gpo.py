"""Generalised pooling: a set of vectors becomes one by weights on their sorted values, learnt per size of the set."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

TEMPERATURE = 0.1
_CODES = 64  # positions that a new module has codes of


class GPO(nn.Module):
    """pooled_c = Σ_k θ_k · (k-th largest of channel c), θ = softmax(w · BiGRU(position codes) / 0.1).

    θ sums to 1 and depends on the length alone, so it is computed once for each length of a batch. With w = 0 the
    pooling is the mean; a set of one is left as it is; the order of a set does not matter. The position codes stay on
    the model's device, as many as the longest set so far, and are not in its state.
    width: of the position codes and of the GRU, whose directions are averaged (the original's 32).
    Source: Chen et al. 2021 (VSE-infinity), section 3.
    """

    codes: Tensor

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(width, 1, bias=False)
        self.register_buffer("codes", position_codes(_CODES, width), persistent=False)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """(n, L, d) sets, the present first, (n,) sizes on the CPU, all at least 1 -> (n, d)."""
        absent = absent_of(lengths, features)
        largest = features.masked_fill(absent, -torch.inf).sort(1, descending=True).values
        weights = self.weights(lengths, features.shape[1])
        return (largest.masked_fill(absent, 0) * weights[:, :, None]).sum(1)

    def weights(self, lengths: Tensor, longest: int) -> Tensor:
        """θ of each size: (n,) on the CPU -> (n, longest); 0 beyond a size."""
        sizes, place = torch.unique(lengths, return_inverse=True)
        codes = self._codes(int(sizes[-1]))
        packed = pack_padded_sequence(codes.expand(len(sizes), -1, -1), sizes, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=longest)
        scores = self.linear(states.view(len(sizes), longest, 2, self.width).mean(2)) / TEMPERATURE
        theta = scores.masked_fill(absent_of(sizes, scores), -torch.inf).softmax(1).squeeze(2)
        return theta[place.to(theta.device)]  # type: ignore[no-any-return]

    def _codes(self, longest: int) -> Tensor:
        """(longest, width) position codes; those of the module grow when they are too few."""
        if longest > len(self.codes):
            with torch.inference_mode(False):  # a tensor that training can use later
                self.codes = position_codes(longest, self.width).to(self.codes)
        return self.codes[:longest].to(self.linear.weight.dtype)


def position_codes(length: int, width: int) -> Tensor:
    """PE[p, 2i] = sin(p · 10000^(−2i/width)), PE[p, 2i + 1] = cos of the same; (length, width)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


def absent_of(lengths: Tensor, like: Tensor) -> Tensor:
    """(n, L, 1) bool of what is padding in `like` (n, L, d), from (n,) lengths."""
    places = torch.arange(like.shape[1], device=like.device)
    return (places >= lengths.to(like.device)[:, None])[:, :, None]
