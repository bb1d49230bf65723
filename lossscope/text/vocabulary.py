"""Words -> ids: a vocabulary with the way captions are cut, and readers of released vocabulary files."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.json_files import read_json, shorten
from lossscope.io.limits import require_bounded
from lossscope.io.pickles.allow_list import vocabulary_globals
from lossscope.io.pickles.unpickler import read_stream
from lossscope.io.reading import reading
from lossscope.io.text_files import read_utf8

from .word_tokenisers import WORD_TOKENISERS, WordTokeniser, require_word_tokeniser, tokenise

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")
_KEYS = ("word2idx", "idx2word", "idx")


@dataclass(frozen=True)
class Vocabulary:
    """Words whose ids are their positions. Raises InputError when one repeats or a special word is missing.

    >>> words = Vocabulary.build(["a red dog", "a dog"], min_count=2)
    >>> words.words
    ('<pad>', '<start>', '<end>', '<unk>', 'a', 'dog')
    >>> words.encode("A blue dog.")
    [1, 4, 3, 5, 2]
    """

    words: tuple[str, ...]  # by id, special words included
    word_tokeniser: WordTokeniser = "words"  # how captions are cut

    def __post_init__(self) -> None:
        for word, count in Counter(self.words).most_common(1):
            if count > 1:
                raise InputError(f"words of a vocabulary must be unique; got {word!r} {count} times")
        missing = [word for word in SPECIAL if word not in self.ids]
        if missing:
            raise InputError(f"a vocabulary must hold {', '.join(SPECIAL)}; got none of {', '.join(missing)}")
        require_word_tokeniser(self.word_tokeniser)

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 4) -> Vocabulary:
        """Return the words seen at least `min_count` times: special words, then by falling count, then by alphabet.

        Only captions of the training split belong here. Raises InputError when min_count < 1.
        """
        if min_count < 1:
            raise InputError(f"min_count must be at least 1; got {min_count}")
        counts = Counter(word for caption in captions for word in tokenise(caption))
        kept = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        return cls((*SPECIAL, *(word for _, word in kept)))

    @classmethod
    def from_list(cls, words: Sequence[str], word_tokeniser: str = "words") -> Vocabulary:
        """Return the vocabulary that `to_list` wrote. Raises InputError for a tokeniser that is not known."""
        return cls(tuple(words), require_word_tokeniser(word_tokeniser))

    def to_list(self) -> list[str]:
        """Return the words by id as a list, for JSON and checkpoints."""
        return list(self.words)

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """Word -> id."""
        return {word: row for row, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def tokenise(self, caption: str) -> list[str]:
        """Return the words of a caption, known and unknown ones."""
        return WORD_TOKENISERS[self.word_tokeniser](caption)

    def encode(self, caption: str) -> list[int]:
        """Return [start] + ids of the caption's tokens + [end]; unknown words become `<unk>`."""
        unknown = self.ids["<unk>"]
        words = (self.ids.get(word, unknown) for word in self.tokenise(caption))
        return [self.ids["<start>"], *words, self.ids["<end>"]]


def pad(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return ragged ids as (n, L) int64, filled up with `fill`, and their (n,) int64 lengths.

    >>> pad([[1, 5, 2], [1, 2]])[0].tolist()
    [[1, 5, 2], [1, 2, 0]]
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0))), fill, dtype=np.int64)
    for row, values in enumerate(rows):
        ids[row, : len(values)] = values
    return ids, lengths


def read_vocabulary(path: Path | str) -> Vocabulary:
    """Return the vocabulary of a released `.pkl` or `.json` file, with its ids; no code in the file is run.

    All released vocabularies were cut by nltk: the vocabulary cuts captions so too, word_tokeniser="treebank".
    Raises InputError when the file is missing, cut off, names any Python global but its own Vocabulary class, lacks
    word2idx, idx2word or idx, or when ids have gaps or duplicates.
    """
    path = Path(path)
    if path.suffix not in (".pkl", ".json"):
        raise InputError(f"vocabulary file must end in .pkl or .json; got {str(path)!r}")
    fields = read_json(path) if path.suffix == ".json" else _read_pickle(path)
    missing = [key for key in _KEYS if key not in fields]
    if missing:
        raise InputError(f"{path} must hold {', '.join(_KEYS)}; got no {', '.join(missing)}")
    words = _words_by_id(fields["word2idx"], path)
    _require_inverse(words, fields["idx2word"], fields["idx"], path)
    try:
        return Vocabulary(words, "treebank")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def is_vocabulary(path: Path) -> bool:
    """Return whether a `.json` file names word2idx, as those of words do and those of byte pairs do not."""
    try:
        return path.suffix == ".json" and '"word2idx"' in read_utf8(path)
    except InputError:
        return False


def _words_by_id(word2idx: object, path: Path) -> tuple[str, ...]:
    """Return the words in the order of their ids. Raises InputError unless ids are unique and have no gaps."""
    if not isinstance(word2idx, dict) or not all(type(word) is str for word in word2idx):
        raise InputError(f"word2idx of {path} must map words to ids; got {type(word2idx).__name__}")
    by_id: dict[int, str] = {}
    for word, row in word2idx.items():
        if type(row) is not int:
            raise InputError(f"ids of {path} must be whole numbers; got {shorten(row)} for {word!r}")
        if row in by_id:
            raise InputError(f"ids of {path} must be unique; got {row} for {by_id[row]!r} and for {word!r}")
        by_id[row] = word
    gap = next((row for row in range(len(by_id)) if row not in by_id), None)
    if gap is not None:
        raise InputError(f"ids of {path} must run from 0 to {len(by_id) - 1} without gaps; got none with {gap}")
    return tuple(by_id[row] for row in range(len(by_id)))


def _require_inverse(words: tuple[str, ...], idx2word: object, idx: object, path: Path) -> None:
    """Raise InputError unless idx2word and idx are those of the words."""
    if not isinstance(idx2word, dict):
        raise InputError(f"idx2word of {path} must map ids to words; got {type(idx2word).__name__}")
    if not all(type(row) in (int, str) for row in idx2word):
        raise InputError(f"idx2word of {path} must map whole numbers to words; it maps other values")
    inverse = {str(row): word for row, word in idx2word.items()}
    for row, word in enumerate(words):
        if inverse.get(str(row)) != word:
            got = f"{shorten(inverse.get(str(row)))} for id {row}, which word2idx gives to {word!r}"
            raise InputError(f"idx2word of {path} must be the inverse of word2idx; got {got}")
    if len(inverse) != len(words) or type(idx) is not int or idx != len(words):
        got = f"{shorten(idx)} and {len(inverse)} words in idx2word"
        raise InputError(f"idx of {path} must be the number of words, {len(words)}; got {got}")


def _read_pickle(path: Path) -> dict[str, Any]:
    vocabulary: type[Any] = type("Vocabulary", (), {})  # anew for each file, which can change none but its own
    with reading(path, "a whole vocabulary"), open(require_file(path), "rb") as file:
        content = read_stream(file, path, vocabulary_globals(vocabulary), "no Python object but Vocabulary")
        if type(content) is not vocabulary:
            raise InputError(f"{path} must hold a Vocabulary; got {type(content).__name__}")
        require_bounded(vars(content))
        return dict(vars(content))
