"""Lines of Flickr8k's files of judgements: image, caption id and three values, with tabs between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lossscope.errors import InputError
from lossscope.io.json_files import shorten
from lossscope.io.line_blocks import iter_lines
from lossscope.io.reading import show_path

from .base import Judgements

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


def judge_lines(path: str, is_positive: Callable[[JudgedLine], bool], rule: str) -> Judgements:
    """Return the judged pairs of a file. Raises InputError as iter_flickr8k_lines and `is_positive` do.

    Args:
        path: of the file.
        is_positive: whether a line calls its pair a positive.
        rule: what makes it one, in words.
    """
    lines = list(iter_flickr8k_lines(path))
    return Judgements(
        lines[0].file if lines else path,
        [line.image for line in lines],
        [line.caption for line in lines],
        [is_positive(line) for line in lines],
        rule,
        [line.number for line in lines],
        ("id", None),
    )


def _parse(line: str, number: int, name: str) -> JudgedLine:
    columns = line.split("\t")
    if len(columns) != 5 or not columns[0] or not _CAPTION.fullmatch(columns[1]):
        raise InputError(
            f"line {number} of {name} must be an image, a caption's FILE#k and three values, with tabs "
            f"between, as in ExpertAnnotations.txt or CrowdFlowerAnnotations.txt of Flickr8k; got {shorten(line)}"
        )
    return JudgedLine(name, number, columns[0], columns[1], tuple(columns[2:]))
