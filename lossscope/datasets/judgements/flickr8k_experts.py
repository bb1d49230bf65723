"""ExpertAnnotations.txt of Flickr8k: image, caption id and the scores of three experts, with tabs between."""

from __future__ import annotations

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from .base import Judgements
from .flickr8k_lines import JudgedLine, judge_lines

_SCORES = ("1", "2", "3", "4")
_LEAST = 9  # sum of three scores


def is_expert_line(values: tuple[str, ...]) -> bool:
    """Return whether the three values behind the ids are scores; CrowdFlower's are a share and two counts.

    A share is 1 at most, and where it is 1, nobody said no: no line of one file is one of the other.
    """
    return all(value in _SCORES for value in values)


def read_expert_judgements(path: str) -> Judgements:
    """Return the judged pairs; positive is a mean score of at least 3, "almost describes the image".

    Raises InputError, naming file and line, for a line of other columns, and for scores that are not 1..4.

    Source: Hodosh, Young and Hockenmaier 2013 (Flickr8k), whose readme says what the scores mean.
    """
    return judge_lines(path, _is_positive, "the mean of three experts' scores is at least 3 of 4")


def _is_positive(line: JudgedLine) -> bool:
    if not is_expert_line(line.values):
        raise InputError(f"{line.place} must have three scores of 1..4; got {shorten(' '.join(line.values))}")
    return sum(map(int, line.values)) >= _LEAST
