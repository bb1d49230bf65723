"""Lines of a text file of any size, in blocks: UTF-8, with a limit to each line, never the whole file at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from lossscope.errors import InputError

from .limits import MAX_LINE_BYTES, require_few_blanks
from .locations import open_location
from .reading import reading, show_path
from .text_files import MARK

_BLOCK = 1 << 18  # bytes that are read at a time: what is made of them fits into a processor's cache


@dataclass(frozen=True)
class LineBlock:
    """Some lines of a file, without their ends."""

    first: int  # number of the first one, counted from 1
    lines: list[str]
    done: int  # bytes of the file that were read so far


def iter_line_blocks(location: str) -> Iterator[LineBlock]:
    """Yield the lines of a file in blocks of a quarter of a megabyte; a byte order mark is left out.

    Raises InputError, naming file and line, for bytes that are no UTF-8, a NUL, a line of more than 64 MiB, and a
    file that is little but blank lines.
    """
    name, first, blanks = show_path(location), 1, 0
    with open_location(location) as file:
        for content, done in _iter_whole_lines(file, location):
            lines = _decode(content, first, name).split("\n")
            if not lines[-1]:
                lines.pop()
            blanks += lines.count("") + sum(map(str.isspace, lines))
            require_few_blanks(blanks, first - 1 + len(lines) - blanks, name)
            yield LineBlock(first, lines, done)
            first += len(lines)


def iter_lines(location: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are not blank. Raises InputError as iter_line_blocks does."""
    for block in iter_line_blocks(location):
        for number, line in enumerate(block.lines, block.first):
            if line.strip():
                yield number, line


def _iter_whole_lines(file: IO[bytes], location: str) -> Iterator[tuple[memoryview, int]]:
    """Yield bytes that end where a line does, and how many were read so far."""
    pieces: list[bytes] = []  # of a line whose end was not read yet
    done, length, mark = 0, 0, MARK
    while True:
        with reading(location, "a readable file"):
            block = file.read(_BLOCK)
        done += len(block)
        if not block:
            break
        cut = block.rfind(b"\n") + 1
        if cut:
            content = b"".join([*pieces, memoryview(block)[:cut]]).removeprefix(mark)
            pieces, length, mark = [], 0, b""
            yield memoryview(content), done
        pieces.append(block[cut:])
        length += len(block) - cut
        if length > MAX_LINE_BYTES:
            raise InputError(
                f"lines of {show_path(location)} must be of at most {MAX_LINE_BYTES} bytes; a line is longer. The "
                "file does not have one row per line, or has damage"
            )
    if length:
        yield memoryview(b"".join(pieces).removeprefix(mark)), done


def _decode(content: memoryview, first: int, name: str) -> str:
    """Return bytes as text. Raises InputError naming the line for a foreign byte and for a NUL."""
    try:
        text = str(content, "utf-8")
    except UnicodeDecodeError as problem:
        line, byte = first + bytes(content).count(b"\n", 0, problem.start), content[problem.start]
        raise InputError(f"{name} must be UTF-8 text; got the byte {byte:#04x} in line {line}: write it anew") from None
    if "\0" in text:
        line = first + text.count("\n", 0, text.index("\0"))
        raise InputError(f"{name} must be text; got a NUL byte in line {line}: it is damaged or binary")
    return text
