"""Which of our numbers is the best of its block, which second, and which differ from the best by a test?

A test is a row: data, encoder, trained, statistic, direction, against (the label it was compared with), p_holm
(corrected for all comparisons made), and perhaps `test`: each kind of test has a sign of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lossscope.errors import InputError

from ._footnotes import Footnotes, joined
from .cells import Better, Cell, ranked

LEVEL = 0.05
SIGNS = "†‡§¶"
_COLUMNS = ("data", "encoder", "objective_label", "statistic", "direction", "baseline", "p_holm")
_KINDS = {"images": "paired permutation test over images", "seeds": "paired t-test over seeds"}


@dataclass(frozen=True)
class Contest:
    """One column of a block: what is compared, where, and which way is better."""

    data: str
    encoder: str
    statistic: str
    direction: str
    better: Better

    def judged(
        self, cells: Sequence[Cell], trained: Sequence[str], tests: pd.DataFrame | None, notes: Footnotes
    ) -> list[Cell]:
        """The cells, best and second marked, and a sign on those that differ from the best after Holm at 0.05.

        Where others of the column were tested, a cell that was not tested against the best says so in a footnote.
        """
        done = ranked(cells, self.better)
        own = self._own(tests)
        leaders = {label for label, cell in zip(trained, done, strict=True) if cell.best}
        if own is None or own.empty or not leaders:
            return done
        return [
            cell
            if cell.best or cell.missing
            else replace(cell, mark=joined(cell.mark, *_signs(own, one, leaders, notes)))
            for cell, one in zip(done, trained, strict=True)
        ]

    def _own(self, tests: pd.DataFrame | None) -> pd.DataFrame | None:
        if tests is None:
            return None
        where = ("data", "encoder", "statistic", "direction")
        return tests[(tests[list(where)] == [getattr(self, column) for column in where]).all(axis=1)]


def checked(tests: pd.DataFrame | None) -> pd.DataFrame | None:
    """The frame of tests with a column `sign`. Raises InputError naming missing columns, or for too many tests."""
    if tests is None:
        return None
    missing = [column for column in _COLUMNS if column not in tests]
    if missing:
        raise InputError(f"tests must have the columns {', '.join(_COLUMNS)}; {', '.join(missing)} missing. Add them")
    named = tests if "test" in tests else tests.assign(test="a test without a name")
    kinds = list(named["test"].unique())
    if len(kinds) > len(SIGNS):
        raise InputError(
            f"tests must be of {len(SIGNS)} kinds at most; got {', '.join(map(str, kinds))}. Leave some out"
        )
    return named.assign(sign=named["test"].map(dict(zip(kinds, SIGNS, strict=False))))


def told(tests: pd.DataFrame | None, columns: set[tuple[str, str]]) -> str:
    """What a caption says of tests: which, of what, corrected how, at which level. columns: (statistic, direction)."""
    if tests is None:
        return "No significance test was made."
    fit = [pair in columns for pair in zip(tests["statistic"], tests["direction"], strict=True)]
    own = tests[pd.Series(fit, index=tests.index) & tests["p_holm"].notna()]
    if own.empty:
        return "No significance test of these numbers was made."
    pairs = dict.fromkeys(zip(own["statistic"], own["direction"], strict=True))
    what = ", ".join(statistic if side == "both" else f"{side} {statistic}" for statistic, side in pairs)
    kinds = own[["sign", "test"]].drop_duplicates()
    signs = ", ".join(f"{sign} by {_KINDS.get(kind, kind)}" for sign, kind in kinds.itertuples(index=False))
    return f"Differs from the best of its block: {signs} (tested: {what}; Holm correction, p < {LEVEL})."


def _signs(tests: pd.DataFrame, one: str, leaders: set[str], notes: Footnotes) -> list[str]:
    there = (tests["objective_label"] == one) & tests["baseline"].isin(leaders)
    back = (tests["baseline"] == one) & tests["objective_label"].isin(leaders)
    defined = tests[(there | back) & tests["p_holm"].notna()]
    if defined.empty:
        return [notes.letter(f"{one} was not tested against {' or '.join(sorted(leaders))}.")]
    return [str(sign) for sign, own in defined.groupby("sign", sort=False) if (own["p_holm"] < LEVEL).all()]
