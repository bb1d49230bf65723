"""Which texts are near copies, and which queries ask the same? Their characters alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LEAST = 20  # characters of the shorter text: short answers (yes, yes.) and names say little
SHARE = 0.9  # of the longer text that is the shorter one, where words stand before or behind it
TITLE_SHARE = 0.5  # the same, where what stands before it ends as titles do
MARKS = ".,;:!?…。．，、；：！？·•\"'`“”‘’„«»"  # that end or quote a sentence; not - % + #, which change what it says
_EDGES = f"{MARKS} ()[]"
TITLE_ENDS, WIDE_TITLE_ENDS = (":", "|", "-", "–", "—"), ("：", "｜")
TITLE_MARKS = (*(f"{end} " for end in TITLE_ENDS), *WIDE_TITLE_ENDS)  # with what follows
_KEY = 12  # characters at both ends: near copies have one of the two in common
_MOST = 64  # positives of a row with one such key that a negative is compared with


def without_edges(form: str) -> str:
    """Return a normal form without marks and quotes at its ends; as it is where nothing else is left.

    >>> without_edges("who wrote emma?")
    'who wrote emma'
    """
    return form.strip(_EDGES) or form


def is_near_copy(text: str, other: str) -> bool:
    """Return whether one normal form is the other with marks at its ends, a title in front, or few words at one end.

    A word that is replaced, moved, or dropped within the text makes another text, as do other digits: data of
    contrastive pairs (a man on a horse, a horse on a man) are made so. Equal texts are copies, not near ones.
    """
    short, long = sorted((text.strip(_EDGES), other.strip(_EDGES)), key=len)
    if text == other or len(short) < max(LEAST, TITLE_SHARE * len(long)):
        return False
    if len(short) == len(long):
        return short == long
    is_most = len(short) >= SHARE * len(long)
    if is_most and long.startswith(short) and long[len(short) :].lstrip(MARKS).startswith(" "):
        return True
    if not long.endswith(short):
        return False
    front = long[: -len(short)].rstrip("\"'`“‘„«([")
    is_title = front.rstrip().endswith(TITLE_ENDS)
    return front.endswith(WIDE_TITLE_ENDS) or (front.endswith(" ") and (is_most or is_title))


def rows_of_near_copies(positives: Iterable[list[str]], negatives: Iterable[list[str]]) -> list[int]:
    """Return the rows with a negative that is a near copy of a positive of the same row.

    Args:
        positives: normal forms of each row.
        negatives: normal forms of each row.
    """
    lists = enumerate(zip(positives, negatives, strict=True))
    return [row for row, (texts, others) in lists if texts and others and near_copies_of(texts, others)]


def near_copies_of(positives: Sequence[str], negatives: Sequence[str]) -> list[str]:
    """Return the negatives, as normal forms, that are near copies of a positive."""
    by_key: dict[str, list[str]] = {}
    for positive in positives:
        text = positive.strip(_EDGES)
        if len(text) >= LEAST:
            for key in {text[:_KEY], text[-_KEY:]}:
                by_key.setdefault(key, []).append(positive)
    if not by_key:
        return []
    found = []
    for negative in negatives:
        text = negative.strip(_EDGES)
        if text[:_KEY] in by_key or text[-_KEY:] in by_key:  # of few negatives
            near = [*by_key.get(text[:_KEY], ())[:_MOST], *by_key.get(text[-_KEY:], ())[:_MOST]]
            if any(is_near_copy(negative, positive) for positive in near):
                found.append(negative)
    return found
