"""The words that a released model reads: the file or folder that holds them, fitted to the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lossscope.encoders.types import OpenedModel, ReleasedFile
from lossscope.errors import InputError
from lossscope.text.byte_pairs import MERGES_FILE
from lossscope.text.clip_captions import SPECIAL_WORDS
from lossscope.text.clip_tokeniser import fit_to_clip
from lossscope.text.subwords import TOKENISER_FILES, Subwords
from lossscope.text.tokenizer import Tokeniser
from lossscope.text.vocabulary import Vocabulary
from lossscope.text.vocabulary_files import is_vocabulary, read_vocabulary


def find_tokeniser(released: ReleasedFile, model: OpenedModel, given: Path | None) -> Tokeniser:
    """Return the tokeniser that the user gives, or that lies beside the file. Raises InputError when there is none."""
    if model.encoder.reads_word_vectors:
        return Vocabulary.build([], 1)
    if given is not None:
        return _read_tokeniser(given, model)
    for path in _likely_files(released):
        if path.exists():
            return _read_tokeniser(path, model)
    size = f"{model.vocabulary_size} words" if model.vocabulary_size else "parts of words"
    raise InputError(
        f"--vocabulary is needed: {released.path} reads {size} and does not hold them. Name {_usual_words(released)}"
    )


def _usual_words(released: ReleasedFile) -> str:
    """Return what to give for a model's words, for messages."""
    if _has_gru(released):
        return "the file it was trained with, e.g. f30k_precomp_vocab.json"
    return (
        "the folder of its tokeniser, which holds tokenizer.json (spiece.model is not read), vocab.txt, or vocab.json "
        f"and merges.txt; for CLIP also {MERGES_FILE}"
    )


def _has_gru(released: ReleasedFile) -> bool:
    return any("rnn." in name for tower in released.towers for name in tower)


def _likely_files(released: ReleasedFile) -> list[Path]:
    """Return where its vocabulary may be: a tokeniser beside it, or for a GRU a vocabulary named after its data."""
    folder = released.path if released.path.is_dir() else released.path.parent
    if not _has_gru(released):
        return [folder / name for name in (*TOKENISER_FILES, MERGES_FILE)]
    files: list[Path] = []
    name = released.options.get("data_name")
    if isinstance(name, str) and name.replace("_", "").isalnum():
        stems = [folder / f"{name}_vocab", folder / "vocab" / f"{name}_vocab"]
        files += [stem.with_suffix(suffix) for stem in stems for suffix in (".json", ".pkl")]
    return files


def _read_tokeniser(path: Path, model: OpenedModel) -> Tokeniser:
    if path.name.endswith(".txt.gz"):
        tokeniser: Tokeniser = Subwords.from_merges(path)
    elif path.is_dir() or (path.name in TOKENISER_FILES and not is_vocabulary(path)):
        tokeniser = Subwords.from_folder(path if path.is_dir() else path.parent)
    else:
        tokeniser = read_vocabulary(path)
    return model.encoder.prepare(tokeniser)  # type: ignore[no-any-return]


def fit_to_model(tokeniser: Tokeniser, model: OpenedModel) -> Tokeniser:
    """Return a tokeniser that reads captions as the model's: its words, clean-up, and context length, 0 for none."""
    if isinstance(tokeniser, Vocabulary):
        return replace(tokeniser, word_tokeniser=model.word_tokeniser)
    if not isinstance(tokeniser, Subwords):
        return tokeniser
    if model.cleaning in SPECIAL_WORDS:
        return fit_to_clip(tokeniser, model.cleaning, model.context_length)
    tokeniser = replace(tokeniser, cleaning=model.cleaning or tokeniser.cleaning)
    if not model.context_length:
        return tokeniser
    return replace(tokeniser, max_length=min(tokeniser.max_length or model.context_length, model.context_length))
