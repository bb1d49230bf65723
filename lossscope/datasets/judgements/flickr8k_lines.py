"""Lines of Flickr8k's files of judgements: image, caption id and three values, with tabs between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lossscope.errors import InputError
from lossscope.io.json_files import shorten
from lossscope.io.line_blocks import iter_lines
from lossscope.io.reading import show_path

_CAPTION = re.compile(r".+#[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """One line."""

    file: str  # as messages name it
    number: int  # counted from 1
    image: str  # file name
    caption: str  # FILE#k, the k-th caption of an image, from 0
    values: tuple[str, ...]  # three

    @property
    def place(self) -> str:
        """`line 17 of FILE`"""
        return f"line {self.number} of {self.file}"


def iter_flickr8k_lines(path: str) -> Iterator[JudgedLine]:
    """Yield the lines that are not empty. Raises InputError, naming file and line, for other columns."""
    name = show_path(path)
    for number, line in iter_lines(path):
        yield _parse(line.rstrip("\r"), number, name)


def _parse(line: str, number: int, name: str) -> JudgedLine:
    columns = line.split("\t")
    if len(columns) != 5 or not columns[0] or not _CAPTION.fullmatch(columns[1]):
        raise InputError(
            f"line {number} of {name} must be an image, a caption's FILE#k and three values, with tabs between, as "
            f"ExpertAnnotations.txt and CrowdFlowerAnnotations.txt of Flickr8k have them; got {shorten(line)}"
        )
    return JudgedLine(name, number, columns[0], columns[1], tuple(columns[2:]))
