"""Options of VSE++ and its descendants: how vectors are made and compared, and the objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lossscope.errors import InputError

from ..layers.vector_scores import Measure
from .options import read_flag, read_number, read_text, triplet_spec

_MEASURES = ("cosine", "order")


def read_measure(options: Mapping[str, Any]) -> Measure:
    """Return the score of two vectors, cosine where the file has none. Raises InputError for one not known."""
    measure = read_text(options, "measure", "cosine")
    if measure not in _MEASURES:
        raise InputError(f"option measure of the file must be cosine or order; got {measure!r}")
    return cast("Measure", measure)


def training_objective(options: Mapping[str, Any]) -> str:
    """Return the spec of the objective that the options name: a triplet loss, or with `criterion` that of Bleeker.

    Raises InputError for another criterion, and for one of cosines in a file that is evaluated by the order measure.
    """
    criterion = read_text(options, "criterion", "triplet")
    if criterion == "triplet":
        return triplet_spec(options)
    names = {"ntxent": "ntxent", "ranking": "smoothap"}
    if criterion not in names:
        raise InputError(f"option criterion of the file must be triplet, ntxent or ranking; got {criterion!r}")
    if read_measure(options) == "order":
        raise InputError(
            f"option measure of a file with criterion={criterion} must be cosine; got 'order'. The authors train it on "
            "cosines and evaluate it by the order measure, which no model here does"
        )
    return f"{names[criterion]}:tau={read_number(options, 'tau', 0.1):g}"


def read_vector_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return measure, use_abs and no_imgnorm as fields of an encoder."""
    flags = {name: read_flag(options, name, False) for name in ("use_abs", "no_imgnorm")}
    return {"measure": read_measure(options), **flags}
