"""Which queries have the most and the least gradient in a sweep, and which of their negatives carry it?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.pair import Pair
from lossscope.core.types import Direction, Progress, Rows
from lossscope.errors import InputError
from lossscope.io.frames import plain_rows
from lossscope.probes.base import Probe
from lossscope.probes.views.view import DenseRows, View
from lossscope.registry import build
from lossscope.spec import Spec

from .batch_runner import BatchRunner
from .run_probes import label_of
from .sweep import Sweep
from .weighed_queries import NEGATIVES, Columns, WeighedQueries, concatenate, first_queries, rows_of_negatives, take

KEYS = ("source", "objective", "direction", "convention", "weight_unit")  # identify a list of queries
OF_QUERY = (
    "batch", "batch_row", "query", "query_id", "query_text", "weight", "weight_negatives", "weight_positive",
    "positive_similarity", "as_heavy",
)  # fmt: skip
OF_NEGATIVE = (
    "rank", "candidate", "candidate_id", "candidate_text", "negative_weight", "share", "similarity", "known_positive",
    "probability",
)  # fmt: skip
OF_LIST = ("queries", "without_weight")  # number of queries, and of queries without weight in every batch
MOST, LEAST = "most", "least"
_SIGNS = {MOST: -1.0, LEAST: 1.0}


@dataclass(frozen=True)
class HeaviestNegatives:
    """The queries of a sweep and their heaviest negatives, in the convention and unit of its first probe of weights.

    Raises InputError for a sample of queries and for further candidates.
    """

    sweep: Sweep
    audit: Path | None = None  # folder of `lossscope audit`, or its mask.npz, with the negatives that it suspects
    negatives: int = NEGATIVES  # K, number of heaviest negatives of each query

    def __post_init__(self) -> None:
        if self.sweep.is_sample:
            raise InputError(
                "--show lists queries of whole batches; got a sample of queries (--queries, --precision-of). Leave the "
                "sample out, or take a part of the data, and type --batch-size 1024 --show 10"
            )
        if self.sweep.terms:
            raise InputError(
                "--show lists candidates of one side; got further candidates of both (--terms). Leave --terms out"
            )

    @cached_property
    def known(self) -> KnownPairs | None:
        """The pairs of the audit. Raises InputError for another kind of file and for an audit without probabilities."""
        return None if self.audit is None else read_known_pairs(self.audit)

    @property
    def status(self) -> str:
        """The audit's sentence about its probabilities; empty without an audit."""
        if self.known is None:
            return ""
        return self.known.status or "of an earlier version, whose probabilities may be of other data than these"

    def require_possible(self, embedded: SplitEmbeddings) -> None:
        """Raise InputError for an audit of other items, and for an audit with batches of views."""
        if self.known is None:
            return
        if self.sweep.sampling == "views":
            raise InputError(
                "--audit looks items up by the ids of both sides; batches of views (--sampling views) take them as one "
                "set. Leave --audit out"
            )
        self.known.require_items(embedded.image_ids, embedded.caption_ids, embedded.read_texts)

    @float32_products()
    def most_and_least(
        self,
        embedded: SplitEmbeddings,
        number: int,
        guide: SplitEmbeddings | None = None,
        progress: Progress | None = None,
        on_rows: Callable[[pd.DataFrame], None] | None = None,
    ) -> pd.DataFrame:
        """Return a row for each listed query and negative: columns KEYS, OF_LIST, `list`, OF_QUERY, OF_NEGATIVE.

        A negative is `known_positive` if the data state that the two match, such as another caption of the image; None
        for views as one set. `probability` is the audit's probability that they match, 0 for a pair that the audit does
        not list. `as_heavy` counts further negatives of the query with the same weight as the last listed negative.

        Each list has the `number` queries with the most weight, or the least, each in the batch where it has that
        weight; of ties the lower row comes first. A query without a positive or a negative is in no list.

        Args:
            embedded: the split.
            number: N, queries of each list.
            guide: see `Sweep.run`.
            progress: called with (label, done, of).
            on_rows: called with the rows of all queries, without texts, a few batches at a time.
        """
        lists: dict[_Key, _Lists] = {}
        items = _Items(embedded.in_memory, self.known)
        for key, rows in self._weighed(embedded, guide, progress):
            if key not in lists:
                lists[key] = _Lists.of(number, self.negatives, items.number(key))
            lists[key].add(rows)
            if on_rows is not None and len(rows):
                columns = rows.columns(np.arange(len(rows)), self.negatives)
                on_rows(items.describe(key, rows_of_negatives(columns), with_texts=False))
        return _join([items.describe(key, of_key.rows()) for key, of_key in lists.items()])

    @float32_products()
    def of_queries(self, embedded: SplitEmbeddings, wanted: pd.DataFrame) -> pd.DataFrame:
        """Return a row for each negative of the wanted queries: columns KEYS, OF_QUERY, OF_NEGATIVE.

        Args:
            embedded: the split.
            wanted: columns objective, direction, batch and batch_row, from rows of single queries of this sweep.
        """
        names = ["objective", "direction", "batch", "batch_row"]
        listed = {tuple(row) for row in wanted[names].itertuples(index=False)}
        batches = {batch for _, _, batch, _ in listed}
        items, parts = _Items(embedded.in_memory, self.known), []
        for key, rows in self._weighed(embedded, None, None, batches):
            pairs = zip(rows.batch.tolist(), rows.batch_row.tolist(), strict=True)
            named = key.columns["objective"], key.columns["direction"]
            index = [row for row, pair in enumerate(pairs) if (*named, *pair) in listed]
            if index:
                columns = rows.columns(np.array(index, dtype=np.int64), self.negatives)
                parts.append(items.describe(key, rows_of_negatives(columns)))
        return _join(parts)

    def _weighed(
        self,
        embedded: SplitEmbeddings,
        guide: SplitEmbeddings | None,
        progress: Progress | None,
        only: set[int] | None = None,
    ) -> Iterator[tuple[_Key, WeighedQueries]]:
        """Yield the queries of every direction and batch of the sweep, under each objective.

        Args:
            embedded: the split.
            guide: of the rules.
            progress: called with (label, done, of).
            only: numbers of the batches to read; None: all.
        """
        embedded = embedded.in_memory
        plan = self.sweep.plan_for(embedded, guide)
        counting = _counting_of(plan.probes)
        plan = plan.with_probes((counting,))
        for batching in plan.batchings:
            runner = BatchRunner(plan, batching, embedded, ProcessGroup(0, 1), None, guide)
            total = batching.sampling.count(embedded.relations)
            for rows, batch, batch_row in _rows_of(runner, only):
                how = batch, batch_row, counting.convention, counting.unit
                direction = rows.shape.direction
                for objective, probe in runner.probe_plan.of_direction(direction).pairs:
                    assert objective is not None, "a probe that counts weights needs an objective"
                    keys = runner.key_of(probe, objective, label_of(objective, direction))
                    key = _Key(tuple(str(keys[name]) for name in KEYS), direction, batching.sampling.mode == "views")
                    yield key, WeighedQueries.of(View(rows, objective), *how)
                if progress:
                    progress("queries", int(batch[-1]) + 1, total)


