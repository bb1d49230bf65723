"""Which softmax is it: its temperature, its directions, the mean or the sum over queries?"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..softmax import Softmax

PLACE = 55
AFTER = ("step", "normalised-over-wrong-axis", "positives")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the softmax that was fitted to the weights."""
    fit, size = case.part(Softmax).fit, case.trial.size
    both = abs(fit.columns) > 1e-6 * abs(fit.rows)
    directions = "queries and candidates" if both else "queries"
    if fit.copies is None:
        text = f"negatives are weighed by a softmax of {directions} at temperature {fit.tau:.4g}, positives otherwise"
        yield verdict("scale", "note", text, tau=fit.tau)
        return
    numbers = {"tau": fit.tau, "rows": fit.rows, "columns": fit.columns if both else 0.0}
    total = numbers["rows"] + numbers["columns"]
    kinds = {1.0: "their mean", float(size): "their sum", 0.5 * size: "half their sum", 2.0: "twice their mean"}
    kind = next((words for value, words in kinds.items() if abs(total * size - value) < 1e-4 * value), None)
    weight = kind or f"{total * size:.4g} times their mean"
    yield verdict("scale", "pass", f"a softmax of {directions} at temperature {fit.tau:.4g}, {weight}", **numbers)
