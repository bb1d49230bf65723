"""CrowdFlowerAnnotations.txt of Flickr8k: image, caption id, share of yes, and how many said yes and no."""

from __future__ import annotations

import re

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from .base import Judgements
from .flickr8k_lines import JudgedLine, judge_lines

_COUNT, _SHARE = re.compile(r"[0-9]{1,6}"), re.compile(r"[01](\.[0-9]{1,20})?")
_OFF = 0.01  # how far the share may be from that of the counts


def read_crowd_judgements(path: str) -> Judgements:
    """Return the judged pairs; positive is a majority of yes, "describes the image, possibly with minor mistakes".

    Raises InputError, naming file and line, for a line of other columns, and for a share that is not that of the
    counts.

    Source: Hodosh, Young and Hockenmaier 2013 (Flickr8k), whose readme says what the columns mean.
    """
    return judge_lines(path, _is_positive, "more people said yes than no")


def _is_positive(line: JudgedLine) -> bool:
    share, yes, no = line.values
    if _SHARE.fullmatch(share) and _COUNT.fullmatch(yes) and _COUNT.fullmatch(no):
        answers = int(yes) + int(no)
        if answers and abs(float(share) - int(yes) / answers) <= _OFF:
            return int(yes) > int(no)
    raise InputError(
        f"{line.place} must have the share of yes and the numbers of yes and no that it comes from; got "
        f"{shorten(' '.join(line.values))}"
    )
