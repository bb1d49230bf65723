"""Read `name value` pairs from a printed line: meters, progress bars, dictionaries of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .base import EVALUATION_COLUMNS, STEP_COLUMNS
from .column_names import PLACES, rank_name

_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)"
_WORD = r"[a-z_][\w@./\-]*"
_QUOTED = rf"['\"](?P<quoted>[^'\"]+)['\"]\s*:\s*['\"]?(?P<item>{_NUMBER})['\"]?(?=\s*[,}}])"
_METER = (
    rf"(?<![\w@./\-'\"])(?P<name>{_WORD}(?: {_WORD}){{0,2}})(?:\s*[:=]\s*|\s+)(?P<value>{_NUMBER})(?![\w:/]|\.\d|-\d)"
    rf"(?:\s*%)?(?:\s*\(\s*(?:avg|mean)?[:= ]*(?P<mean>{_NUMBER})\s*%?\))?"
)
_PAIR = re.compile(f"{_QUOTED}|{_METER}", re.IGNORECASE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_VALIDATION = re.compile(
    r"(?<![\w/])(?:test|testing|val|valid|validat(?:ion|e|ing)|eval|evaluat(?:ion|e|ing)|dev)(?![\w/])", re.IGNORECASE
)


def plain(line: str) -> str:
    """Return a line without the codes of colours."""
    return _COLOURS.sub("", line)


def is_validation(line: str) -> bool:
    """Return whether a line announces, before its numbers, that they come from a validation.

    >>> is_validation("Test: [ 10/196]  Loss 1.2 (1.3)"), is_validation("Epoch 3: val_loss 1.2")
    (True, False)
    """
    first = _PAIR.search(line)
    before = line[: first.start()] if first else line
    return before.lstrip().startswith("* ") or bool(_VALIDATION.search(before)) or line.lstrip().startswith("* ")


def read_pairs(line: str, takes_mean: bool = False) -> dict[str, float]:
    """Return the numbers of a line by their names; the first where a name comes twice.

    >>> read_pairs("time 0.148 (0.313)  eta 1:54:45  loss_t 0.3012 (0.3011)")
    {'time': 0.148, 'loss_t': 0.3012}
    >>> read_pairs("{'loss': '0.91', 'epoch': 0.33}")
    {'loss': 0.91, 'epoch': 0.33}

    Args:
        line: without codes of colours.
        takes_mean: whether `value (mean)` gives the mean, as at the end of an evaluation.
    """
    found: dict[str, float] = {}
    for name, number in _iter_pairs(line, takes_mean):
        found.setdefault(name, float(number))
    return found


def _iter_pairs(line: str, takes_mean: bool) -> Iterator[tuple[str, str]]:
    for match in _PAIR.finditer(line):
        if match["quoted"] is not None:
            yield match["quoted"], match["item"]
        else:
            yield _without_words_before(match["name"]), (takes_mean and match["mean"]) or match["value"]


@cache
def _without_words_before(words: str) -> str:
    """Return the longest end of the words that names a column: `Train Loss` of `INFO Train Loss`."""
    parts = words.split(" ")
    ends = [" ".join(parts[start:]) for start in range(len(parts))]
    return next((end for end in ends if is_known(end)), parts[-1])


@cache
def is_known(name: str) -> bool:
    """Return whether a name is known as a column."""
    return any(rank_name(field, name) is not None for field in (*PLACES, *STEP_COLUMNS, *EVALUATION_COLUMNS))
