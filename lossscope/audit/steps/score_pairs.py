"""The probability and every signal of the pairs in a file."""

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
    """Return a row for each pair of the file, in its order, and what scored them.

    The columns are the ids as they are written, `probability`, or `score` where data are ranked only, and one for each
    signal; `is_copy` is 1 where a copy proves the match. A pair that is known to match is scored without its own text
    among the query's. Ids may be of any split of the data; where they are not all of the one that is named, all splits
    are taken together.

    Args:
        sources: models; none: texts alone.
        file: CSV with the columns of the sides, such as image,caption.
        options: of the audit.

    Raises:
        InputError: ids that are of no item, naming the first.
    """
    inputs = read_inputs(sources, options)
    sides = inputs.material.relations.sides
    named = read_pair_file(file, sides)
    inputs, pairs = _resolve(inputs, sources, named, options)
    scorer = Scorer.of(inputs.material, build_signals(options.signals, sides), options)
    scored = scorer.score(pairs)
    first, second = pair_columns(sides)
    result = pd.DataFrame({first: named.left, second: named.right, **scored.score_column(scorer.state)})
    for place, name in enumerate(scorer.table.names):
        result[name] = scored.raw[:, place]
    result["is_copy"] = scored.copy
    return result, scorer


def _resolve(
    inputs: Inputs, sources: Sequence[Path | str], file: PairFile, options: AuditOptions
) -> tuple[Inputs, PairRows]:
    """Return the rows that a file names, of the split that was asked for or of all splits together."""
    try:
        rows = resolve_pairs(inputs.material, file.left, file.right, file.where, file.lines, absent="mark")
        if all((column != ABSENT).all() for column in rows):
            return inputs, PairRows(*rows)
    except InputError:
        pass  # all splits may know what this one does not; if not, the message is of them
    names = split_names(sources, options)
    whole = read_inputs(sources, options, names) if len(names) > 1 else inputs
    return whole, PairRows(*resolve_pairs(whole.material, file.left, file.right, file.where, file.lines))
