"""May a printed number stand beside ours? Only if both rank as many items, whole or in folds, by as many models."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lossscope.io.frames import MEMBERS, in_folds

from .runs import APART, is_other_data

# split as the papers name it -> images or videos that a query is ranked among, and folds that are averaged
_PRINTED = {"1K test": (1000, 1), "5K test": (5000, 1), "5-fold 1K": (1000, 5), "1k-A": (1000, 1), "full": (2990, 1)}

_RANKED = "ranked"


def choose_protocol(rows: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of recall that were measured as the table prints its numbers: whole splits, or means over folds.

    A further column has the number of images that were ranked at a time, where it is known.

    Of data that was measured in the other way alone, and of data without a published name, all rows stay.

    Args:
        rows: of runs.
        printed: the cells of the table.
    """
    kept = pd.Series(True, index=rows.index)
    folds = in_folds(rows)
    rows = rows.assign(**{_RANKED: _ranked(rows, folds)})
    for (_, dataset), part in rows.groupby(["data", "dataset"], sort=False, dropna=False):
        splits = printed.loc[printed["dataset"] == dataset, "split"]
        wanted = folds[part.index] if len(splits) and splits.map(_folds_of).gt(1).all() else ~folds[part.index]
        if wanted.any():
            kept[part.index] = wanted
    return rows[kept]


def why_apart(rows: pd.DataFrame, printed: pd.DataFrame) -> str:
    """Say why a printed row may not stand beside ours; empty where it may, or where there is none.

    Data under another name than the published one may have another size: a footnote says that it is other data.

    Args:
        rows: a line of ours.
        printed: the cells of the printed row.
    """
    if printed.empty:
        return ""
    first, ours = printed.iloc[0], rows.iloc[0]
    row = f"{first['method']}, {first['dataset']} ({first['split']})"
    if reason := _why_other_models(first, ours) or (_why_other_ranking(first, rows) if _is_recall(rows) else ""):
        return f"{APART}: {row}: {reason}."
    return ""


def _why_other_models(printed: pd.Series[Any], ours: pd.Series[Any]) -> str:
    members = ours.get(MEMBERS)
    single = members is None or pd.isna(members)
    if str(printed["ensemble"]).lower() == "true":
        how = "an [[ensembles]] table of the study, or eval --ensemble, measures the mean of both"
        return f"the paper ranks by the mean of two models, ours is a single model; {how}" if single else ""
    return "" if single else f"the paper ranks by a single model, ours by the mean of {members}"


def _why_other_ranking(printed: pd.Series[Any], rows: pd.DataFrame) -> str:
    images, folds = _PRINTED.get(str(printed["split"]), (0, 1))
    ours = _folds_of(rows["sampling"].iloc[0])
    if folds > 1 and ours == 1:
        how = f"`folds = {folds}` of the study's [[data]], or eval --folds {folds}, measures them"
        return f"the paper's numbers are means over {folds} folds of {images:,} images, ours rank a whole split; {how}"
    if folds == 1 and ours > 1:
        return f"the paper ranks a whole split, ours are means over {ours} folds"
    if is_other_data(str(rows["data"].iloc[0]), str(printed["dataset"])):
        return ""
    if folds != ours:
        return f"the paper's numbers are means over {folds} folds, ours over {ours}"
    ranked = rows[_RANKED].dropna()
    if images and len(ranked) and (ranked != images).any():
        what = "videos" if printed["dataset"] == "msrvtt" else "images"
        return f"the paper ranks {images:,} {what}{' of a fold' * (folds > 1)}, ours {ranked.max():,.0f}"
    return ""


def sizes(rows: pd.DataFrame, printed: pd.DataFrame) -> str:
    """Return `scenes 250, published 1,000` of a line that ranks another number of items than the printed row, or ''."""
    images, _ = _PRINTED.get(str(printed["split"].iloc[0]), (0, 1))
    ranked = rows[_RANKED].dropna() if _RANKED in rows else pd.Series(dtype=float)
    if not images or ranked.empty or (ranked == images).all():
        return ""
    return f"{rows['data'].iloc[0]} {ranked.max():,.0f}, published {images:,}"


def _ranked(rows: pd.DataFrame, folds: pd.Series[bool]) -> pd.Series[float]:
    """Return the number of images that were ranked at a time; of a fold it follows from the whole split, if known."""
    first = rows[rows["direction"].isin(("i2t", "both"))]
    whole = first[~folds[first.index]].groupby("run")["n"].max()
    return rows["run"].map(whole) / rows["sampling"].map(_folds_of)


def _is_recall(rows: pd.DataFrame) -> bool:
    return bool((rows["probe"] == "recall").all())


def _folds_of(text: object) -> int:
    """Return the folds of `5-fold 1K` or `5 folds`; 1 of any other split."""
    number = str(text).replace("-", " ").partition(" fold")
    return int(number[0]) if number[1] and number[0].isdecimal() else 1
