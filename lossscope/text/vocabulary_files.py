"""Read a released vocabulary file, of words with their ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.json_files import read_json, shorten
from lossscope.io.limits import require_bounded
from lossscope.io.pickles.allow_list import vocabulary_globals
from lossscope.io.pickles.unpickler import read_stream
from lossscope.io.reading import reading
from lossscope.io.text_files import read_utf8

from .vocabulary import Vocabulary

_KEYS = ("word2idx", "idx2word", "idx")


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
