"""Is the gradient in chunks that of the whole share at once?

Chunks save memory and must change nothing: every pair meets the same candidates. Compared with no chunks where the step
has `chunk_size`, with the step that is named as plain, and with the change of its own value. Source:
sentence-transformers PR 3862 (gradients of all mini-batches but the last lost).
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..ratio import Ratio, ratios
from ..runs import Runs
from ..together import Together

PLACE = 70
AFTER = ("step",)
_NAME = "cached-gradient-differs"


def examine(case: Case) -> Iterator[Verdict]:
    """Compare every chunk size with no chunks, on one process and on several; then rows with the value."""
    compared, problems, worst = 0, [], 0.0
    for where, runs, call, reference in _pairs(case):
        missing = runs.errors.get(call, runs.errors.get(reference))
        if missing is not None:
            problems.append(f"{call} must run{where}; {missing}")
            continue
        compared += 1
        off = _worst(runs, call, reference)
        worst = max(worst, off.distance)
        if off.distance > 10 * case.alone.precision:
            problems.append(f"{_difference(call, off)}{where}")
    lost = case.alone.lost
    if lost is not None and lost.lost and lost.right:
        text = f"{lost.first} has no gradient, though the value of the step depends on it"
        problems.append(f"{text} ({lost.lost} of {lost.total} rows have none, {lost.right} have the right one)")
    if problems:
        yield verdict(_NAME, "fail", "; ".join(problems), off=worst)
    elif compared:
        yield verdict(_NAME, "pass", f"the same in {compared} comparisons, off by at most {worst:.1g}", off=worst)
    else:
        yield _judge_rows(case)


def _judge_rows(case: Case) -> Verdict:
    """Say what is known of a step that has nothing to be compared with."""
    lost, advice = case.alone.lost, "name the step without them with --plain"
    if lost is None or not lost.total:
        return verdict(_NAME, "skipped", f"the step has no chunk_size; if it has chunks inside, {advice}")
    if lost.right == lost.total:
        text = f"all {lost.total} rows have the gradient of the value that the step returns"
        return verdict(_NAME, "pass", text, right=float(lost.right), rows=float(lost.total))
    text = f"{lost.total - lost.right} of {lost.total} rows have another gradient than that of the value of the step"
    return verdict(_NAME, "note", f"{text}: part of it is constant. If it has chunks inside, {advice}")


def _pairs(case: Case) -> Iterator[tuple[str, Runs, str, str]]:
    """Yield where, the calls made there, and the names of two that must be equal."""
    where = [("", case.alone)]
    if case.has(Together):
        where.append((f" on {case.trial.processes} processes", case.part(Together).runs))
    for words, runs in where:
        for call in dict.fromkeys((*runs.results, *runs.errors)):
            if call.startswith("chunks"):
                yield words, runs, call, "plain"
        if case.trial.plain is not None:
            yield words, runs, "plain", "reference"


def _worst(runs: Runs, call: str, reference: str) -> Ratio:
    all_ratios = ratios(runs.results[call].tensors, runs.results[reference].tensors)
    return max(all_ratios, key=lambda ratio: ratio.distance)


def _difference(call: str, off: Ratio) -> str:
    if call == "plain":
        return f"the gradient is {off} that of the plain step"
    return f"in {call} the gradient is {off} that of no chunks"
