"""InfoNCE subtracts the maximum of another row for stability.

A reader of the code compares the loss with log Σ exp over negatives − positive and gets another number: the code
subtracts the row maxima along the wrong axis, so that each negative is shifted by the maximum of another query.
"""

from __future__ import annotations

from pathlib import Path

from .base import Thread

THREAD = Thread(
    reference="AdaptiveMotorControlLab/CEBRA#48",
    mistake="The maxima have the shape (n,), and the code subtracts them from the columns.",
    mended="They have the shape (n, 1).",
    command="lossscope check ./criterions.py:infonce --processes 1",
    first="order of pairs",
)
_LOSS = """import torch


def infonce(S):
    n = len(S)
    S = S / 0.1
    positive, negative = S.diagonal(), S[~torch.eye(n, dtype=torch.bool)].reshape(n, n - 1)
    largest = negative.detach().amax(1)
    return ((negative - {largest}).logsumexp(1) - (positive - largest)).mean()
"""


def train(folder: Path, mended: bool) -> None:
    """Write criterions.py, the library's file."""
    largest = "largest[:, None]" if mended else "largest[: n - 1]"
    (folder / "criterions.py").write_text(_LOSS.replace("{largest}", largest), encoding="utf-8")
