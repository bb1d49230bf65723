"""sits_val.csv and sits_test.csv of Crisscrossed Captions (CxC): caption, image, agg_score, sampling_method."""

from __future__ import annotations

import math
import re

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock, join_blocks
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

from .base import Judgements
from .coco_ids import coco_number

SCORE = "agg_score"  # the column that no other format has
_COLUMNS = ("caption", "image", SCORE)
_CAPTION = re.compile(r"COCO_(?:train|val)20[0-9]{2}:sentid:([0-9]{1,12})")
_LEAST = 3.0


def read_cxc_judgements(path: str) -> Judgements:
    """Return the judged pairs of images and captions of COCO; positive is a score of at least 3 of 5.

    Pairs of COCO's own are among them, and some are scored lower. Raises InputError for other columns, such as those of
    the files of two captions (sts) or two images (sis), and, naming the line, for other ids and scores.

    Source: Parekh, Baldridge, Cer, Waters and Yang 2021 (Crisscrossed Captions), section 3 for the 3.
    """
    table = join_blocks(iter_csv_rows(path, _COLUMNS.__contains__))
    if table is None:
        return Judgements(show_path(path), [], [], [], "")
    if len(table.columns) < len(_COLUMNS):
        got = ", ".join(table.columns)
        raise InputError(
            f"{show_path(path)} must have the columns {', '.join(_COLUMNS)}; of these it has {got}. Images against "
            "captions are in CxC's sits_val.csv and sits_test.csv"
        )
    captions, images, scores = (list(enumerate(table.columns[name])) for name in _COLUMNS)
    return Judgements(
        show_path(path),
        [_image(value, table, row) for row, value in images],
        [_caption(value, table, row) for row, value in captions],
        [_score(value, table, row) >= _LEAST for row, value in scores],
        f"the score is at least {_LEAST:g} of 5",
        table.lines,
        ("id", "id"),
        is_coco=True,
    )


def _image(value: str, block: ColumnBlock, row: int) -> str:
    number = coco_number(value)
    if number is None:
        raise InputError(
            f"image in {block.place(row)} must be a file of COCO, such as COCO_val2014_000000000042.jpg; got "
            f"{shorten(value)}"
        )
    return number


def _caption(value: str, block: ColumnBlock, row: int) -> str:
    match = _CAPTION.fullmatch(value)
    if match is None:
        raise InputError(
            f"caption in {block.place(row)} must be an id such as COCO_val2014:sentid:42; got {shorten(value)}"
        )
    return str(int(match[1]))


def _score(value: str, block: ColumnBlock, row: int) -> float:
    try:
        score = float(value)
    except ValueError:
        score = math.nan
    if not 0 <= score <= 5:
        raise InputError(f"{SCORE} in {block.place(row)} must be a number of 0..5; got {shorten(value)}")
    return score
