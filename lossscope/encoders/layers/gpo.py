"""Generalised pooling: one vector for a set, by weights on its sorted values that are learnt for each set size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

TEMPERATURE = 0.1
_INITIAL_CODES = 64  # position codes of a new module


class GPO(nn.Module):
    """pooled_c = Σ_k θ_k · (k-th largest of channel c), θ = softmax(w · BiGRU(position codes) / 0.1).

    θ sums to 1 and depends on the size of the set alone, so it is computed once for each size in a batch. With w = 0
    the pooling is the mean; a set of one vector is returned unchanged; the order in a set does not matter. The position
    codes stay on the model's device, as many as the longest set so far, and are not in its state dict.
    Source: Chen et al. 2021 (VSE-infinity), section 3.

    Args:
        width: of the position codes and of the GRU, whose directions are averaged (32 in the original).
    """

    codes: Tensor

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(width, 1, bias=False)
        self.register_buffer("codes", position_codes(_INITIAL_CODES, width), persistent=False)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """(n, L, d) sets, present vectors first, and (n,) sizes on the CPU, all at least 1 -> (n, d)."""
        padding = padding_mask(lengths, features)
        largest = features.masked_fill(padding, -torch.inf).sort(1, descending=True).values
        weights = self.weights(lengths, features.shape[1])
        return (largest.masked_fill(padding, 0) * weights[:, :, None]).sum(1)

    def weights(self, lengths: Tensor, longest: int) -> Tensor:
        """Return θ of each size: (n,) on the CPU -> (n, longest); 0 beyond a size."""
        sizes, inverse = torch.unique(lengths, return_inverse=True)
        codes = self._codes(int(sizes[-1]))
        packed = pack_padded_sequence(codes.expand(len(sizes), -1, -1), sizes, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=longest)
        scores = self.linear(states.view(len(sizes), longest, 2, self.width).mean(2)) / TEMPERATURE
        theta = scores.masked_fill(padding_mask(sizes, scores), -torch.inf).softmax(1).squeeze(2)
        return theta[inverse.to(theta.device)]  # type: ignore[no-any-return]

    def _codes(self, longest: int) -> Tensor:
        """Return (longest, width) position codes; the module's codes grow when they are too few."""
        if longest > len(self.codes):
            with torch.inference_mode(False):  # so that training can use the tensor later
                self.codes = position_codes(longest, self.width).to(self.codes)
        return self.codes[:longest].to(self.linear.weight.dtype)


def position_codes(length: int, width: int) -> Tensor:
    """PE[p, 2i] = sin(p · 10000^(−2i/width)), PE[p, 2i + 1] = cos of the same; (length, width)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


def padding_mask(lengths: Tensor, like: Tensor) -> Tensor:
    """Return (n, L, 1) bool, where `like` (n, L, d) is padding, from (n,) lengths."""
    positions = torch.arange(like.shape[1], device=like.device)
    return (positions >= lengths.to(like.device)[:, None])[:, :, None]
