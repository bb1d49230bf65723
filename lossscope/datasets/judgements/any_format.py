"""Which format has a file of judgements? Its name's end and its first row tell."""

from __future__ import annotations

from pathlib import Path

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.io.csv_rows import iter_csv_rows

from .base import Judgements
from .cxc import SCORE, read_cxc_judgements
from .eccv_caption import read_eccv_judgements
from .flickr8k_crowd import read_crowd_judgements
from .flickr8k_experts import is_expert_line, read_expert_judgements
from .flickr8k_lines import iter_flickr8k_lines
from .pairs_csv import read_pairs_csv


def read_judgements(path: str | Path, sides: Sides = IMAGE_TEXT) -> Judgements:
    """Return the judged pairs of a file of any format that is known.

    JSON files are ECCV Caption's; CSV files with a column agg_score are CxC's, and others your own, with columns named
    after the sides; all others are Flickr8k's, of experts or of CrowdFlower.
    Raises InputError for a file that cannot be read, naming what was wrong in it.
    """
    location, suffix = str(path), Path(path).suffix.lower()
    if suffix == ".json":
        return read_eccv_judgements(location)
    if suffix == ".csv":
        first = next(iter_csv_rows(location, lambda name: True), None)
        is_cxc = first is not None and SCORE in first.columns
        return read_cxc_judgements(location) if is_cxc else read_pairs_csv(location, sides)
    line = next(iter_flickr8k_lines(location), None)
    is_expert = line is not None and is_expert_line(line.values)
    return read_expert_judgements(location) if is_expert else read_crowd_judgements(location)
