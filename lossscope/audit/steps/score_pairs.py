"""Score the pairs of a file: probability and signals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lossscope.core.pair_rows import ABSENT, resolve_pairs
from lossscope.errors import InputError

from ..estimate.pair_file import PairFile, pair_columns, read_pair_file
from ..types import PairRows
from .inputs import Inputs, read_inputs, split_names
from .options import AuditOptions
from .scorer import Scorer
from .signals import build_signals


def score_pairs(sources: Sequence[Path | str], file: Path, options: AuditOptions) -> tuple[pd.DataFrame, Scorer]:
    """Return a row for each pair of the file, in its order, and the scorer.

    The columns are the ids as in the file, `probability` (`score` if data are ranked only), and a column for each
    signal; `is_copy` is 1 where a copy proves the match. For a pair that is known to match, the candidate's text is
    left out of the query's texts. Ids may be of any split of the data: if the named split lacks an id, all splits are
    joined.

    Args:
        sources: models; none: texts alone.
        file: CSV with the columns of the sides, such as image,caption.
        options: of the audit.

    Raises:
        InputError: ids without an item; the message names the first.
    """
    inputs = read_inputs(sources, options)
    sides = inputs.material.relations.sides
    named = read_pair_file(file, sides)
    inputs, pairs = _resolve(inputs, sources, named, options)
    scorer = Scorer.of(inputs.material, build_signals(options.signals, sides), options)
    scored = scorer.score(pairs)
    first, second = (
        name if kind is None else f"{name}_{kind}" for name, kind in zip(pair_columns(sides), named.kinds, strict=True)
    )
    result = pd.DataFrame({first: named.left, second: named.right, **scored.score_column(scorer.state)})
    for column, name in enumerate(scorer.table.names):
        result[name] = scored.raw[:, column]
    result["is_copy"] = scored.copy
    return result, scorer


def _resolve(
    inputs: Inputs, sources: Sequence[Path | str], file: PairFile, options: AuditOptions
) -> tuple[Inputs, PairRows]:
    """Return the rows that a file names, in the named split or in all splits joined."""
    columns = file.left, file.right, file.where, file.lines, file.kinds
    try:
        rows = resolve_pairs(inputs.material, *columns, absent="mark")
        if all((column != ABSENT).all() for column in rows):
            return inputs, PairRows(*rows)
    except InputError:
        pass  # another split may have the id; if not, the message is about all splits
    names = split_names(sources, options)
    whole = read_inputs(sources, options, names) if len(names) > 1 else inputs
    return whole, PairRows(*resolve_pairs(whole.material, *columns))
