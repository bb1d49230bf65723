"""Which queries changed most between two sides? Average the difference of each query over its batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sides import ONE_SET
from lossscope.errors import InputError
from lossscope.io.frames import plain_rows

from .heaviest_negatives import HeaviestNegatives, queries_of
from .paired_sweep import NumberKey, PairedResult
from .sweep import Sweep

_MADE_BY = ["probe", "direction", "objective", "convention", "eps", "weight_unit"]
_SAME = ("direction", "probe", "objective", "convention", "weight_unit", "eps", "query")  # identify a query's number
_NO_COLUMNS = frozenset({*_MADE_BY, "source", "sampling", "seed", "sides", "batch", "query", "skipped"})
_LIST = ["probe", "objective", "b_objective", "convention", "weight_unit", "eps", "b_eps"]  # identify a list of queries


def per_query_columns(result: PairedResult) -> list[str]:
    """Return the columns of single queries that both sides have."""
    a, b = result.queries
    return [str(name) for name in a if name in b and name not in _NO_COLUMNS]


def known_columns(objectives: tuple[str, ...], probes: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the columns that single queries will have, before reading a source; None if that takes the source."""
    generator = torch.Generator().manual_seed(0)
    images, captions = (torch.nn.functional.normalize(torch.randn(4, 4, generator=generator)) for _ in range(2))
    rows, ids = np.arange(4), [str(row) for row in range(4)]
    small = SplitEmbeddings("none", images, captions, None, rows, ids, ids, "")
    try:
        columns = [
            str(name)
            for probe in probes
            for part in Sweep(objectives, (probe,), batch_size=4, per_query=True, interval=None).run(small).query_parts
            for name in part
        ]
    except InputError:
        return None
    return tuple(dict.fromkeys(name for name in columns if name not in _NO_COLUMNS))


def changed_queries(
    result: PairedResult, embedded: SplitEmbeddings, column: str, top: int, comparable: bool = True
) -> pd.DataFrame:
    """Return a row for each of the `top` queries whose number differs most, the largest difference first.

    `batch` is the batch in which the query differs most, `batch_row` its row there.

    Each pair of objectives, probe and threshold has a list of its own. The lists share `top`: the first query of each
    list comes first, then the second of each.

    Args:
        result: of sweeps that kept their queries.
        embedded: one of the sides; both have the same ids.
        column: one of `per_query_columns`, such as `count`.
        top: number of rows.
        comparable: take only objectives whose statistic of the column is the same.

    Raises:
        InputError: `column` is none of `per_query_columns`.
    """
    a, b = result.queries
    known = per_query_columns(result)
    if column not in known:
        raise InputError(f"--by must be one of {', '.join(known) or 'no numbers'}; got {column!r}")
    kept = a[column].notna().to_numpy() & b[column].notna().to_numpy()
    if not np.array_equal(a[["batch", "query"]].to_numpy(), b[["batch", "query"]].to_numpy()):
        raise InputError(
            "queries of both sides must be in the same order; objectives of one direction and of two are not. Leave "
            "--top 0"
        )
    if comparable and result.other_numbers:
        pairs = zip(a["probe"], a["objective"], b["objective"], strict=True)
        kept &= [_key(*pair, column) not in result.other_numbers for pair in pairs]
    numbers = pd.DataFrame({
        "batch": a["batch"], "batch_row": _batch_rows(a), **{name: a[name] for name in _SAME if name in a},
        "b_objective": b["objective"], "b_eps": b["eps"],
        "a": a[column].astype(float), "b": b[column].astype(float),
    })[kept]  # fmt: skip
    numbers["difference"] = numbers["b"] - numbers["a"]
    keys = [str(name) for name in numbers if name not in ("batch", "batch_row", "a", "b", "difference")]
    groups = numbers.groupby(keys, dropna=False, sort=False, observed=True)
    means = groups.agg(a=("a", "mean"), b=("b", "mean"), difference=("difference", "mean"), n=("difference", "count"))
    largest = _largest_change(numbers, groups.ngroup().to_numpy())
    means = means.assign(batch=largest["batch"].to_numpy(), batch_row=largest["batch_row"].to_numpy())
    means = means[means["difference"].notna() & (means["difference"] != 0)].reset_index()
    lists = means.groupby(_LIST, dropna=False, sort=False, observed=True)
    means = means.assign(list=lists.ngroup(), size=means["difference"].abs())
    means = means.sort_values("size", ascending=False, kind="stable")
    means["place"] = means.groupby("list").cumcount()
    chosen = means.sort_values("place", kind="stable").head(top)
    rows = chosen.sort_values(["list", "place"]).drop(columns=["list", "size", "place"]).reset_index(drop=True)
    return rows.assign(item=_items(rows, embedded), statistic=column)


