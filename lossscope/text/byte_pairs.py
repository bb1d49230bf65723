"""CLIP's byte pairs: a tokeniser of the tokenizers library from vocab.json and merges.txt, or from the merges alone."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.text_files import read_utf8, require_text_file

MERGES_FILE = "bpe_simple_vocab_16e6.txt.gz"
_ENDS = ("<|startoftext|>", "<|endoftext|>")
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_END_OF_WORD = "</w>"
_MAX_MERGES = 49152 - 256 - 2  # that the authors' code reads of the file, which holds more
_MAX_BYTES = 64 << 20  # of the merges, unpacked


def build_from_folder(folder: Path, library: Any) -> str:
    """Return CLIP's tokeniser as JSON from vocab.json and merges.txt. Raises InputError for damaged files.

    Args:
        folder: of the two files.
        library: tokenizers.
    """
    for name in ("vocab.json", "merges.txt"):
        read_utf8(folder / name)
    try:
        model = library.models.BPE.from_file(
            str(folder / "vocab.json"), str(folder / "merges.txt"), unk_token=_ENDS[1], end_of_word_suffix=_END_OF_WORD
        )
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{folder} must hold a readable vocab.json and merges.txt; {error}") from error
    return _build(model, folder / "vocab.json", library)


def build_from_merges(path: Path, library: Any) -> str:
    """Return CLIP's tokeniser as JSON from its packed merges. Raises InputError for a damaged file.

    The ids are, in this order: the 256 bytes, the same at the end of a word, the merges, and the two ends.

    Args:
        path: bpe_simple_vocab_16e6.txt.gz, whose first line is a comment.
        library: tokenizers.
    """
    try:
        with gzip.open(require_text_file(path, _MAX_BYTES)) as file:
            lines = file.read(_MAX_BYTES).decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be packed UTF-8 text, a merge per line; {error}") from error
    merges = [tuple(line.split()) for line in lines[1 : _MAX_MERGES + 1]]
    merges = merges[:-1] if merges and not merges[-1] else merges  # the end of the last line
    if not merges or any(len(merge) != 2 for merge in merges):
        raise InputError(f"{path} must hold a merge of two parts on each line after the first")
    letters = _byte_letters()
    tokens = [*letters, *(f"{letter}{_END_OF_WORD}" for letter in letters), *map("".join, merges), *_ENDS]
    if len(set(tokens)) != len(tokens):
        raise InputError(f"{path} must hold each merge once; one occurs twice")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    try:
        model = library.models.BPE(vocabulary, merges, unk_token=_ENDS[1], end_of_word_suffix=_END_OF_WORD)
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{path} must hold merges of parts that are there; {error}") from error
    return _build(model, path, library)


def build_splitter(library: Any) -> Any:
    """Return the step of the tokenizers library that cuts captions into words, as letters for their bytes."""
    splitters = library.pre_tokenizers
    words = splitters.Split(library.Regex(WORDS), behavior="removed", invert=True)
    return splitters.Sequence([words, splitters.ByteLevel(add_prefix_space=False)])


def _build(model: Any, path: Path, library: Any) -> str:
    """Return the tokeniser with CLIP's way of cutting captions into words, as JSON."""
    tokeniser = library.Tokenizer(model)
    names = library.normalizers
    spaces = names.Replace(library.Regex(r"\s+"), " ")
    tokeniser.normalizer = names.Sequence([names.NFC(), spaces, names.Lowercase()])
    tokeniser.pre_tokenizer = build_splitter(library)
    ends = [(token, tokeniser.token_to_id(token)) for token in _ENDS]
    if None in dict(ends).values():
        raise InputError(f"{path} must hold {' and '.join(_ENDS)}")
    single = f"{_ENDS[0]} $A {_ENDS[1]}"
    tokeniser.post_processor = library.processors.TemplateProcessing(single=single, special_tokens=ends)
    tokeniser.add_special_tokens(list(_ENDS))
    return str(tokeniser.to_str())


def _byte_letters() -> list[str]:
    """Return a letter for each byte, in CLIP's order: the byte itself where it can be printed, else one above 255."""
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printed]
    return [*map(chr, printed), *(chr(256 + number) for number in range(len(others)))]
