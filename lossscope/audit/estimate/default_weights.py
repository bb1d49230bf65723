"""The weights of signals before the first label: fitted on data whose matches are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.json_files import member, read_json

from .calibration import Calibration, Doubles, prior_sd

FILE = Path(__file__).with_name("default_weights.json")
_DRAWS = 400
_WITHOUT = 0.0  # weight of a signal that no fit has, such as a user's
LIKE_TEXT_COSINE = "text_direct"  # of one set of texts, for which no fit exists


@dataclass(frozen=True, eq=False)
class Fit:
    """A logistic regression on judged pairs."""

    names: tuple[str, ...]  # k signals
    weights: Doubles  # (k + 1,) the intercept first
    covariance: Doubles  # (k + 1, k + 1)

    def without(self, dropped: Sequence[str]) -> Fit:
        """Return the fit of the other signals: the normal distribution of their weights, given 0 for the dropped ones.

        A refit without them gives the same if the likelihood is a parabola: signals that correlate with a dropped one
        take its weight. The intercept stays, because judged pairs are closer than pairs of random batches.
        """
        keep = [column for column, name in enumerate(self.names) if name not in dropped]
        drop = [column for column, name in enumerate(self.names) if name in dropped]
        if not drop:
            return self
        b, H = self.weights[1:], np.linalg.inv(self.covariance)[1:, 1:]
        weights = b[keep] + np.linalg.solve(H[np.ix_(keep, keep)], H[np.ix_(keep, drop)] @ b[drop])
        rows = [0, *(1 + column for column in keep)]
        precision = np.linalg.inv(self.covariance)[np.ix_(rows, rows)]
        names = tuple(self.names[column] for column in keep)
        return Fit(names, np.r_[self.weights[0], weights], np.linalg.inv(precision))


def default_calibration(names: Sequence[str], sides: Sides) -> Calibration:
    """Return the weights of these signals.

    For images with captions, and for one set, they were fitted on the experts' and the crowd's judgements of Flickr8k,
    equal in sum. For queries and documents they were fitted on several kinds of such data; the differences between
    kinds are the deviations of the prior before labels. The file has a fit with texts, one with embeddings, and one
    with both. The fit with the groups of these signals is taken, without the signals that are missing here
    (`Fit.without`). A signal that no fit has gets 0.

    Args:
        names: of the signals.
        sides: of the data.

    Raises:
        InputError: no fit has any of the signals.
    """
    stored = member(read_json(FILE), "texts" if is_of_two_texts(names, sides) else "photos", dict, str(FILE))
    origin = str(member(stored, "origin", str, str(FILE)))
    fits = {name: _fit(found) for name, found in member(stored, "fits", dict, str(FILE)).items()}
    of_two_texts = LIKE_TEXT_COSINE in fits["texts"].names
    known = ["text_cosine" if name == LIKE_TEXT_COSINE and not of_two_texts else name for name in names]
    groups = [group for group in ("texts", "embeddings") if set(known) & set(fits[group].names)]
    if not groups:
        raise InputError(
            "an audit needs texts or embeddings, and signals that read them; got "
            f"{'the signals ' + ', '.join(names) if names else 'no signal'}, which have no weight yet. Name a "
            "SOURCE, or data with texts: --data"
        )
    whole = fits["both" if len(groups) == 2 else groups[0]]
    dropped = [name for name in whole.names if name not in known]
    fit = whole.without(dropped)
    if dropped:
        origin += f", without {', '.join(dropped)}"
    columns = [1 + fit.names.index(name) if name in fit.names else None for name in known]
    values = [fit.weights[0], *(_WITHOUT if column is None else fit.weights[column] for column in columns)]
    if of_two_texts:
        return Calibration(tuple(names), np.array(values), origin=origin, deviations=_deviations(fit, columns))
    return Calibration(tuple(names), np.array(values), _draws(fit, columns), origin=origin)


def is_of_two_texts(names: Sequence[str], sides: Sides) -> bool:
    """Return whether the data are queries and documents: their names say so, or signals that compare their texts."""
    return not sides.is_one_set and (not sides.is_image_text or LIKE_TEXT_COSINE in names)


def _fit(stored: Any) -> Fit:
    weights = np.array([stored["intercept"], *stored["weights"].values()], np.float64)
    return Fit(tuple(stored["weights"]), weights, np.array(stored["covariance"], np.float64))


def _deviations(fit: Fit, columns: Sequence[int | None]) -> Doubles:
    """Return the standard deviations of the prior, (k + 1,).

    A weight of the fit gets its deviation between kinds; the intercept and other weights get those of `prior_sd`.
    """
    usual, between_kinds = prior_sd(1 + len(columns)), np.sqrt(np.diag(fit.covariance))
    return np.array([usual[0], *(usual[-1] if column is None else between_kinds[column] for column in columns)])


def _draws(fit: Fit, columns: Sequence[int | None]) -> Doubles:
    """Return draws of the weights by their covariance, (m, k + 1); a signal that the fit lacks stays at 0."""
    drawn = np.random.default_rng(0).multivariate_normal(fit.weights, fit.covariance, _DRAWS)
    weights = [np.full(_DRAWS, _WITHOUT) if column is None else drawn[:, column] for column in columns]
    draws: Doubles = np.stack([drawn[:, 0], *weights], 1)
    return draws
