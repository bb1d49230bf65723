"""scale = 1 / temperature: does a column hold the scale, its inverse or its logarithm?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from .column_names import INVERSE, LOGARITHM
from .log_table import Floats
from .name_parts import parse_name

_LN_100 = 4.6052  # of CLIP's clamp
_LOG_SPACE = 6.0  # a scale is logged as its logarithm where none is larger: e⁶ is 403, above every clamp in use
_ANY_NEGATIVE = re.compile(r"neg_sim(_mean)?|sim_neg|negative_(sim|mean|similarity)|neg_(similarity|cos)|mean_neg")


def as_scale(values: Floats, name: str) -> tuple[Floats, Sequence[str]]:
    """Return the scale that multiplies S, and notices.

    A temperature becomes 1 / temperature, unless it is above 1 in every row. A logarithm becomes its exponential,
    unless it is above 6 in any row.

    Args:
        values: of the column.
        name: of the column.
    """
    quantity, finite = parse_name(name).quantity, values[np.isfinite(values)]
    if quantity in LOGARITHM:
        return _of_logarithm(values, finite, name, quantity)
    if quantity in INVERSE:
        if len(finite) and float(finite.min()) > 1:
            return values, [f"{name} is above 1 in every row: it counts as the scale itself, not as a temperature"]
        with np.errstate(divide="ignore"):
            return 1 / values, [f"{name} is a temperature: logit_scale is 1 / {name}"]
    if quantity.endswith("_exp"):
        return values, []
    if is_logarithm(finite):
        begins = f"{name} begins at {finite[0]:.3g} and stays below {_LOG_SPACE:g}, as the logarithm of a scale"
        return np.exp(values), [f"{begins}: logit_scale is exp({name})"]
    if len(finite) and float(finite.min()) > 0 and float(finite.max()) <= _LN_100:
        return values, [f"{name} is at most ln(100) in every row: if it is the logarithm of the scale, log its exp()"]
    return values, []


def _of_logarithm(values: Floats, finite: Floats, name: str, quantity: str) -> tuple[Floats, Sequence[str]]:
    """Return the scale from a column named as the logarithm of the scale or of the temperature."""
    if len(finite) and float(finite.max()) > _LOG_SPACE:
        return values, [f"{name} is above {_LOG_SPACE:g}: it counts as the scale itself, not as its logarithm"]
    if "temperature" in quantity and not (len(finite) and float(finite.min()) > 0):
        return np.exp(-values), [f"{name} is the logarithm of a temperature: logit_scale is exp(-{name})"]
    return np.exp(values), [f"{name} is the logarithm of the scale: logit_scale is exp({name})"]


def is_logarithm(scale: Floats) -> bool:
    """Return whether a scale was logged as its logarithm, as CLIP's parameter is (2.66 = ln 14.3).

    A scale that begins between 2 and 3.2 and stays below 6 is a logarithm: as a factor it would be a temperature of
    0.4.

    Args:
        scale: finite values of a column whose name does not tell.
    """
    if not len(scale):
        return False
    near_start = abs(float(scale[0]) - math.log(1 / 0.07)) < 0.5 or abs(float(scale[0]) - math.log(10)) < 0.2
    return near_start and float(np.max(scale)) < _LOG_SPACE


def explain_negative(names: Mapping[str, str]) -> Sequence[str]:
    """Return a notice where the name of the negatives does not say that they are the hardest.

    Args:
        names: name of the field -> name in the file.
    """
    name = names.get("hardest_negative")
    if name is None or not _ANY_NEGATIVE.fullmatch(parse_name(name).quantity):
        return []
    return [f"{name} counts as the mean similarity of the hardest negatives; if it is of all, leave the column out"]
