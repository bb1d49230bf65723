"""Feature files that hold each image five times, once per caption, as the first ones of VSE++ do."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lossscope.errors import InputError
from lossscope.io.rows_on_disk import RowsOnDisk

PER_IMAGE = 5
Redundant = Literal["auto", "true", "false"]
_MAX_GROUPS = 1000  # groups of five that are compared, spread over the file


def merge_rows(features: RowsOnDisk, captions: int, redundant: Redundant) -> tuple[RowsOnDisk, str]:
    """Return one row per image, and what the user should know of it; all rows where each is an image of its own.

    The authors evaluate a file of 5 N rows and 5 N captions as N images with five captions each.

    Args:
        features: (n, ...) rows of the file.
        captions: number of captions.
        redundant: `auto` merges rows that are equal in fives; `true` takes the first of every five, as the authors do
            whether they are equal or not; `false` never merges.

    Raises:
        InputError: `true`, and the rows are not as many as the captions, or not in fives.
    """
    in_fives = captions == len(features) and not captions % PER_IMAGE
    if redundant == "true" and not in_fives:
        got = f"{len(features)} rows and {captions} captions"
        raise InputError(
            f"{features.file} must hold each image {PER_IMAGE} times in a row, once per caption; got {got}"
        )
    if redundant == "false" or not in_fives:
        return features, ""
    file, unequal = features.file, _first_unequal_group(features)
    images, rows = len(features) // PER_IMAGE, f"rows {PER_IMAGE * (unequal or 0)} to {PER_IMAGE * (unequal or 0) + 4}"
    if unequal is None:
        notice = (
            f"{file.name} holds each image {PER_IMAGE} times, once per caption: merged to {images} images with "
            f"{PER_IMAGE} captions each, as the authors evaluate it; redundant=false keeps {len(features)}"
        )
    elif redundant == "true":
        notice = f"of every {PER_IMAGE} rows of {file.name} the first is taken; {rows} are not equal"
    else:
        notice = (
            f"{file.name} has as many rows as captions, and {rows} are not equal: each row is an image of its own. The "
            f"authors' evaluation takes the first of every {PER_IMAGE} rows; redundant=true does"
        )
    return (
        features if unequal is not None and redundant == "auto" else features.select(slice(None, None, PER_IMAGE))
    ), notice


def _first_unequal_group(features: RowsOnDisk) -> int | None:
    """Return the first of the compared groups of five rows whose rows differ; None when all are equal."""
    groups = len(features) // PER_IMAGE
    for group in np.unique(np.linspace(0, groups - 1, min(groups, _MAX_GROUPS)).astype(np.int64)).tolist():
        rows = features.take(slice(PER_IMAGE * group, PER_IMAGE * (group + 1)))
        if not np.array_equal(rows[1:], np.broadcast_to(rows[:1], rows[1:].shape), equal_nan=True):
            return int(group)
    return None
