"""Captions as X-VLM reads them, in plain Python."""

from __future__ import annotations

_MARKS = ".'!?\"()*#:;~,"


def cleaned(caption: str, words: int) -> str:
    """The caption in lower case, without punctuation, `-` and `/` as spaces, its first `words` words.

    A tokeniser does the same by the steps of layers/cleaning.py. Source: Zeng et al. 2022 (X-VLM).

    >>> cleaned("A man's T-shirt; <person> (red/blue).", 5)
    'a mans t shirt person'
    """
    text = caption.lower().translate({ord(mark): None for mark in _MARKS}).replace("-", " ").replace("/", " ")
    return " ".join(text.replace("<person>", "person").split()[:words])
