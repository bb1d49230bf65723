"""A loss with some of its negatives, one query at a time: what the oracles of only_top, only_tail, only_above share."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
Row = list[tuple[float, float, int]]  # |W|, S and column of each negative of a row
Keep = Callable[[Row], set[int]]  # the columns that are kept
PULL_AS_HARD = ("ntxent", "triplet", "triplet_sh")  # rows of W sum to 0; each has one positive a row


def whole(of: str) -> tuple[str, dict[str, Any], Any]:
    """Return name, options and oracle of `name:key=value,...`."""
    name, _, text = of.partition(":")
    options: dict[str, Any] = {}
    for key, value in re.findall(r"(\w+)=([^,]+)", text):
        options[key] = value == "true" if value in ("true", "false") else float(value)
    spec = importlib.util.spec_from_file_location(f"oracle_of_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return name, options, module


def kept_columns(S: Array, match: Array, valid: Array, of: str, keep: Keep) -> tuple[Array, dict[int, set[int]]]:
    """Return W of the whole loss, and of each row the columns of the negatives that are kept."""
    _, options, oracle = whole(of)
    W = oracle.weights(S, match, valid, **options)
    kept = {}
    for q in range(len(S)):
        kept[q] = keep([(abs(W[q, c]), S[q, c], c) for c in range(S.shape[1]) if valid[q, c] and not match[q, c]])
    return W, kept


def truncated_weights(S: Array, match: Array, valid: Array, of: str, keep: Keep) -> Array:
    """Return W with 0 on what is not kept; the positive pulls as hard as the rest pushes, if it did before."""
    name, _, _ = whole(of)
    W, kept = kept_columns(S, match, valid, of, keep)
    result = np.zeros_like(W)
    for q, columns in kept.items():
        for c in range(S.shape[1]):
            if c in columns:
                result[q, c] = W[q, c]
            elif match[q, c] and valid[q, c]:
                result[q, c] = -sum(W[q, n] for n in columns) if name in PULL_AS_HARD else W[q, c]
    return result


def counted(
    S: Array, match: Array, valid: Array, of: str, keep: Keep, eps: float, convention: str, direction: str
) -> tuple[Array, Array]:
    """Count the kept weights above eps, in the scale of the paper: |W|, times tau for ntxent."""
    name, options, _ = whole(of)
    W, kept = kept_columns(S, match, valid, of, keep)
    scale = options.get("tau", 0.1) if name == "ntxent" else 1.0
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    for q, columns in kept.items():
        high = [abs(W[q, c]) * scale for c in columns if abs(W[q, c]) * scale > eps]
        count[q], mass[q] = len(high), sum(high)
    return count, mass
