"""Make embeddings on which a softmax counts as many negatives as with real models: 1, 15 or 100 a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import normalize

from lossscope.core.embedded import SplitEmbeddings


@dataclass(frozen=True)
class Clusters:
    """t, v = unit(c + noise · g), |g| ≈ 1, with c the centre of a cluster: a random direction in a subspace."""

    rank: int  # dimensions of the subspace; with fewer, clusters are nearer
    items: int  # pairs of a cluster
    noise: float  # length of the random vector

    def source(self, n: int, d: int, seed: int = 0) -> SplitEmbeddings:
        """Return n pairs in random order.

        Args:
            n: number of pairs.
            d: length of a vector.
            seed: of the random generator.
        """
        generator = torch.Generator().manual_seed(seed)
        basis = torch.linalg.qr(torch.randn(d, self.rank, generator=generator))[0]
        number = max(round(n / self.items), 1)
        centres = normalize(torch.randn(number, self.rank, generator=generator) @ basis.T, dim=1)
        cluster = (torch.arange(n) % number)[torch.randperm(n, generator=generator)]
        noise = (self.noise / d**0.5 * torch.randn(n, d, generator=generator) for _ in "vt")
        v, t = (normalize(centres[cluster] + g, dim=1) for g in noise)
        ids = [str(i) for i in range(n)]
        return SplitEmbeddings("clusters", v, t, None, np.arange(n), ids, ids, "0" * 64)


# count -> clusters with about as many weights of NT-Xent at tau 0.05 above 0.01, at B = 8192 and at 32,768
BY_COUNT = {1: Clusters(24, 1, 0.7), 15: Clusters(24, 16, 0.7), 100: Clusters(16, 98, 0.1)}
