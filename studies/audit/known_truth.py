"""Read the truth of data sets that know it: false negatives, their rate in batches, answers of a sheet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.audit.output.tables import sheet_table
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.result import AuditResult
from lossscope.core.known_pairs import KnownPairs
from lossscope.datasets.base import Split
from lossscope.datasets.synthetic.answers import PassageSplit
from lossscope.datasets.synthetic.truth import SceneSplit
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

Flags = npt.NDArray[np.bool_]


def truth_of(split: Split) -> Flags:
    """Return (N, M) bool: whether an item of the second side is true of an item of the first."""
    if isinstance(split, SceneSplit):
        return np.ascontiguousarray(split.truth().T)
    if not isinstance(split, PassageSplit):
        raise TypeError(f"the truth is known of scenes and passages; got {type(split).__name__}")
    return split.truth()


def labelled_of(split: Split) -> Flags:
    """Return (N, M) bool: whether the data label a pair as a match."""
    return split.relations.is_positive(*(np.arange(n) for n in (split.relations.first, split.relations.second)))


def rate_in_batches(split: Split, size: int) -> float:
    """Return the share of false negatives among the negatives of batches, the mean over 40 passes of the sampler.

    Args:
        split: with a known truth.
        size: pairs of a batch.
    """
    truth, found, number = truth_of(split), 0, 0
    for seed in range(1000, 1040):
        pairs, _ = pairs_of(random_batches(split.relations, size, seed), split.relations)
        found, number = found + int(truth[pairs.left, pairs.right].sum()), number + len(pairs)
    return found / number


def write_answers(result: AuditResult, truth: Flags, path: Path) -> Path:
    """Write the sheet of an audit with answers by the truth."""
    table, pairs = sheet_table(result), result.sheet.pairs
    table["answer"] = np.where(truth[pairs.left, pairs.right], "yes", "no")
    write_text(path, format_csv(table))
    return path


def perfect_mask(split: Split) -> KnownPairs:
    """Return all false negatives of a split, with probability 1."""
    left, right = np.nonzero(truth_of(split) & ~labelled_of(split))
    ids = tuple(split.image_ids), tuple(split.caption_ids)
    return KnownPairs(left, right, np.ones(len(left), np.float32), *ids)
