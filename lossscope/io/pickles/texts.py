"""Which texts does the pickle of a torch file hold? Its opcodes are read, nothing is built."""

from __future__ import annotations

import contextlib
import io
import pickletools
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from .torch_zip import PICKLE, find_stem

_MAX_BYTES = 1 << 26  # of the pickle in a zip file, whose numbers lie beside it
_MAX_OPCODES = 1 << 22
_LEADING = 3  # pickles before that of the object in a file that is no zip: magic number, protocol, system
_TEXTS_OF_PYTHON2 = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
_TEXTS = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", *_TEXTS_OF_PYTHON2}


def texts_of(path: Path) -> frozenset[str]:
    """Return the texts and the names of globals (`argparse Namespace`) in the pickle of a torch file.

    A file that cannot be read, is damaged or is of another format gives those before the damage, perhaps none.
    """
    return frozenset(text for _, text in _named_texts(path))


def is_of_python2(path: Path) -> bool:
    """Return whether Python 2 wrote a torch file: it wrote texts as bytes, for which Python 3 has other opcodes."""
    return any(opcode in _TEXTS_OF_PYTHON2 for opcode, _ in _named_texts(path))


def _named_texts(path: Path) -> frozenset[tuple[str, str]]:
    """Return the names of opcodes with their texts."""
    texts: set[tuple[str, str]] = set()
    with contextlib.suppress(Exception), open(path, "rb") as file:  # a damaged file can raise anything
        for pair in _texts(_pickle_of_zip(file) if file.peek(2)[:2] == b"PK" else _skip_leading(file)):
            texts.add(pair)
    return frozenset(texts)


def _pickle_of_zip(file: IO[bytes]) -> IO[bytes]:
    with zipfile.ZipFile(file) as archive, archive.open(f"{find_stem(archive)}{PICKLE}") as member:
        return io.BytesIO(member.read(_MAX_BYTES))


def _skip_leading(file: IO[bytes]) -> IO[bytes]:
    for _ in range(_LEADING):
        for _ in islice(pickletools.genops(file), _MAX_OPCODES):
            pass
    return file


def _texts(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    for opcode, argument, _ in islice(pickletools.genops(file), _MAX_OPCODES):
        if (opcode.name in _TEXTS or opcode.name == "GLOBAL") and isinstance(argument, str):
            yield opcode.name, argument
