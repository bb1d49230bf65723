"""The weights of signals before anybody has labelled a pair: fitted on human judgements of photos and captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lossscope.errors import InputError
from lossscope.io.json_files import member, read_json

from .calibration import Calibration

FILE = Path(__file__).with_name("default_weights.json")
_WITHOUT = 0.0  # weight of a signal that the judgements did not have, such as that of a user's file
LIKE_TEXT_COSINE = "text_direct"  # of two sides of texts, which the judgements are not of


def default_calibration(names: Sequence[str]) -> Calibration:
    """Return the weights for the signals that there are.

    They were fitted on the experts' and the crowd's judgements of Flickr8k, equal in sum, with texts, with embeddings of a
    small model, and with both: the fit with the same groups is taken. Signals that it does not have get 0.

    Raises:
        InputError: no signal.
    """
    stored = read_json(FILE)
    fits = member(stored, "fits", dict, str(FILE))
    texts = any(name.startswith("text_") for name in names)
    embeddings = any(name in fits["embeddings"]["weights"] for name in names)
    if not (texts or embeddings):
        raise InputError("an audit needs texts or embeddings: name a SOURCE, or data with texts by --data")
    fit = fits["both" if texts and embeddings else "texts" if texts else "embeddings"]
    weights = dict(fit["weights"])
    if LIKE_TEXT_COSINE in names:
        weights[LIKE_TEXT_COSINE] = weights.get("text_cosine", _WITHOUT)
    values = [fit["intercept"], *[weights.get(name, _WITHOUT) for name in names]]
    return Calibration(tuple(names), np.array(values), origin=member(stored, "origin", str, str(FILE)))
