"""Does the caption branch use kernels that have a deterministic form on every device?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers.captioning import Captioning


def test_the_loss_is_taken_over_rows_of_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss over (m, V, T) has no deterministic kernel on CUDA; over (m T, V) it has one."""
    real, seen = torch.nn.functional.cross_entropy, []

    def watched(logits: Tensor, targets: Tensor, **options: Any) -> Tensor:
        seen.append((tuple(logits.shape), tuple(targets.shape)))
        return real(logits, targets, **options)

    monkeypatch.setattr("torch.nn.functional.cross_entropy", watched)
    torch.manual_seed(0)
    branch = Captioning(6, 10, 3, 60)
    branch(torch.randn(2, 5, 6), torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]), torch.tensor([4, 3]))
    assert seen == [((2 * 4, 10), (2 * 4,))]
