"""How well does a model retrieve where what people called positive counts, too?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.pair_rows import ABSENT, resolve_pairs
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides, plural
from lossscope.core.types import Progress, Rows
from lossscope.datasets.judgements.base import Judgements
from lossscope.datasets.judgements.coco_ids import name_as_split, require_ids
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY, further_columns

from .evaluate import evaluate
from .measures import CUTOFFS

PROBE = "recall+judgements"  # of rows whose positives are the data's own and those that people judged to be some
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class JudgedPairs:
    """The judged pairs of one file or several that are of a split."""

    sides: Sides
    positives: Rows  # (p, 2) pairs that a file calls positive, each once
    queries: Pair[Flags]  # (N,) and (M,) items that were judged as queries
    added: Rows  # (a, 2) those of the positives that are none of the data's own
    denied: int  # the data's own positives that a file does not call positive
    disputed: int  # pairs that one file calls positive, and another one does not
    skipped: int  # judged pairs that are not of the split
    notices: tuple[str, ...]  # what each file has

    def widen(self, embedded: SplitEmbeddings) -> SplitEmbeddings:
        """Return a split whose positives are its own and the judged ones; mined negatives are left out."""
        stated = embedded.relations
        positives = np.concatenate([stated.positives, self.added])
        return replace(
            embedded, caption_image=None, relations=Relations(stated.first, stated.second, positives, stated.sides)
        )  # fmt: skip

    @property
    def summary(self) -> tuple[str, ...]:
        """What the judgements change, in sentences."""
        first, second = plural(self.sides.first), plural(str(self.sides.second))
        gain = self.gaining
        sizes, judged = self.queries.map(len), self.queries.map(lambda flags: int(flags.sum()))
        lines = [
            f"judgements add {len(self.added)} positives, to {gain.i2t} {first} and {gain.t2i} {second}; judged as "
            f"queries were {judged.i2t} of {sizes.i2t} {first} and {judged.t2i} of {sizes.t2i} {second}, and the "
            "positives of all others are the data's own alone"
        ]
        if self.skipped:
            lines.append(f"{self.skipped} judged pairs are not of this split, and were skipped")
        if self.denied:
            lines.append(f"{self.denied} of the data's own positives were not judged to be any; they stay positives")
        if self.disputed:
            lines.append(f"{self.disputed} pairs are positives in one file and not in another; they count as positives")
        return (*self.notices, *lines)

    @property
    def gaining(self) -> Pair[int]:
        """Number of items of each side that have a further positive."""
        return Pair(*(len(np.unique(self.added[:, side])) for side in (0, 1)))


def match_judgements(embedded: SplitEmbeddings, files: Sequence[Judgements]) -> JudgedPairs:
    """Return the judged pairs of files that are of a split.

    Raises InputError for one set of labelled items, for a file of which no pair is of the split, and for ids that
    cannot be resolved.
    """
    relations = embedded.relations
    if relations.one_set:
        raise InputError(
            f"judgements are of two sides, such as images and captions; {embedded.name} is one set of "
            f"{plural(embedded.sides.first)}, whose positives are its labels"
        )
    queries = Pair(np.zeros(relations.first, bool), np.zeros(relations.second, bool))
    yes: list[Rows] = []
    no: list[Rows] = []
    notices: list[str] = []
    skipped = 0
    for file in files:
        pairs = _rows_of(embedded, file)
        here = (pairs != ABSENT).all(1)
        if not here.any():
            split = f"the {embedded.split} split" if embedded.split else embedded.name
            raise InputError(
                f"{file.where} must judge pairs of {split}; none of its {len(here)} pairs is. Name another --split"
            )
        positive = np.array(file.positive)
        for side, wanted in zip(("first", "second"), queries, strict=True):
            if file.queries in (side, "both"):
                wanted[pairs[here, 0 if side == "first" else 1]] = True
        yes.append(np.unique(pairs[here & positive], axis=0))
        no.append(np.unique(pairs[here & ~positive], axis=0))
        skipped += int((~here).sum())
        counts = f"{int(positive.sum())} of {len(positive)} judged pairs are positives: {file.rule}"
        notices += [*file.notices, f"of {file.where} {counts}"]
    return _compare(relations, np.concatenate(yes), np.concatenate(no), queries, skipped, tuple(notices))


def evaluate_judged(
    embedded: Sequence[SplitEmbeddings],
    judged: JudgedPairs,
    progress: Progress | None = None,
    cutoffs: Sequence[int] | None = None,
    judged_only: bool = False,
) -> pd.DataFrame:
    """Return summary rows of one source, or of an ensemble: `recall` as ever, and `recall+judgements`.

    Both have the statistics of `evaluate`. The latter also states `added_positives` and `skipped_pairs` of both
    directions, and `judged_queries` and `queries_with_added` of each.

    Args:
        embedded: the source, or those of the ensemble.
        judged: pairs of their split.
        progress: called after each tile.
        cutoffs: k of R@k, recall@k, nDCG@k and MRR@k, 1, 5 and 10 unless given.
        judged_only: take those items as queries that were judged as queries; candidates are all items.

    Raises:
        InputError: those of `evaluate`; a direction without a judged query where they are the only ones.
    """
    ks = CUTOFFS if cutoffs is None else tuple(cutoffs)
    queries = judged.queries if judged_only else None
    stated = evaluate(embedded, progress=progress, cutoffs=ks, queries=queries)
    wider = [judged.widen(source) for source in embedded]
    more = evaluate(wider, progress=progress, cutoffs=ks, queries=queries).assign(probe=PROBE)
    return pd.concat([stated, more, _count_rows(more, judged)], ignore_index=True)


def _rows_of(embedded: SplitEmbeddings, file: Judgements) -> Rows:
    """Return (n, 2) rows of the judged pairs, ABSENT for what is not of the split."""
    first: Sequence[str] = file.first
    if file.is_coco:
        for ids, name in ((embedded.image_ids, embedded.sides.first), (embedded.caption_ids, embedded.sides.second)):
            require_ids(ids, str(name), file.where)
        first = name_as_split(first, embedded.image_ids, file.where)
    return np.stack(resolve_pairs(embedded, first, file.second, file.where, file.lines, file.kinds, "mark"), 1)


def _compare(
    relations: Relations, yes: Rows, no: Rows, queries: Pair[Flags], skipped: int, notices: tuple[str, ...]
) -> JudgedPairs:
    """Compare judged pairs with the data's own, and those of one file with those of another."""
    yes = np.unique(yes, axis=0)
    own_keys, yes_keys, no_keys = (_keys(pairs, relations.second) for pairs in (relations.positives, yes, no))
    denied = np.isin(own_keys, np.setdiff1d(no_keys, yes_keys))
    return JudgedPairs(
        relations.sides, yes, queries, yes[~np.isin(yes_keys, own_keys)], int(denied.sum()),
        len(np.intersect1d(yes_keys, no_keys)), skipped, notices,
    )  # fmt: skip


