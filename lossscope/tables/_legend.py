"""Explain the columns of a table, a line each, from the docstrings of the probes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from functools import cache

from lossscope.declarations import declarations

_LINES = 14  # lines, at most: a longer legend belongs into the documentation
_ELSEWHERE = "`lossscope list probes` and docs/probes.md explain each statistic."


def legend(statistics: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return `C_neg: negatives with weight above eps, per query` for each statistic that its probe explains.

    Args:
        statistics: (probe, statistic) in the order of the lines.
    """
    names: dict[str, dict[str, None]] = {}  # explanation -> its statistics
    for probe, name in statistics:
        if text := explanations(probe.partition(":")[0]).get(name):
            names.setdefault(text, {})[name] = None
    lines = tuple(f"{', '.join(same)}: {text}" for text, same in names.items())
    return lines if len(lines) <= _LINES else (_ELSEWHERE,)


@cache
def explanations(probe: str) -> dict[str, str]:
    """Return statistic -> explanation, the first sentence of its entry below `Statistics:` in the probe's docstring."""
    texts = {probe_declaration.name: probe_declaration.text for probe_declaration in declarations("probes")}
    entries = _entries(texts.get(probe, ""))
    return {name.strip(): _first_sentence(what) for names, what in entries for name in names.split(",")}


def _entries(docstring: str) -> list[tuple[str, str]]:
    """Return (names, text) of the entries; their further lines are indented."""
    _, _, below = docstring.partition("Statistics:\n")
    block = textwrap.dedent(below.split("\n\n")[0])
    entries = re.split(r"\n(?=\S)", block)
    return [
        (names, " ".join(what.split())) for names, colon, what in (entry.partition(":") for entry in entries) if colon
    ]


def _first_sentence(text: str) -> str:
    return re.sub(r" \(E\d+\)", "", re.split(r"\.(?: |$)", text)[0])  # without references to docs/errata.md
