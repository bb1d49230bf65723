"""Which column of a log has which name of the field? The user's choice wins."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from lossscope.errors import InputError

from .base import EVALUATION_COLUMNS, STEP_COLUMNS
from .column_names import PLACES, names_of, rank_name
from .name_parts import normal_name, parse_name

FIELDS = (*PLACES, *STEP_COLUMNS, *EVALUATION_COLUMNS)
_BOUNDS = ("__MIN", "__MAX")  # of smoothed charts that W&B exports
_OF_EVALUATION = "val/"
_MOST = 20  # names that a message lists


def find_columns(names: Sequence[str], file: str, columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return name of the field -> name in the file, for the columns that the file has.

    Args:
        names: of the columns of the file.
        file: its name, for messages.
        columns: the user's choice, {"loss": "train/loss"}.

    Raises:
        InputError: a choice of an unknown field or column, a log without a loss and evaluations, or of several runs.
    """
    chosen = dict(columns or {})
    for field, name in chosen.items():
        require_choice(field, name, names, file)
    found = {field: chosen.get(field) or _best(field, names, file) for field in FIELDS}
    if found["loss"] is None and is_of_evaluations(names):
        of_names = {f"{_OF_EVALUATION}{name}": name for name in names}
        for field in EVALUATION_COLUMNS:
            found[field] = found[field] or of_names.get(_best(field, tuple(of_names), file) or "")
        found |= {field: None for field in STEP_COLUMNS if field not in chosen}
    if found["loss"] is None and not any(found[field] for field in EVALUATION_COLUMNS):
        raise InputError(
            f"{file} must have a column of the training loss, such as {', '.join(names_of('loss')[:6])}, train/loss; "
            f"got {_listed(names)}. Name it: --column loss=NAME"
        )
    return {field: name for field, name in found.items() if name is not None}


def is_of_evaluations(names: Sequence[str]) -> bool:
    """Return whether a file without a known loss comes from an evaluator, whose names do not say their split.

    Args:
        names: of all columns. A loss, a rate or a norm among them means a training.
    """
    of_steps = ("lr", "grad_norm", "logit_scale")
    return not any(
        (parse_name(name).split != "val" and "loss" in parse_name(name).quantity.split("_"))
        or any(rank_name(field, name) is not None for field in of_steps)
        for name in names
    )


def require_choice(field: str, name: str, names: Sequence[str], file: str) -> None:
    """Raise InputError unless `field` is a name of the field and `name` is a column of the file."""
    if field not in FIELDS:
        near = _nearest(field, FIELDS)
        raise InputError(f"--column must name one of {', '.join(FIELDS)}; got {field!r}{near}. Write {field}=NAME so")
    if name not in names:
        near = _nearest(name, names)
        raise InputError(
            f"column {name!r} for {field} must be one of {file} that has values: {_listed(names)}; it is not{near}. "
            f"Write --column {field}=NAME with one of them"
        )


def _best(field: str, names: Sequence[str], file: str) -> str | None:
    """Return the column that fits best. Raises InputError where two runs have equally good columns."""
    ranks = {name: rank_name(field, name) for name in names if not name.endswith(_BOUNDS)}
    fitting = {name: rank for name, rank in ranks.items() if rank is not None}
    if not fitting:
        return None
    best = min(fitting, key=lambda name: fitting[name])
    equal = [name for name in fitting if fitting[name] == fitting[best] and normal_name(name) == normal_name(best)]
    of_runs = [name for name in equal if " - " in name]
    if len(of_runs) > 1:
        raise InputError(
            f"{file} must be the log of one training; it has {len(of_runs)} columns of {field}: {_listed(of_runs)}. "
            f"Export one run, or choose: --column {field}={of_runs[0]!r}"
        )
    return best


def _nearest(word: str, words: Sequence[str]) -> str:
    normal = {normal_name(known): known for known in reversed(words)}
    near = difflib.get_close_matches(normal_name(word), normal, n=1, cutoff=0.5)
    return f"; did you mean {normal[near[0]]!r}?" if near else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return (", ".join(names[:_MOST]) or "none") + more