def _batch_rows(queries: pd.DataFrame) -> pd.Series[int]:
    """Return the row of each query in the S of its batch; rows of single queries are in that order."""
    names = ["batch", *(name for name in _SAME if name != "query" and name in queries)]
    return queries.groupby(names, dropna=False, sort=False, observed=True).cumcount()


def _largest_change(numbers: pd.DataFrame, group: npt.NDArray[np.integer[Any]]) -> pd.DataFrame:
    """Return the row with the largest difference in each group of rows; of ties the first."""
    order = np.lexsort((-numbers["difference"].abs().to_numpy(), group))
    return numbers.iloc[order[np.unique(group[order], return_index=True)[1]]]


def negatives_of_changed(
    queries: pd.DataFrame, sides: tuple[HeaviestNegatives, HeaviestNegatives], a: SplitEmbeddings, b: SplitEmbeddings
) -> pd.DataFrame:
    """Return the heaviest negatives of changed queries on both sides, in the batch of the query.

    Columns are those of `HeaviestNegatives.of_queries`, `place` (row of the query in the list) and `side` (A or B). The
    first objective of the sweep stands for a number that depends on no objective.

    Args:
        queries: rows of `changed_queries`.
        sides: list the queries of A and of B.
        a: the split of A.
        b: the split of B.
    """
    parts = []
    for side, listing, embedded, name in (("A", sides[0], a, "objective"), ("B", sides[1], b, "b_objective")):
        wanted = queries[["direction", "batch", "batch_row"]].assign(
            objective=queries[name].fillna(listing.sweep.objectives[0]), place=np.arange(len(queries))
        )
        rows = listing.of_queries(embedded, wanted)
        keys = ["objective", "direction", "batch", "batch_row"]
        parts.append(wanted.merge(rows, on=keys, sort=False).assign(side=side))
    joined = pd.concat(parts, ignore_index=True)
    return joined.sort_values(["place", "side", "rank"], kind="stable", ignore_index=True)


def changed_document(queries: pd.DataFrame, negatives: pd.DataFrame) -> list[dict[str, Any]]:
    """Return changed queries for JSON, each with its weights and negatives under A and B.

    Args:
        queries: rows of `changed_queries`.
        negatives: rows of `negatives_of_changed`.
    """
    shown = plain_rows(queries)
    for position, of_query in negatives.groupby("place", sort=False):
        for side, of_side in of_query.groupby("side", sort=False):
            query, heaviest = next(queries_of(of_side))
            entry = {"weight_unit": str(of_side["weight_unit"].iloc[0]), **query, "negatives": heaviest}
            shown[int(str(position))]["heaviest" if side == "A" else "b_heaviest"] = entry
    return shown


def left_out_pairs(result: PairedResult, column: str) -> list[tuple[str, str]]:
    """Return the pairs of objectives that compute different statistics from a column."""
    pairs = ((a, b) for _, a, b, name in sorted(result.other_numbers, key=str) if name == column)
    return [(str(a), str(b)) for a, b in dict.fromkeys(pairs)]


def _key(probe: Any, a: Any, b: Any, column: str) -> NumberKey:
    """Return the key of a query's number: its probe, both objectives and its column."""
    return str(probe), a if isinstance(a, str) else None, b if isinstance(b, str) else None, column


def _items(rows: pd.DataFrame, embedded: SplitEmbeddings) -> list[str]:
    """Return the ids of queries: those of the second side in its direction, those of both sides as one set."""
    is_one_set = embedded.sides.is_one_set
    joined = embedded.image_ids if is_one_set else [*embedded.image_ids, *embedded.caption_ids]
    ids = {ONE_SET: joined, **({} if is_one_set else {embedded.sides.label("t2i"): embedded.caption_ids})}
    queries = zip(rows["direction"], rows["query"], strict=True)
    return [str(ids.get(direction, embedded.image_ids)[int(query)]) for direction, query in queries]
