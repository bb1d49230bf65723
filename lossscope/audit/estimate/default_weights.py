"""The weights of signals before anybody has labelled a pair: fitted on human judgements of photos and captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.json_files import member, read_json

from .calibration import Calibration

FILE = Path(__file__).with_name("default_weights.json")
_DRAWS = 400
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
    draws = _draws(fit, names) if LIKE_TEXT_COSINE not in names else None
    return Calibration(tuple(names), np.array(values), draws, origin=member(stored, "origin", str, str(FILE)))


def _draws(fit: Any, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return draws of the weights by their covariance, (m, k + 1); a signal that the fit lacks stays at 0."""
    known = list(fit["weights"])
    mean = np.array([fit["intercept"], *fit["weights"].values()])
    drawn = np.random.default_rng(0).multivariate_normal(mean, np.array(fit["covariance"]), _DRAWS)
    columns = [drawn[:, 0]]
    columns += [drawn[:, 1 + known.index(name)] if name in known else np.full(_DRAWS, _WITHOUT) for name in names]
    return np.stack(columns, 1)