def _counting_of(probes: Iterable[Probe]) -> Any:
    """Return `cocos` with the convention and unit of the first probe that states both, else with the defaults."""
    stated = (vars(probe) for probe in probes if hasattr(probe, "convention") and hasattr(probe, "unit"))
    values = {name: str(value) for name, value in next(stated, {}).items() if name in ("convention", "unit")}
    return build("probes", str(Spec("cocos", values)))


def document(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the lists of `most_and_least` for JSON: lists hold queries, queries hold negatives."""
    lists: list[dict[str, Any]] = []
    if not len(rows):  # no columns either: there is no query, or this is not the first process
        return lists
    for _, of_key in rows.groupby(list(KEYS), sort=False, dropna=False):
        named = {name: _queries_document(of_list) for name, of_list in of_key.groupby("list", sort=False)}
        lists.append({**_plain(of_key.iloc[:1], (*KEYS, *OF_LIST))[0], MOST: named[MOST], LEAST: named[LEAST]})
    return lists


def queries_of(rows: pd.DataFrame) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each query of a list and its negatives, the heaviest first; None stands for a missing value."""
    for _, of_query in rows.groupby(["batch", "batch_row"], sort=False):
        yield _plain(of_query.iloc[:1], OF_QUERY)[0], _plain(of_query[of_query["rank"] > 0], OF_NEGATIVE)


def _queries_document(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{**query, "negatives": negatives} for query, negatives in queries_of(rows)]


def _plain(rows: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    return plain_rows(rows[list(names)])


def _rows_of(runner: BatchRunner, only: set[int] | None) -> Iterator[tuple[DenseRows, Rows, Rows]]:
    """Yield the `whole_rows` of all batches, or of the batches with the numbers in `only`."""
    batches = runner.batching.sampling.batches(runner.embedded.relations)
    if only is None:
        yield from runner.whole_rows(batches)
        return
    for number, batch in enumerate(batches):
        if number in only:
            yield from runner.whole_rows([batch], number)


def _join(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


@dataclass(frozen=True)
class _Key:
    """Source, objective, direction, convention and unit of a list."""

    values: tuple[str, ...]  # in the order of KEYS
    direction: Direction
    is_joined: bool  # whether both sides are one set

    @property
    def columns(self) -> dict[str, str]:
        """Key -> value."""
        return dict(zip(KEYS, self.values, strict=True))


@dataclass
class _Lists:
    """The queries with the most and the least weight so far, each once, for one objective and direction."""

    number: int  # of queries of each list
    negatives: int  # K, of each query
    has_weight: npt.NDArray[np.bool_]  # (items,) whether the item has weight as a query of any batch
    is_query: npt.NDArray[np.bool_]  # (items,) whether it is a query of any batch, with a positive and a negative
    kept: dict[str, Columns] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, negatives: int, items: int) -> _Lists:
        """Return lists without any query.

        Args:
            number: of queries of each list.
            negatives: K, of each query.
            items: of the side of the queries.
        """
        return cls(number, negatives, np.zeros(items, np.bool_), np.zeros(items, np.bool_))

    def add(self, rows: WeighedQueries) -> None:
        """Add queries, and keep the heaviest and the lightest."""
        self.is_query[rows.query] = True
        self.has_weight[rows.query[rows.weight > 0]] = True
        for name, sign in _SIGNS.items():
            columns = rows.columns(first_queries(sign * rows.weight, rows.query, self.number), self.negatives)
            columns = concatenate(self.kept[name], columns) if name in self.kept else columns
            self.kept[name] = take(columns, first_queries(sign * columns["weight"], columns["query"], self.number))

    def rows(self) -> pd.DataFrame:
        """Return the rows of both lists."""
        queries = int(self.is_query.sum())
        counts = {"queries": queries, "without_weight": queries - int(self.has_weight.sum())}
        return _join([rows_of_negatives(columns).assign(**counts, list=name) for name, columns in self.kept.items()])


@dataclass(frozen=True, eq=False)
class _Items:
    """The ids and texts of the items of a split, and the pairs that an audit suspects."""

    embedded: SplitEmbeddings
    known: KnownPairs | None

    @cached_property
    def texts(self) -> Pair[Mapping[str, str]]:
        """Id -> text, for each side; empty if the source has no texts."""
        read = self.embedded.read_texts
        first, second = (None, None) if read is None else read()
        return Pair(first or {}, (first if second is None and self.embedded.sides.is_one_set else second) or {})

    def describe(self, key: _Key, rows: pd.DataFrame, with_texts: bool = True) -> pd.DataFrame:
        """Return rows with their keys, the ids and texts of their items, and the probabilities of the audit.

        Args:
            key: of the list.
            rows: of queries and their negatives.
            with_texts: add the columns of texts.
        """
        forward, weighs = key.direction == "i2t", rows["rank"].to_numpy() > 0
        query, candidate = rows["query"].to_numpy(), rows["candidate"].fillna(0).to_numpy(np.int64)
        of_query, of_candidate = self._names(query, forward, key), self._names(candidate, not forward, key)
        first, second = (query, candidate) if forward else (candidate, query)
        columns: dict[str, Any] = {"query_id": of_query[0], "candidate_id": of_candidate[0]}
        if with_texts:
            columns |= {"query_text": of_query[1], "candidate_text": of_candidate[1]}
        columns |= {"known_positive": None, "probability": np.nan}
        if not key.is_joined:
            columns["known_positive"] = self.embedded.relations.are_positive(first, second).astype(object)
        if self.known is not None:
            ids = self.embedded.image_ids, self.embedded.caption_ids
            columns["probability"] = self.known.of_pairs(*ids, first, second, self.embedded.read_texts).astype(float)
        described = rows.assign(**columns, **key.columns)
        described.loc[~weighs, [name for name in OF_NEGATIVE if name in columns]] = None  # rank 0 stays
        order = (*KEYS, *OF_LIST, "list", *OF_QUERY, *OF_NEGATIVE)
        return described[[name for name in order if name in described]]

    def number(self, key: _Key) -> int:
        """Return the number of items of the queries' side."""
        first, second = len(self.embedded.image_ids), len(self.embedded.caption_ids)
        return first + second if key.is_joined else first if key.direction == "i2t" else second

    def _names(self, rows: Rows, is_first: bool, key: _Key) -> tuple[list[str], list[str | None]]:
        """Return the ids and texts of the items in `rows`; in one set, the second side stands behind the first."""
        first, second = self.embedded.image_ids, self.embedded.caption_ids
        ids, texts = list[str](), list[str | None]()
        for row in rows.tolist():
            of_first = row < len(first) if key.is_joined else is_first
            id = first[row] if of_first else second[row - len(first) if key.is_joined else row]
            ids.append(id)
            texts.append((self.texts.i2t if of_first else self.texts.t2i).get(id))
        return ids, texts
