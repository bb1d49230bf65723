"""Footnotes of a page: each text stands once, and has one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Notes:
    """Footnotes of a page: the same text has one number and stands once, in the chapter that has it first."""

    _numbers: dict[str, int] = field(default_factory=dict)
    _plain: dict[str, list[str]] = field(default_factory=dict)
    _numbered: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    _chapter: str = ""

    def start(self, chapter: str) -> None:
        """Let the following notes belong to a chapter."""
        self._chapter = chapter
        self._plain[chapter], self._numbered[chapter] = [], []

    def number(self, text: str) -> int:
        """Return the number of a note that cells refer to."""
        if text not in self._numbers:
            self._numbers[text] = len(self._numbers) + 1
            self._numbered[self._chapter].append((self._numbers[text], text))
        return self._numbers[text]

    def add(self, text: str) -> None:
        """Add a note on whole tables of the chapter."""
        if text not in self._plain[self._chapter]:
            self._plain[self._chapter].append(text)

    def plain(self, chapter: str) -> Sequence[str]:
        """Return the notes on whole tables of a chapter."""
        return self._plain.get(chapter, ())

    def numbered(self, chapter: str) -> Sequence[tuple[int, str]]:
        """Return the numbered notes that stand in a chapter."""
        return self._numbered.get(chapter, ())
