"""1 / temperature = scale: what a column of the learnt scale holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from .column_names import INVERSE, LOGARITHM
from .log_table import Floats
from .name_parts import parse_name

_LN_100 = 4.6052  # of CLIP's clamp
_ANY_NEGATIVE = re.compile(r"neg_sim(_mean)?|sim_neg|negative_(sim|mean|similarity)|neg_(similarity|cos)|mean_neg")


def as_scale(values: Floats, name: str) -> tuple[Floats, Sequence[str]]:
    """Return the scale that S is multiplied with, and what was assumed.

    A temperature becomes 1 / temperature, unless it is above 1 throughout, as a scale is. A logarithm stays as it is.

    Args:
        values: of the column.
        name: of the column.
    """
    quantity, finite = parse_name(name).quantity, values[np.isfinite(values)]
    if quantity in LOGARITHM:
        return values, [f"{name} is the logarithm of the scale: it is left as it is"]
    if quantity in INVERSE:
        if len(finite) and float(finite.min()) > 1:
            return values, [f"{name} is above 1 in every row: it counts as the scale itself, not as a temperature"]
        with np.errstate(divide="ignore"):
            return 1 / values, [f"{name} is a temperature: logit_scale is 1 / {name}"]
    if len(finite) and float(finite.min()) > 0 and float(finite.max()) <= _LN_100:
        return values, [f"{name} is at most ln(100) in every row: if it is the logarithm of the scale, log its exp()"]
    return values, []


def explain_negative(names: Mapping[str, str]) -> Sequence[str]:
    """Return a notice where the name of the negatives does not say that they are the hardest ones.

    Args:
        names: name of the field -> name in the file.
    """
    name = names.get("hardest_negative")
    if name is None or not _ANY_NEGATIVE.fullmatch(parse_name(name).quantity):
        return []
    return [f"{name} counts as the mean similarity of the hardest negatives; if it is of all, leave the column out"]
