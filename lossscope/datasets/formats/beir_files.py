"""Files of BEIR: documents and queries by id, judgements of each split, and what a TREC run says of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sized

from lossscope.errors import InputError
from lossscope.io.json_files import expect, identifier, shorten
from lossscope.io.json_lines import iter_json_lines
from lossscope.io.reading import show_path
from lossscope.io.trec_files import iter_judgements, iter_run


def read_texts(location: str, wanted: Collection[str] | None = None) -> dict[str, str]:
    """Return the texts of corpus.jsonl or queries.jsonl by id, in their order; a title stands before its text.

    Args:
        location: of the file.
        wanted: ids of those that are kept; None: all.

    Raises:
        InputError: a line without `_id` or `text`, or one id twice, by its number.
    """
    texts: dict[str, str] = {}
    for where, key, text in _iter_texts(location):
        if key in texts:
            raise InputError(f"ids of {show_path(location)} must be unique; {where} has {shorten(key)} again")
        if wanted is None or key in wanted:
            texts[key] = text
    return texts


def read_judgements(location: str) -> dict[str, dict[str, tuple[float, int]]]:
    """Return query -> document -> (score, line), in the order of the lines.

    Raises InputError for a line that cannot be read, for a pair that is judged twice, and for a file without any.
    """
    judged: dict[str, dict[str, tuple[float, int]]] = {}
    for judgement in iter_judgements(location):
        documents = judged.setdefault(judgement.query, {})
        if judgement.document in documents:
            pair = f"{shorten(judgement.query)} and {shorten(judgement.document)}"
            raise InputError(
                f"{show_path(location)} must judge a pair once; line {judgement.line} has {pair} again, as line "
                f"{documents[judgement.document][1]}"
            )
        documents[judgement.document] = judgement.score, judgement.line
    require_rows(location, judged, "judgements")
    return judged


def require_rows(location: str, rows: Sized, what: str) -> None:
    """Raise InputError for a file of judgements or of a run without a single one, as a program that failed leaves it.

    Args:
        location: of the file.
        rows: what it holds, by query.
        what: it must hold.
    """
    if not len(rows):
        raise InputError(f"{show_path(location)} must have {what}; it has none. Write it anew, or leave it out")


def read_ranking(location: str, queries: Collection[str], known: Collection[str]) -> dict[str, dict[str, int]]:
    """Return query -> document -> line of a TREC run, best score first; equal scores keep the order of the lines.

    Args:
        location: of the run.
        queries: whose rankings are returned.
        known: ids of all queries.

    Raises:
        InputError: a line that cannot be read, a query that is not known, or a document twice, by its line; a file
            without a ranked document.
    """
    ranked: dict[str, dict[str, tuple[float, int]]] = {}
    met = set[str]()
    for entry in iter_run(location):
        query = entry.query
        met.add(query)
        if query not in known:
            raise InputError(_unknown(location, entry.line, "query", entry.query, "queries.jsonl"))
        if query in queries:
            documents = ranked.setdefault(query, {})
            if entry.document in documents:
                got = f"{shorten(entry.document)} again for {shorten(query)}"
                raise InputError(
                    f"{show_path(location)} must rank a document once per query; line {entry.line} has {got}"
                )
            documents[entry.document] = entry.score, entry.line
    require_rows(location, met, "ranked documents")
    return {
        query: {document: line for document, (_, line) in sorted(scores.items(), key=lambda item: -item[1][0])}
        for query, scores in ranked.items()
    }


def require_known(location: str, lines: Mapping[str, int], known: Collection[str], what: str, file: str) -> None:
    """Raise InputError, naming the first line, for ids that a file of texts does not have.

    Args:
        location: of the file that names them.
        lines: id -> line that names it.
        known: ids of the file of texts.
        what: query or document, whose ids they are.
        file: of the texts.
    """
    unknown = {key: line for key, line in lines.items() if key not in known}
    if unknown:
        key, line = min(unknown.items(), key=lambda item: item[1])
        raise InputError(_unknown(location, line, what, key, file, len(unknown) - 1))


def _unknown(location: str, line: int, what: str, key: str, file: str, others: int = 0) -> str:
    more = f", nor has it {others} others" if others else ""
    return (
        f"line {line} of {show_path(location)} must name a {what} of {file}; it has no {shorten(key)}{more}: the files "
        "are of different releases, or one is cut off"
    )


def _iter_texts(location: str) -> Iterator[tuple[str, str, str]]:
    """Yield place, id and text of each line."""
    for block in iter_json_lines(location, {"_id", "title", "text"}.__contains__):
        absent = [None] * len(block.lines)
        rows = [block.columns.get(name, absent) for name in ("_id", "title", "text")]
        for row, (key, title, text) in enumerate(zip(*rows, strict=True)):
            where = block.place(row)
            name = identifier({} if key is None else {"_id": key}, "_id", where)
            body = expect(text, str, f"'text' of {where}")
            whole = f"{_text(title, 'title', where)} {body}".strip()
            yield where, name, whole


def _text(value: object, key: str, where: str) -> str:
    return "" if value is None else expect(value, str, f"{key!r} of {where}")
