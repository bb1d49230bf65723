"""Which letter has a footnote?"""

from __future__ import annotations

import string


class Footnotes:
    """Letters for words, in the order in which they are asked for; the same words have the same letter.

    >>> notes = Footnotes()
    >>> notes.letter("n = 2"), notes.letter("wrong"), notes.letter("n = 2")
    ('a', 'b', 'a')
    >>> notes.told()
    ('[a] n = 2', '[b] wrong')
    """

    def __init__(self) -> None:
        self._words: list[str] = []

    def letter(self, words: str) -> str:
        """a, b, ... z, aa, ab, ..."""
        if words not in self._words:
            self._words.append(words)
        return _letters(self._words.index(words))

    def told(self) -> tuple[str, ...]:
        """The footnotes, as they stand below a table."""
        return tuple(f"[{_letters(place)}] {words}" for place, words in enumerate(self._words))


def joined(*marks: str) -> str:
    """Marks of one cell together, each once, empty ones left out: `a,†`."""
    return ",".join(dict.fromkeys(one for mark in marks for one in mark.split(",") if one))


def _letters(place: int) -> str:
    more, letter = divmod(place, 26)
    return (_letters(more - 1) if more else "") + string.ascii_lowercase[letter]
