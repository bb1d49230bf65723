"""What rows say of themselves, slowly: dictionaries of texts and one row after the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

Row = tuple[str, list[str], list[str]]  # query, positives, negatives


def counts(splits: Sequence[Sequence[Row]], max_words: int) -> dict[str, int]:
    """Return id -> number of rows, of the splits of a data set."""
    numbers: dict[str, int] = {}
    seen_queries: set[str] = set()
    seen_documents: set[str] = set()
    for number, rows in enumerate(splits):
        normal = [(form(query), [form(t) for t in own], [form(t) for t in other]) for query, own, other in rows]
        positives: dict[str, set[str]] = {}
        for query, own, _ in normal:
            positives.setdefault(query, set()).update(filter(None, own))
        documents = set().union(*positives.values()) if positives else set()
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for query, own, negatives in normal:
            texts = [query, *own, *negatives]
            mine = positives[query]
            key = (query, tuple(sorted(own)))
            faults = {
                "duplicates": key in seen,
                "positive-as-negative": any(text in mine for text in negatives),
                "other-positive-as-negative": any(text in documents and text not in mine for text in negatives),
                "empty-text": "" in texts,
                "long-text": any(len(text.split()) > max_words for text in texts),
                "no-positive": not own,
                "split-leak": number > 0 and (query in seen_queries or any(text in seen_documents for text in own)),
            }
            seen.add(key)
            for id, wrong in faults.items():
                numbers[id] = numbers.get(id, 0) + wrong
        seen_queries |= {query for query, _, _ in normal if query}
        seen_documents |= documents
    return {id: number for id, number in numbers.items() if number}


def form(text: str) -> str:
    """Return the text as it is compared."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
