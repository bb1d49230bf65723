"""Draw the picture that proves a finding: the curve and guessing, the spectrum and its null, the hubs, the pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from lossscope.core.facts import Missing
from lossscope.plots import cosines, hubness, loss_guess, spectrum
from lossscope.report.sections import Picture

from ..logs.base import TrainingLog
from ..parts.alignment import Alignment
from ..parts.curve import Curve
from ..parts.hubs import Hubs
from ..parts.patient import Patient
from ..parts.spectrum import Spectrum, null_values
from ..types import Finding

_NEGATIVES = 20_000  # drawn at most


def draw(finding: Finding, patient: Patient, suffix: str = "") -> Picture | None:
    """Return the picture that proves a finding; None where numbers alone prove it.

    Args:
        finding: of the patient.
        patient: that was examined.
        suffix: of the picture's name, where several sources have one finding.
    """
    for kind, figure in _PICTURES:
        if finding.id not in kind:
            continue
        try:
            picture = figure(finding, patient)
            return replace(picture, name=f"{picture.name}{suffix}")
        except Missing:
            continue
    return None


def _curve(finding: Finding, patient: Patient) -> Picture:
    log = patient.part(TrainingLog)
    rows = log.steps[["step", "loss"]].copy()
    if patient.has(Curve):
        curve = patient.part(Curve)
        guess = curve.nearest_guess(0.5)
        if guess is not None and (guess.is_certain or finding.id == "no-learning"):
            rows = rows.assign(guess=guess.value, guess_name=guess.name)
    caption = "Loss against steps; the dashed line, where known, is the loss of equal similarities."
    return _picture(finding, "curve", caption, loss_guess, rows)


def _spectrum(finding: Finding, patient: Patient) -> Picture:
    sides = patient.part(Spectrum).sides
    parts = [
        pd.DataFrame({"side": side.name, "index": np.arange(len(side.values)), "value": side.values / np.sqrt(side.n)})
        for side in sides
    ]
    null = null_values(sides[0].n, sides[0].d).numpy()
    parts.append(
        pd.DataFrame({"side": "isotropic", "index": np.arange(len(null)), "value": null / np.sqrt(sides[0].n)})
    )
    caption = f"Spread of {sides[0].n:,} centred embeddings over {sides[0].d} dimensions, beside isotropic vectors."
    return _picture(finding, "spectrum", caption, spectrum, pd.concat(parts, ignore_index=True))


def _hubs(finding: Finding, patient: Patient) -> Picture:
    hubs = patient.part(Hubs).directions
    rows = pd.concat(
        [pd.DataFrame({"label": direction.label, "count": direction.firsts.astype(np.float64)}) for direction in hubs],
        ignore_index=True,
    )
    return _picture(finding, "hubs", "How many queries have each candidate as their nearest.", hubness, rows)


def _pairs(finding: Finding, patient: Patient) -> Picture:
    alignment = patient.part(Alignment)
    S, others = alignment.S.i2t, alignment.negatives
    negatives = S[others].numpy()
    hardest = S.masked_fill(~others, -torch.inf).amax(1).numpy()
    if len(negatives) > _NEGATIVES:
        negatives = np.random.default_rng(0).choice(negatives, _NEGATIVES, replace=False)
    kinds: Mapping[str, Any] = {"positive": S.diagonal().numpy(), "hardest negative": hardest, "negative": negatives}
    rows = pd.concat(
        [pd.DataFrame({"kind": kind, "cosine": values}) for kind, values in kinds.items()], ignore_index=True
    )
    caption = f"Cosines of {alignment.pairs:,} pairs, of their hardest negatives, and of all other negatives."
    return _picture(finding, "pairs", caption, cosines, rows[np.isfinite(rows["cosine"])])


def _picture(finding: Finding, what: str, caption: str, plot: Any, rows: pd.DataFrame) -> Picture:
    name = plot.__name__.rpartition(".")[2]
    return Picture(f"{finding.id}-{what}", caption, plot.alt(rows), plot.draw(rows).figure, name, rows)


_OF_CURVE = frozenset({
    "no-learning", "margin-plateau", "diverged", "loss-spike", "frozen", "scale-falling", "scale-pinned", "non-finite",
    "overfitting", "not-finished",
})  # fmt: skip
_OF_SPECTRUM = frozenset(
    {"complete-collapse", "dead-tower", "dimensional-collapse", "cone", "normalised-over-wrong-axis"}
)
_OF_HUBS = frozenset({"hubness", "one-direction"})
_OF_PAIRS = frozenset({
    "misaligned-pairs", "shuffled-share", "no-learning", "margin-plateau", "temperature-too-low", "no-gradient",
    "temperature-too-high", "modality-gap", "half-precision", "duplicates", "hard-negatives-too-hard", "batch-ceiling",
    "complete-collapse",
})  # fmt: skip
_PICTURES: tuple[tuple[frozenset[str], Callable[[Finding, Patient], Picture]], ...] = (
    (_OF_CURVE, _curve),
    (_OF_SPECTRUM, _spectrum),
    (_OF_HUBS, _hubs),
    (_OF_PAIRS, _pairs),
)
