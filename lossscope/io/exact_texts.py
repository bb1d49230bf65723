"""Write any text into a file and read the same text back: as it is where that is plain, else as a JSON string."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from lossscope.visible_text import show_text


@dataclass(frozen=True)
class TextForm:
    """How texts stand in a kind of file, so that `read(write(text)) == text` for every text of Unicode.

    A plain text stands as it is. Any other stands as a JSON string, in quotes, with escapes for all that nobody sees;
    so does a text that looks like such a string. Whatever `write` never returns comes from another program, and is
    read as it stands.
    """

    is_plain: Callable[[str], bool]  # whether a text may stand as it is
    is_seen: Callable[[str], bool]  # whether a letter of a JSON string needs no escape
    mark: Callable[[str], str] = str  # plain text -> what stands in the file

    def write(self, text: str) -> str:
        r"""Return what stands in the file.

        Half of a surrogate pair, which no file of text can hold, becomes an escape that stays one when it is read.

        >>> IN_CSV.write("a b"), IN_CSV.write(" x"), IN_CSV.write("a\u202e"), IN_RUNS.write("a b"), IN_CSV.write("=a")
        ('a b', '" x"', '"a\\u202e"', '"a\\u0020b"', "'=a")
        """
        return self.mark(text) if self.is_plain(text) and self._unquote(text) is None else self._quote(text)

    def read(self, cell: str) -> str:
        r"""Return the text of what stands in a file.

        >>> IN_CSV.read('" x"'), IN_CSV.read('"x"'), IN_CSV.read(r'"a\u202e"') == "a\u202e"
        (' x', '"x"', True)
        """
        if cell[:1] == "'":
            return cell[1:] if self.write(cell[1:]) == cell else cell
        text = self._unquote(cell)
        return cell if text is None else text

    def _quote(self, text: str) -> str:
        whole = json.dumps(text, ensure_ascii=False)
        return "".join(letter if self.is_seen(letter) else _escape(letter) for letter in whole)

    def _unquote(self, cell: str) -> str | None:
        """Return the text of a JSON string that `write` could have returned; None of anything else."""
        if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
            return None
        try:
            text = json.loads(cell)
            text.encode()
        except ValueError:  # no JSON string, or half of a surrogate pair
            return None
        needs_quotes = not self.is_plain(text) or self._unquote(text) is not None
        return text if needs_quotes and self._quote(text) == cell else None


def _escape(letter: str) -> str:
    return r"\u0020" if letter == " " else r"\u007f" if letter == "\x7f" else json.dumps(letter)[1:-1]


_FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # what spreadsheets run, after any apostrophes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|-?inf", re.IGNORECASE)
_WORD = re.compile("[!-~]+")


def _is_cell(text: str) -> bool:
    """Return whether a person sees all of a text in a cell, and no editor takes a part of it away."""
    return text == text.strip() and show_text(text, "\n\t") == text


def _disarm(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe is in front of one that is no number."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


IN_CSV = TextForm(_is_cell, str.isprintable, _disarm)
"""Cells of CSV files, which people open in spreadsheets and terminals."""
IDS_IN_CSV = TextForm(lambda text: bool(text) and _is_cell(text), str.isprintable, _disarm)
"""Ids in cells of CSV files, where an empty cell is no id."""
IN_RUNS = TextForm(lambda text: _WORD.fullmatch(text) is not None, lambda letter: "!" <= letter <= "~")
"""Words between blanks, in run files and judgements of TREC."""
IN_LINES = TextForm(lambda text: bool(text) and "\n" not in text and _is_cell(text), str.isprintable)
"""Ids on lines of text files."""
IN_ARRAYS = TextForm(lambda text: not text.endswith("\0"), str.isprintable)
"""Entries of numpy's arrays of texts, which lose NUL letters at their ends."""
