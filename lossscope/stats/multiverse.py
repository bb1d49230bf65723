"""In which share of the ways of counting does each claimed ordering hold, and which choice overturns it?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from lossscope.core.types import CONVENTIONS, WEIGHT_UNITS
from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from .claims import CLAIM

DIMENSIONS = ("convention", "unit", "eps", "batch", "epoch", "seed")  # the choices that make a universe
COLUMNS = (
    "study", *CLAIM, "direction", "statistic_lower", "statistic_higher", "stated_lower", "stated_higher", "table",
    "note", *DIMENSIONS, "value_lower", "value_higher", "difference", "holds", "tie", "reason", "epoch_lower",
    "epoch_higher", "batch_size_lower", "batch_size_higher", "n_lower", "n_higher", "split",
)  # fmt: skip
"""Columns of the rows of a multiverse: a row for each claim and universe."""
NEEDED = (*CLAIM, "stated_lower", "stated_higher", *DIMENSIONS, "holds")  # to summarise rows
EPOCHS = ("first", "middle", "best", "last")  # names of epochs, in this order
_ORDER = {"convention": CONVENTIONS, "unit": WEIGHT_UNITS, "epoch": EPOCHS}
_HOLDS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0, "": np.nan, "nan": np.nan}


def claim_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim: in how many universes it holds, and which choice changes the answer most often.

    The columns are those of CLAIM, stated_lower, stated_higher, and:

    - universes, defined, undefined: their number; in an undefined universe a system has no number.
    - holds, ties: universes in which the lower system has the lower number, and those in which both are equal.
    - share: holds / defined; NaN where no universe is defined.
    - decisive, flips: the dimension whose choice changes the answer in the largest share of sets, and that share. A set
      has the universes that differ in this dimension alone, two of them defined at least. Empty and 0 where no choice
      alone changes the answer.

    Args:
        rows: columns NEEDED, a row for each claim and universe.

    Raises:
        InputError: columns or rows are missing, a universe is there twice, or `holds` is neither true, false nor empty.
    """
    rows = require_universes(rows)
    flips = _flips(rows)
    found = []
    for key, group in rows.groupby(list(CLAIM), sort=False, observed=True):
        defined, holds = int(group["holds"].notna().sum()), int(group["holds"].sum())
        of_claim = {name: flips[name].get(key, 0.0) for name in DIMENSIONS}
        decisive = max(of_claim, key=lambda name: of_claim[name])
        found.append({
            **dict(zip(CLAIM, key, strict=True)),
            **{name: float(group[name].iloc[0]) for name in ("stated_lower", "stated_higher")},
            "universes": len(group), "defined": defined, "undefined": len(group) - defined, "holds": holds,
            "ties": int(_is_tie(group).sum()), "share": holds / defined if defined else math.nan,
            "decisive": decisive if of_claim[decisive] > 0 else "", "flips": of_claim[decisive],
        })  # fmt: skip
    return pd.DataFrame(found)


def level_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of universes in which each claim holds at each level of each dimension.

    The columns are those of CLAIM, dimension, level (a text), universes, defined, holds, share. A dimension that a
    claim does not depend on, such as eps of rsum, has no rows.

    Args:
        rows: as `claim_shares` takes them.
    """
    rows = require_universes(rows)
    parts = []
    for dimension in DIMENSIONS:
        known = rows[rows[dimension].notna()]
        grouped = known.groupby([*CLAIM, dimension], sort=False, observed=True)["holds"]
        shares = grouped.agg(universes="size", defined="count", holds="sum").reset_index()
        order = level_order(rows, dimension)
        shares["level"] = [level_text(dimension, value) for value in shares[dimension]]
        shares["rank"] = [order.index(level) for level in shares["level"]]
        parts.append(shares.drop(columns=dimension).assign(dimension=dimension, of=DIMENSIONS.index(dimension)))
    claims = {key: number for number, key in enumerate(dict.fromkeys(map(tuple, rows[list(CLAIM)].to_numpy())))}
    levels = pd.concat(parts, ignore_index=True)
    levels["claim"] = [claims[tuple(key)] for key in levels[list(CLAIM)].to_numpy()]
    levels = levels.sort_values(["claim", "of", "rank"], kind="stable", ignore_index=True)
    defined = levels["defined"].where(levels["defined"] > 0)
    return levels.assign(share=levels["holds"] / defined)[
        [*CLAIM, "dimension", "level", "universes", "defined", "holds", "share"]
    ]


def level_order(rows: pd.DataFrame, dimension: str) -> list[str]:
    """Return the levels of a dimension in their order: of a list, else from the smallest number."""
    values = list(rows[dimension].dropna().unique())
    known = _ORDER.get(dimension, ())
    numbers = sorted((value for value in values if value not in known), key=_as_number)
    return [level_text(dimension, value) for value in (*(name for name in known if name in values), *numbers)]


def level_text(dimension: str, value: object) -> str:
    """Return a level as it is printed.

    >>> level_text("batch", 0.5), level_text("eps", 0.01), level_text("seed", 1.0), level_text("unit", "paper")
    ('×0.5', '0.01', '1', 'paper')
    """
    text = f"{value:g}" if isinstance(value, int | float | np.number) else str(value)
    return f"×{text}" if dimension == "batch" else text


def require_universes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `holds` as 1, 0 or NaN. Raises InputError as `claim_shares` does."""
    require_columns(rows, NEEDED, "rows of multiverse")
    if rows.empty:
        raise InputError("rows of multiverse must have a universe or more; got none. Run `lossscope study multiverse`")
    texts = rows["holds"].map(lambda value: "" if value is None else str(value).strip().lower())
    unknown = sorted(set(texts) - set(_HOLDS))
    if unknown:
        raise InputError(f"holds of a universe must be true, false or empty; got {unknown[0]!r}. Correct the file")
    keys = [*CLAIM, *DIMENSIONS]
    if rows.duplicated(keys).any():
        raise InputError("rows of multiverse must have each claim and universe once; got some twice. Remove the copies")
    return rows.assign(holds=texts.map(_HOLDS).astype(float))


def _is_tie(rows: pd.DataFrame) -> pd.Series[bool]:
    if "difference" not in rows:
        return pd.Series(False, index=rows.index)
    equal: pd.Series[bool] = rows["difference"].astype(float) == 0
    return equal


def _flips(rows: pd.DataFrame) -> dict[str, dict[tuple[object, ...], float]]:
    """Return dimension -> claim -> share of the sets of universes that differ in it alone, and whose answers differ."""
    defined = rows[rows["holds"].notna()]
    flips: dict[str, dict[tuple[object, ...], float]] = {}
    for dimension in DIMENSIONS:
        known = defined[defined[dimension].notna()]
        others = [name for name in DIMENSIONS if name != dimension]
        grouped = known.groupby([*CLAIM, *others], sort=False, observed=True, dropna=False)["holds"]
        sets = grouped.agg(["size", "min", "max"]).reset_index()
        sets = sets[sets["size"] > 1]
        differs = (sets["max"] > sets["min"]).groupby([sets[name] for name in CLAIM], sort=False).mean()
        flips[dimension] = {tuple(key): float(share) for key, share in zip(differs.index, differs, strict=True)}
    return flips


def _as_number(value: object) -> tuple[float, str]:
    """Return what sorts levels: numbers by size, then texts."""
    try:
        return float(str(value)), ""
    except ValueError:
        return math.inf, str(value)
