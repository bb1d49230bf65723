"""Each module of tests/planted, by the id of the finding that it plants."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import tests.planted

CONTRACT = {
    "non-finite": "error", "not-normalised": "note", "normalised-over-wrong-axis": "error",
    "complete-collapse": "error", "dead-tower": "error", "dimensional-collapse": "warning", "misaligned-pairs": "error",
    "shuffled-share": "warning", "no-learning": "error", "margin-plateau": "error", "no-gradient": "warning",
    "temperature-too-low": "warning", "temperature-too-high": "warning", "temperature-twice": "error",
    "scale-falling": "warning", "scale-pinned": "note", "siglip-start": "warning", "batch-ceiling": "note",
    "duplicates": "warning", "positive-as-negative": "error", "same-item-negatives": "note",
    "false-negatives": "warning", "hard-negatives-too-hard": "warning", "one-direction": "warning",
    "split-leak": "error", "modality-gap": "note", "cone": "note", "hubness": "warning", "diverged": "error",
    "loss-spike": "warning", "frozen": "error", "overfitting": "warning", "not-finished": "note",
    "batch-norm-leak": "warning", "half-precision": "warning", "gather-without-gradient": "error",
    "labels-without-offset": "error", "cached-gradient-differs": "error", "order-lost": "error",
    "anisotropy": "warning", "margin-unreachable": "error",
    "zero-loss": "error", "seam": "warning", "equal-evaluations": "warning", "metric-ceiling": "note",
    "batch-dependent": "error", "identical-views": "error",
}  # fmt: skip
"""Id -> severity of every finding that the design promises; others read the ids."""
OF_TEXT_ROWS = {
    "empty-text": "error", "long-text": "warning", "no-positive": "error", "other-positive-as-negative": "warning",
    "short-text": "error", "near-copies": "warning", "near-duplicates": "warning",
}  # fmt: skip
"""Those that `lossscope data lint` counts in rows of text, beside them."""
OF_TRAINERS = frozenset({"cached-gradient-differs", "gather-without-gradient", "labels-without-offset"})
"""Those that only a replay of the trainer finds."""
NOTES = frozenset(
    {
        "batch-ceiling", "cone", "metric-ceiling", "modality-gap", "not-finished", "not-normalised",
        "same-item-negatives", "scale-pinned",
    }
)  # fmt: skip
"""Ids that are found in good trainings too."""


def planted() -> dict[str, ModuleType]:
    """Return id -> module; `base` plants nothing."""
    files = [module.name for module in pkgutil.iter_modules(tests.planted.__path__) if module.name != "base"]
    return {name.replace("_", "-"): importlib.import_module(f"tests.planted.{name}") for name in sorted(files)}
