"""Mark the best and the second number of a block, and the numbers that differ from the best by a test.

A test is a row: data, encoder, objective_label, statistic, direction, baseline (label of the other system), p_holm
(corrected for all comparisons), and an optional `test`: each kind of test has a sign of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._footnotes import Footnotes, join_marks
from .cells import Better, Cell, mark_best_of_column

LEVEL = 0.05
SIGNS = "†‡§¶"
_COLUMNS = ("data", "encoder", "objective_label", "statistic", "direction", "baseline", "p_holm")
_KINDS = {"images": "paired permutation test over images", "seeds": "paired t-test over seeds"}


@dataclass(frozen=True)
class Contest:
    """A column of a block, whose numbers are compared."""

    data: str  # label
    encoder: str  # label
    statistic: str
    direction: str
    better: Better

    def mark(
        self, cells: Sequence[Cell], labels: Sequence[str], tests: pd.DataFrame | None, notes: Footnotes
    ) -> list[Cell]:
        """Mark the best and the second cell, and give a sign to cells that differ from the best after Holm at 0.05.

        If other cells of the column were tested, a cell that was not tested against the best gets a footnote.

        Args:
            cells: of the column.
            labels: objective label of each cell.
            tests: result of `with_signs`, or None.
            notes: the footnotes.
        """
        marked = mark_best_of_column(cells, self.better)
        of_column = self._select(tests)
        best = {label for label, cell in zip(labels, marked, strict=True) if cell.best}
        if of_column is None or of_column.empty or not best:
            return marked
        return [
            cell
            if cell.best or cell.missing
            else replace(cell, mark=join_marks(cell.mark, *_signs(of_column, label, best, notes)))
            for cell, label in zip(marked, labels, strict=True)
        ]

    def _select(self, tests: pd.DataFrame | None) -> pd.DataFrame | None:
        """Return the tests of this column."""
        if tests is None:
            return None
        columns = ("data", "encoder", "statistic", "direction")
        return tests[(tests[list(columns)] == [getattr(self, column) for column in columns]).all(axis=1)]


def with_signs(tests: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the tests with a column `sign`. Raises InputError for missing columns and for too many kinds of tests."""
    if tests is None:
        return None
    require_columns(tests, _COLUMNS, "tests")
    named = tests if "test" in tests else tests.assign(test="a test without a name")
    kinds = list(named["test"].unique())
    if len(kinds) > len(SIGNS):
        raise InputError(
            f"tests must be of {len(SIGNS)} kinds at most; got {', '.join(map(str, kinds))}. Leave some out"
        )
    return named.assign(sign=named["test"].map(dict(zip(kinds, SIGNS, strict=False))))


def describe_tests(tests: pd.DataFrame | None, columns: set[tuple[str, str]]) -> str:
    """Return a sentence for the caption: the tests, their metrics, the correction and the level.

    Args:
        tests: result of `with_signs`, or None.
        columns: (statistic, direction) of the table's columns.
    """
    if tests is None:
        return "No significance test was made."
    in_table = [pair in columns for pair in zip(tests["statistic"], tests["direction"], strict=True)]
    defined = tests[pd.Series(in_table, index=tests.index) & tests["p_holm"].notna()]
    if defined.empty:
        return "No significance test of these numbers was made."
    pairs = dict.fromkeys(zip(defined["statistic"], defined["direction"], strict=True))
    what = ", ".join(statistic if side == "both" else f"{side} {statistic}" for statistic, side in pairs)
    kinds = defined[["sign", "test"]].drop_duplicates()
    signs = ", ".join(f"{sign} by {_KINDS.get(kind, kind)}" for sign, kind in kinds.itertuples(index=False))
    return f"Differs from the best of its block: {signs} (tested: {what}; Holm correction, p < {LEVEL})."


def _signs(tests: pd.DataFrame, label: str, best: set[str], notes: Footnotes) -> list[str]:
    """Return the signs of the tests in which a label differs from the best; a footnote's letter without a test."""
    with_best = (tests["objective_label"] == label) & tests["baseline"].isin(best)
    reversed_pair = (tests["baseline"] == label) & tests["objective_label"].isin(best)
    defined = tests[(with_best | reversed_pair) & tests["p_holm"].notna()]
    if defined.empty:
        return [notes.letter(f"{label} was not tested against {' or '.join(sorted(best))}.")]
    return [str(sign) for sign, part in defined.groupby("sign", sort=False) if (part["p_holm"] < LEVEL).all()]
