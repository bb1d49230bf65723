"""Which statistics of a row go to the logs of a trainer: six of each direction, or all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lossscope.errors import InputError

from .observed import Row

Columns = Literal["main", "all"]
MAIN = ("C_neg", "C_q", "N_eff", "s_pos", "s_neg", "inverted", "in_order", "loss_gap")
"""Statistics that trainers log by default: triplet losses have C_q instead of C_neg, losses of pairs in_order instead
of inverted."""
_QUANTILES = tuple(f"{name}_q{level}" for name in ("s_pos", "s_neg", "margin") for level in (10, 50, 90))
DETAILS = frozenset(
    {"finite", "loss", "margin", *_QUANTILES, "C_q_all", "C_B", "C_0", "W_neg", "W_low", "W_pos", "skipped"}
    | {f"{name}_{kind}" for name in ("n", "W", "active") for kind in ("pos", "neg")}
)
"""Statistics of the usual probes and of losses of pairs that trainers log on request."""
_BOUNDS = ("_low", "_high")  # of the interval of a statistic, beside it


@dataclass(frozen=True)
class LoggedColumns:
    """Statistics of a row under the names that a trainer logs. Raises InputError for columns that are neither choice.

    >>> LoggedColumns("lossscope/").of({"finite": 1.0, "i2t/C_neg": 5.0, "i2t/C_0": 0.0, "doctor/frozen": 1.0})
    {'lossscope/i2t/C_neg': 5.0, 'lossscope/doctor/frozen': 1.0}
    """

    prefix: str
    columns: Columns = "main"  # main: all but `DETAILS`, with those of further probes; all: the whole row
    for_doctor: bool = False  # whether to log what `lossscope doctor --log` reads

    def __post_init__(self) -> None:
        if self.columns not in get_args(Columns):
            raise InputError(f'columns must be "main" or "all"; got {self.columns!r}')

    def of(self, row: Row) -> Row:
        """Return the logged part of a row."""
        return {f"{self.prefix}{name}": value for name, value in row.items() if self._is_logged(name)}

    def _is_logged(self, name: str) -> bool:
        statistic = name.rpartition("/")[2]
        bare = next((statistic.removesuffix(end) for end in _BOUNDS if statistic.endswith(end)), statistic)
        if self.columns == "all" or DETAILS.isdisjoint({statistic, bare}):
            return True
        return self.for_doctor and _is_read_by_doctor(f"{self.prefix}{name}")


def _is_read_by_doctor(name: str) -> bool:
    """Return whether the doctor reads a quantity of a training under the name."""
    from lossscope.doctor.logs.column_names import READ, rank_name

    return any(rank_name(field, name) is not None for field in READ)
