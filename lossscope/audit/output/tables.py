"""Make tables of suspects, of the sheet and of scored pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..estimate.pair_file import answer_column, design_columns, pair_columns
from ..steps.result import AuditResult, ScoredPairs
from ..types import Floats

_TEXTS = 5  # of a query on the sheet


def signal_columns(result: AuditResult, scored: ScoredPairs) -> dict[str, Floats]:
    """Return a column of raw values for each signal; NaN where a pair has no value."""
    columns = {name: scored.raw[:, column] for column, name in enumerate(result.signals)}
    return columns | {"is_copy": scored.copy.astype(np.float32)}


def suspects_table(result: AuditResult) -> pd.DataFrame:
    """Return the suspects, the most probable first: ids, rows, probability or score, place for the query, signals."""
    material, scored = result.material, result.suspects
    first, second = pair_columns(material.relations.sides)
    left, right = scored.pairs.left, scored.pairs.right
    return pd.DataFrame(
        {
            first: [material.image_ids[row] for row in left.tolist()],
            second: [material.caption_ids[row] for row in right.tolist()],
            f"{first}_row": left, f"{second}_row": right, **scored.score_column(result.state),
            "place": result.places(), **signal_columns(result, scored),
        }
    )  # fmt: skip


def sheet_table(result: AuditResult) -> pd.DataFrame:
    """Return the pairs to label, in random order: ids, an empty answer, stratum and share, texts of both items."""
    material, pairs = result.material, result.sheet.pairs
    first, second = pair_columns(material.relations.sides)
    split = material.split
    columns = {
        first: [material.image_ids[row] for row in pairs.left.tolist()],
        second: [material.caption_ids[row] for row in pairs.right.tolist()],
        answer_column(material.relations.sides): [""] * len(pairs),
    }
    cells = [("", "") if row is None else row.cells for row in result.pool.design[: len(pairs)]]
    for position, name in enumerate(design_columns(material.relations.sides)):
        columns[name] = [pair[position] for pair in cells]
    if split is not None:
        first_texts = material.first_texts
        columns[f"{first}_text"] = [
            " | ".join(
                ([] if first_texts is None else [first_texts[row]])
                + [split.captions[k] for k in positives(result, row)]
            )
            for row in pairs.left.tolist()
        ]
        columns[f"{second}_text"] = [split.captions[row] for row in pairs.right.tolist()]
    return pd.DataFrame(columns)


def positives(result: AuditResult, row: int) -> list[int]:
    """Return the first positives of an item of the first side."""
    lists = result.material.positives_of_queries[row]
    return [column for column in lists.tolist() if column >= 0][:_TEXTS]


def text_of(result: AuditResult, side: int, row: int) -> str:
    """Return the text of an item, or its id if it has no text.

    Args:
        result: of the audit.
        side: 0 for the first, 1 for the second.
        row: of the item.
    """
    material = result.material
    ids = material.image_ids if side == 0 else material.caption_ids
    texts = material.first_texts if side == 0 else None if material.split is None else material.split.captions
    return ids[row] if texts is None else texts[row] or ids[row]
