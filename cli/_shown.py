"""The queries that --show lists: with the most and the least gradient, and the negatives that carry it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lossscope.core.choices import OUTPUT, SOURCE, Choice
from lossscope.core.types import HIDDEN_FROM

from ._output import fold, notice, print_text, terminal_width

if TYPE_CHECKING:
    import pandas as pd

Show = Annotated[
    int | None,
    Choice(
        OUTPUT,
        "Queries to list with their heaviest negatives: those of most and least gradient, in diff the most changed.",
        low=1,
    ),
]
Audit = Annotated[
    Path | None,
    Choice(SOURCE, "Folder of `lossscope audit`, or its mask.npz: --show marks the negatives that it suspects."),
]
CSV = "heaviest_negatives.csv"  # of all queries, in the folder of --out
_INDENT = "     "
_SHORTEST = 12  # characters; a text that must be cut shorter is left out


@contextlib.contextmanager
def all_queries(folder: Path | None) -> Iterator[Callable[[pd.DataFrame], None] | None]:
    """Yield what writes rows of all queries into the folder of a frame; None without one."""
    if folder is None:
        yield None
        return
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_atomically

    with write_atomically(folder / CSV) as part, open(part, "w", encoding="utf-8", newline="") as stream:

        def write(rows: pd.DataFrame) -> None:
            text = format_csv(rows)
            stream.write(text if stream.tell() == 0 else text.partition("\n")[2])

        yield write


def print_shown(rows: pd.DataFrame, format: str, status: str, out: Path | None) -> None:
    """Print the lists below the table of a sweep; other formats than table and json have none, which a notice says.

    Args:
        rows: of `HeaviestNegatives.most_and_least`; of no column where --show was not typed.
        format: of the result.
        status: what the probabilities of the audit are; empty without one.
        out: folder of the frames, which has the rows of all queries.
    """
    if not len(rows) or format == "json":
        return
    if format != "table":
        notice(f"Note: {format} has the numbers alone; --format table and json list the queries of --show.")
        return
    lines = [line for _, of_key in rows.groupby(_LISTED, sort=False, dropna=False) for line in _lines_of_list(of_key)]
    print_text("\n".join(["", *lines, *closing_lines(rows, status), _all_line(out)]))


_LISTED = ["source", "objective", "direction", "convention", "weight_unit", "list"]


def _lines_of_list(rows: pd.DataFrame) -> list[str]:
    from lossscope.engine.heaviest_negatives import MOST, queries_of

    queries = list(queries_of(rows))
    row: Any = rows.iloc[0]
    of = f"{row['source']}, {row['direction']}, {row['objective']}, unit {row['weight_unit']}"
    heading = f"The {len(queries)} of {row['queries']} queries with the {row['list']} gradient ({of}):"
    if row["list"] != MOST and row["without_weight"] >= len(queries):
        number = f"{row['without_weight']} of {row['queries']}"
        heading = f"{number} queries have no gradient in any batch ({of}); the first {len(queries)}:"
    return [fold(heading), *(line for query, negatives in queries for line in query_lines(query, negatives)), ""]


def query_lines(query: Mapping[str, Any], negatives: list[dict[str, Any]]) -> list[str]:
    """Return the line of a query and those of its heaviest negatives, no wider than the terminal."""
    return [_line(f"  {query['query_id']}  {_weight(query)}", query["query_text"]), *negative_lines(query, negatives)]


def _weight(query: Mapping[str, Any]) -> str:
    return f"weight {_number(query['weight'])}  positive's similarity {query['positive_similarity']:.2f}"


def _number(weight: float) -> str:
    """Return a weight in three digits: 0.120, 160."""
    return f"{weight:#.3g}".rstrip(".")


def negative_lines(query: Mapping[str, Any], negatives: list[dict[str, Any]], indent: str = _INDENT) -> list[str]:
    """Return a line for each negative: weight, similarity, id, text, and what the audit says of it."""
    lines = []
    for _, same in groupby(negatives, lambda negative: (negative["candidate"], negative["negative_weight"])):
        negative, *again = same  # a batch may have an item several times, each with its weight
        numbers = f"weight {_number(negative['negative_weight'])}  similarity {negative['similarity']:.2f}"
        start = f"{indent}{numbers}  {negative['candidate_id']}"
        lines.append(_line(start, negative["candidate_text"], _remark(negative, len(again) + 1)))
    if query["as_heavy"]:
        weight = _number(negatives[-1]["negative_weight"])
        lines.append(f"{indent}and {query['as_heavy']} more of weight {weight}, none more similar")
    return lines or [f"{indent}no negative has weight"]


def _remark(negative: Mapping[str, Any], times: int) -> str:
    """Return how often a negative is listed, and why it may be none: the data or the audit say that it matches."""
    p = negative["probability"]
    remarks = [f"{times} times"] if times > 1 else []
    remarks += ["also a positive of the query"] if negative["known_positive"] else []
    remarks += [f"audit: {'suspected, ' if p >= HIDDEN_FROM else ''}p = {p:.2f}"] if p else []
    return f"  ({'; '.join(remarks)})" if remarks else ""


def print_changed(queries: pd.DataFrame, negatives: pd.DataFrame, status: str) -> None:
    """Print what carries the gradient of the queries that changed most, on both sides.

    Args:
        queries: rows of `changed_queries`.
        negatives: rows of `negatives_of_changed`.
        status: what the probabilities of the audit are; empty without one.
    """
    from lossscope.engine.heaviest_negatives import queries_of

    lines = ["", fold("The heaviest negatives of each, in the batch where it changed most:")]
    for position, of_query in negatives.groupby("place", sort=False):
        row: Any = queries.iloc[int(str(position))]
        start = f"  {row['direction']}  {row['item']}  {row['statistic']} {row['a']:.4g} → {row['b']:.4g}"
        lines.append(_line(start, of_query["query_text"].iloc[0]))
        for side, of_side in of_query.groupby("side", sort=False):
            query, of_side_negatives = next(queries_of(of_side))
            objective, unit = of_side["objective"].iloc[0], of_side["weight_unit"].iloc[0]
            lines.append(f"   {side}  {_weight(query)}  ({objective}, unit {unit})")
            lines += negative_lines(query, of_side_negatives)
    print_text("\n".join([*lines, *closing_lines(negatives, status)]))


def closing_lines(rows: pd.DataFrame, status: str) -> list[str]:
    """Return what the probabilities of an audit are, and how to see texts where the source has none."""
    lines = [f"Audit: {status}."] if status else []
    if rows["query_text"].isna().all() and rows["candidate_text"].isna().all():
        lines.append(
            "Texts: the source has none. A dump states them as `caption`, or `query_text` and `document_text`; a model "
            "reads those of its data: --data texts:file=FILE"
        )
    return [fold(line) for line in lines]


def _all_line(out: Path | None) -> str:
    return "All queries: add --out DIR." if out is None else f"All queries: {CSV} in {out}."


def _line(start: str, text: str | None, end: str = "") -> str:
    """Return a line whose text is cut at the terminal's width; its end stands below where it leaves no place for it."""
    width, words = terminal_width(), " ".join((text or "").split())
    if len(start) + len(end) + _SHORTEST > width and end:
        return f"{_line(start, text)}\n{_INDENT}{end}"
    space = width - len(start) - len(end) - 2
    cut = words if len(words) <= space else f"{words[: space - 1].rstrip()}…" if space >= _SHORTEST else ""
    return f"{start}  {cut}{end}" if cut else f"{start}{end}"
