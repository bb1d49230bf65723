"""How numbers, settings and p values are written in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd


def setting(data: str, encoder: str, rows: pd.DataFrame) -> str:
    """Return what a sentence is about: the data, and the model where the rows have several."""
    return f"{data} with {encoder}" if rows["encoder"].nunique() > 1 else data


def join(names: Iterable[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`.

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def number(value: float) -> str:
    """Return a number with about three digits.

    >>> number(11.53), number(0.0416), number(127.0), number(1.0)
    ('11.5', '0.042', '127', '1')
    """
    size = abs(value)
    text = f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 1 else f"{value:.2g}"
    return text.removesuffix(".0")


def per_cent(share: float) -> str:
    """Return a share in per cent; `less than 0.1 %` rather than 0 where there is some, and never 100 where not all.

    >>> per_cent(0.893), per_cent(0.0004), per_cent(0.9999), per_cent(0.044)
    ('89 %', 'less than 0.1 %', 'more than 99.9 %', '4.4 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    digits = 0 if 0.1 <= share <= 0.9 or share in (0, 1) else 1
    return f"{100 * share:.{digits}f} %".replace(".0 %", " %")


def p_text(row: Mapping[Any, Any]) -> str:
    """Return `p = 0.96`, or `p ≤ 0.0072` where the permutations cannot give less.

    Args:
        row: of `compare`.
    """
    p = float(row["p_images_holm"])
    text = np.format_float_positional(float(f"{p:.2g}"), trim="-")
    return f"p {'≤' if row['p_at_floor'] else '='} {text}"


def floor_note(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return what `p ≤` means, where a row has one."""
    lowest = rows[rows["p_at_floor"].astype(bool)].to_dict("records")
    if not lowest:
        return ()
    resamples, family = int(lowest[0]["resamples"]), int(lowest[0]["family"])
    smallest = f"{2.0 / (resamples + 1):.5f}".rstrip("0")
    comparisons = f"{family} comparison{'s' if family > 1 else ''}"
    return (
        f"p ≤: the smallest that {resamples:,} random permutations can give ({smallest}, corrected by Holm over "
        f"{comparisons}); the true one may be smaller.",
    )
