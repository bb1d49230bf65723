"""Number footnotes with letters, and join the marks of cells."""

from __future__ import annotations

import string


class Footnotes:
    """Texts of footnotes by letter, in order of first use; the same text has the same letter.

    >>> notes = Footnotes()
    >>> notes.letter("n = 2"), notes.letter("wrong"), notes.letter("n = 2")
    ('a', 'b', 'a')
    >>> notes.texts()
    ('[a] n = 2', '[b] wrong')
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def letter(self, text: str) -> str:
        """Return the letter of a footnote: a, b, ... z, aa, ab, ..."""
        if text not in self._texts:
            self._texts.append(text)
        return _letters(self._texts.index(text))

    def texts(self) -> tuple[str, ...]:
        """Return the footnotes as printed below a table."""
        return tuple(f"[{_letters(number)}] {text}" for number, text in enumerate(self._texts))


def join_marks(*marks: str) -> str:
    """Join the marks of a cell, each once, without empty marks: `a,†`."""
    return ",".join(dict.fromkeys(letter for mark in marks for letter in mark.split(",") if letter))


def _letters(number: int) -> str:
    more, letter = divmod(number, 26)
    return (_letters(more - 1) if more else "") + string.ascii_lowercase[letter]