def _keys(pairs: Rows, second: int) -> Rows:
    """Return one number a pair."""
    keys: Rows = pairs[:, 0] * second + pairs[:, 1]
    return keys


def _count_rows(rows: pd.DataFrame, judged: JudgedPairs) -> pd.DataFrame:
    """Return rows that say what was judged and added."""
    shared = rows.iloc[0].to_dict()
    first, second = judged.sides.labels
    gaining, queries = judged.gaining, judged.queries.map(lambda flags: int(flags.sum()))
    counts = [
        ("both", "added_positives", "pairs", len(judged.added)),
        ("both", "skipped_pairs", "pairs", judged.skipped),
        (first, "judged_queries", "queries", queries.i2t),
        (second, "judged_queries", "queries", queries.t2i),
        (first, "queries_with_added", "queries", gaining.i2t),
        (second, "queries_with_added", "queries", gaining.t2i),
    ]
    numbers = rows.drop_duplicates("direction").set_index("direction")["n"].to_dict()
    counted = [
        shared | {"direction": direction, "statistic": name, "unit": unit, "mean": float(value), "std": np.nan,
                  "n": numbers.get(direction, numbers[first]), "n_defined": numbers.get(direction, numbers[first])}
        for direction, name, unit, value in counts
    ]  # fmt: skip
    return pd.DataFrame(counted, columns=[*SUMMARY, *further_columns(rows)])
