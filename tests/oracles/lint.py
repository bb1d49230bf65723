"""Count the faults of rows slowly: dictionaries of texts, and one row after the other."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

Row = tuple[str, list[str], list[str]]  # query, positives, negatives


def counts(splits: Sequence[Sequence[Row]], max_words: int) -> dict[str, int]:
    """Return id -> number of rows, of the splits of a data set."""
    numbers: dict[str, int] = {}
    seen_queries: set[str] = set()
    seen_documents: set[str] = set()
    for number, rows in enumerate(splits):
        normal = [
            (form(query), [form(t) for t in matching], [form(t) for t in other]) for query, matching, other in rows
        ]
        positives: dict[str, set[str]] = {}
        for query, matching, _ in normal:
            positives.setdefault(query, set()).update(filter(None, matching))
        plain: dict[str, set[str]] = {}
        for query, matching in positives.items():
            plain.setdefault(strip(query) or query, set()).update(matching)
        all_own, all_other = ([t for row in normal for t in row[side]] for side in (1, 2))
        documents = set().union(*positives.values()) if positives else set()
        seen: set[tuple[str, tuple[str, ...]]] = set()
        earlier: list[str] = []
        for query, matching, negatives in normal:
            texts = [query, *matching, *negatives]
            mine = positives[query]
            key = (query, tuple(sorted(matching)))
            faults = {
                "duplicates": key in seen,
                "positive-as-negative": any(text in mine for text in negatives),
                "other-positive-as-negative": any(
                    text not in mine
                    and (text in plain[strip(query) or query] or (query and text and query in positives.get(text, ())))
                    for text in negatives
                ),
                "near-duplicates": any(is_near_duplicate(text, other) for text in matching for other in earlier),
                "near-copies": any(is_near(text, other) for text in matching for other in negatives),
                "short-text": is_cut(matching) or is_short(negatives, documents, all_own, all_other),
                "empty-text": "" in texts,
                "long-text": any(len(text.split()) > max_words for text in texts),
                "no-positive": not matching,
                "split-leak": number > 0
                and (query in seen_queries or any(text in seen_documents for text in matching)),
            }
            seen.add(key)
            earlier += matching
            for id, wrong in faults.items():
                numbers[id] = numbers.get(id, 0) + wrong
        seen_queries |= {query for query, _, _ in normal if query}
        seen_documents |= documents
    return {id: number for id, number in numbers.items() if number}


MARKS = (
    ".,;:!?\u2026\u3002\uff0e\uff0c\u3001\uff1b\uff1a\uff01\uff1f\u00b7\u2022\"'`\u201c\u201d\u2018\u2019"
    + "\u201e\u00ab\u00bb"
)
"""Marks of sentences and quotes."""


def strip(text: str) -> str:
    """Return a text without marks, quotes, brackets and blanks at its ends."""
    return text.strip(MARKS + " ()[]")


def is_near(text: str, other: str) -> bool:
    """Are two texts near copies: does the longer add only a mark, a title or a few words?"""
    short, long = sorted((strip(text), strip(other)), key=len)
    share = len(short) / max(len(long), 1)
    if text == other or len(short) < 20 or share < 0.5:
        return False
    if short == long:
        return True
    behind = long.removeprefix(short)
    if behind != long and share >= 0.9 and behind.lstrip(MARKS)[:1] == " ":
        return True
    before = long.removesuffix(short)
    if before == long or len(short) == len(long):
        return False
    before = before.rstrip("\"'`\u201c\u2018\u201e\u00ab([")
    if before[-1:] in ("\uff1a", "\uff5c"):
        return True
    return before[-1:] == " " and (share >= 0.9 or before.rstrip()[-1:] in (":", "|", "-", "\u2013", "\u2014"))


LIGHT = {"a", "an", "the", "is", "are", "was", "were", "that", "which", "who", "there", "then", "and"}


def is_near_duplicate(text: str, other: str) -> bool:
    """Are two texts equal except for punctuation, blanks, a title in front or a light word?"""
    if text == other:
        return False
    if min(len(letters(text)), len(letters(other))) >= 20:
        if letters(text) == letters(other):
            return True
        for long, short in ((text, other), (other, text)):
            marks = [mark + " " for mark in ":|-\u2013\u2014"] + ["\uff1a", "\uff5c"]
            ends = sorted((long.index(mark), len(mark)) for mark in marks if mark in long)
            if ends and len(rest := long[sum(ends[0]) :]) * 2 >= len(long) and letters(rest) == letters(short):
                return True
    short_words, long_words = sorted((words(text), words(other)), key=len)
    if len(short_words) < 10:
        return False
    for index, word in enumerate(long_words):
        if word in LIGHT and long_words[:index] + long_words[index + 1 :] == short_words:
            return True
    changed = [pair for pair in zip(short_words, long_words, strict=False) if len({*pair}) == 2]
    if len(short_words) != len(long_words) or len(changed) != 1:
        return False
    return {*changed[0]} <= {"a", "an", "the"}


def words(text: str) -> list[str]:
    """Return the words of a text without punctuation."""
    kept = ""
    for index, letter in enumerate(text):
        behind, before = text[index + 1 : index + 2], text[index - 1 : index] if index else ""
        joins = letter == "-" and before.isalpha() and behind.isalpha()
        is_mark = letter in MARKS + "()[]" and not behind.isdecimal()
        kept += " " if joins or is_mark else letter
    return kept.split()


def letters(text: str) -> str:
    """Return a text without blanks, but for those beside a digit."""
    spaced = " ".join(words(text))
    return "".join(
        letter
        for index, letter in enumerate(spaced)
        if letter != " " or spaced[index - 1].isdecimal() or spaced[index + 1].isdecimal()
    )


def is_cut(positives: Sequence[str]) -> bool:
    """Are positives the characters of a text?"""
    return len(positives) >= 4 and max(map(len, positives)) <= 1


def is_short(
    negatives: Sequence[str], documents: set[str], all_positives: Sequence[str], all_negatives: Sequence[str]
) -> bool:
    """Are negatives of a row characters, or far shorter than the positives of all rows?"""
    if not negatives or not all_positives:
        return False
    usual = code(sorted(map(len, all_positives))[(len(all_positives) - 1) // 2])
    if usual >= 1 + 35 and any(len(text) == 1 and text not in documents for text in negatives):
        return True
    other = code(sorted(map(len, all_negatives))[(len(all_negatives) - 1) // 2])
    return other <= usual - 35 and code(max(map(len, negatives))) <= usual - 35


def code(length: int) -> int:
    """Return the step of a length; eight steps double it."""
    return 1 + int(8 * math.log2(max(length, 1)))


def form(text: str) -> str:
    """Return the form of a text that lint compares."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
