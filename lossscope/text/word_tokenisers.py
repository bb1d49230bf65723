"""Captions -> words: our own rule, and nltk's Treebank rules, by which the released vocabularies were made."""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from lossscope.errors import InputError

WordTokeniser = Literal["words", "treebank", "treebank-ascii"]
"""How captions are cut: `words` by our rule (tokenise), `treebank` by nltk's (tokenise_treebank), `treebank-ascii` by
nltk's after A to Z alone are made lower case, as by code that does it to bytes."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|(?<=[^\W\d_])'[^\W\d_]+")
_SENTENCES = re.compile(r"\.['\")\]]*\s+\S")  # a full stop that may end a sentence before the end of the caption
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_PUNKT = "tokenizers/punkt_tab/english/"


def tokenise(text: str) -> list[str]:
    """Return lower-case words, numbers and apostrophe parts; everything else (punctuation, `_`) separates.

    >>> tokenise("The dog's 2 balls, 1,000.5 m away; it's RED-hot!")
    ['the', 'dog', "'s", '2', 'balls', '1,000.5', 'm', 'away', 'it', "'s", 'red', 'hot']
    """
    return _TOKEN.findall(unicodedata.normalize("NFC", text).lower().replace("’", "'"))


def tokenise_treebank(text: str, only_ascii: bool = False) -> list[str]:
    """Return the tokens of a lower-cased text by nltk's word_tokenize: punctuation and clitics are tokens of their own.

    A caption is one sentence unless nltk's punkt_tab is installed (has_punkt): inside it a full stop then stays at its
    word. Source: Bird, Loper & Klein 2009 (nltk).

    Args:
        text: the caption.
        only_ascii: make A to Z lower case and leave other capitals as they are.

    >>> tokenise_treebank("The dog doesn't like RED-hot t-shirts.")
    ['the', 'dog', 'does', "n't", 'like', 'red-hot', 't-shirts', '.']
    """
    lower = text.translate(_ASCII_LOWER) if only_ascii else text.lower()
    sentences = _punkt().tokenize(lower) if has_punkt() else [lower]
    return [token for sentence in sentences for token in _treebank().tokenize(sentence)]


WORD_TOKENISERS: Mapping[WordTokeniser, Callable[[str], list[str]]] = {
    "words": tokenise,
    "treebank": tokenise_treebank,
    "treebank-ascii": functools.partial(tokenise_treebank, only_ascii=True),
}


def require_word_tokeniser(name: str) -> WordTokeniser:
    """Return a name of WORD_TOKENISERS. Raises InputError for any other one."""
    for known in get_args(WordTokeniser):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"word_tokeniser must be one of {', '.join(WORD_TOKENISERS)}; got {name[:60]!r}")


def may_hold_sentences(text: str) -> bool:
    """Return whether a full stop inside the text may end a sentence, where only punkt can say how it is cut."""
    return _SENTENCES.search(text) is not None


@functools.cache
def has_punkt() -> bool:
    """Return whether the data of nltk's punkt_tab, which splits texts into sentences, is installed."""
    import nltk

    try:
        nltk.data.find(_PUNKT)
    except LookupError:
        return False
    return True


@functools.cache
def _treebank() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


@functools.cache
def _punkt() -> Any:
    from nltk.tokenize.punkt import PunktTokenizer

    return PunktTokenizer("english")
