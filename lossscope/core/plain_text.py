"""Do two texts say the same but for punctuation, white space, a title in front, or one word of many that says little?

Names, numbers, negations and any other word make another text: a template has many instances, and captions of other
pictures differ in a colour.
"""

from __future__ import annotations

import re

from .near_text import LEAST, MARKS, TITLE_MARKS, TITLE_SHARE

MANY = 10  # words of the shorter text of two that differ in a word
LIGHT = frozenset(("a", "an", "the", "is", "are", "was", "were", "that", "which", "who", "there", "then", "and"))
ARTICLES = frozenset(("a", "an", "the"))
_IS_MARK = re.compile(rf"[{re.escape(MARKS)}()\[\]]+(?!\d)|(?<=[^\W\d])-(?=[^\W\d])")
_IS_BLANK = re.compile(r"(?<!\d) (?!\d)")
_IS_TITLE = re.compile("|".join(map(re.escape, TITLE_MARKS)))


def plain_words(form: str) -> list[str]:
    """Return the words of a normal form without punctuation; marks before a digit and lone hyphens stay.

    >>> plain_words("the t-shirt (red), no. 5, costs -3.5.")
    ['the', 't', 'shirt', 'red', 'no', '5', 'costs', '-3.5']
    """
    return _IS_MARK.sub(" ", form).split()


def letters(form: str) -> str:
    """Return the letters of a normal form: blanks stay where a digit is beside them, as they make another number.

    >>> letters("a skate-board, a 482.") == letters("a skateboard a 482")
    True
    """
    return _IS_BLANK.sub("", " ".join(plain_words(form)))


def without_title(form: str) -> str | None:
    """Return a normal form behind its title, which is at most as long as the rest; None where it has none.

    >>> without_title("emma (novel): a story of love"), without_title("a story of love: emma")
    ('a story of love', None)
    """
    end = _IS_TITLE.search(form)
    if end is None or len(form) - end.end() < TITLE_SHARE * len(form):
        return None
    return form[end.end() :].lstrip()


def text_key(form: str) -> str:
    """Return what normal forms share that differ in punctuation and white space alone; of short ones all of it."""
    text = letters(form)
    return text if len(text) >= LEAST else form


def rest_key(form: str) -> str | None:
    """Return the key of what stands behind the title of a normal form; None where it has no title, or is short."""
    rest = without_title(form)
    return None if rest is None or len(text := letters(rest)) < LEAST else text


def is_same_text(form: str, other: str) -> bool:
    """Return whether two normal forms differ in punctuation, white space, or a title in front alone, if at all."""
    first, second = text_key(form), text_key(other)
    return first == second or rest_key(form) == second or rest_key(other) == first


def is_near_duplicate(form: str, other: str) -> bool:
    """Return whether two different normal forms are the same text, or differ in one of many words that says little.

    That is an article, a form of be or a joining word more or less, or an article for another. A mistyped word makes
    another text: a letter more (Johnson, Johnston) is another name.
    """
    if form == other:
        return False
    return is_same_text(form, other) or _differ_in_a_light_word(plain_words(form), plain_words(other))


def _differ_in_a_light_word(words: list[str], others: list[str]) -> bool:
    short, long = sorted((words, others), key=len)
    if len(short) < MANY or len(long) > len(short) + 1:
        return False
    same = next((index for index, word in enumerate(short) if word != long[index]), len(short))
    if len(long) > len(short):
        return short[same:] == long[same + 1 :] and long[same] in LIGHT
    return short[same + 1 :] == long[same + 1 :] and {short[same], long[same]} <= ARTICLES
