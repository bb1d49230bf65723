"""Text of any origin as text that can steer no terminal and no page: what cannot be seen is written out."""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"  # within words of Persian and of Indian languages
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def show_text(text: str, keep: str = "") -> str:
    r"""Return a text of any origin with what cannot be printed as \xNN or \uNNNN: it can steer no terminal or page.

    Escape sequences, other control characters, marks of the writing direction and halves of surrogate pairs are
    written so; letters of any language, blanks and the joiners between letters stay as they are.

    Args:
        text: a name, a caption, a message.
        keep: control characters that stay, such as those between the lines of a message.

    >>> print(show_text("café \x1b[31mred\u202e"))
    café \x1b[31mred\u202e
    """
    if text.isprintable():
        return text
    plain = _HALVES.sub(lambda half: ascii(half[0])[1:-1], text)  # those that stand for no byte of a file name
    plain = plain.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(letter if _is_plain(letter) or letter in keep else ascii(letter)[1:-1] for letter in plain)


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"
