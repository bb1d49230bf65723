"""Is the gradient on N processes as long as that on one, of embeddings and of the loss's own parameters?

A factor N makes up for a gather without gradients under a mean over processes; without such a gather, or of parameters
of the loss itself, it is N times too much. Source: tevatron issues 30 and 143, pylate PR 156.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..ratio import Ratio
from ..together import Together
from .gather_without_gradient import of_processes

PLACE = 140
AFTER = (
    "step",
    "normalised-over-wrong-axis",
    "processes",
    "labels-without-offset",
    "gather-without-gradient",
    "cached-gradient-differs",
)


def examine(case: Case) -> Iterator[Verdict]:
    """Compare the lengths of all gradients with those expected."""
    name = "loss-scaled-by-processes"
    together = case.part(Together)
    if together.is_another_loss:
        yield verdict(name, "skipped", "several processes compute another loss: nothing to compare with")
        return
    all_ratios = of_processes(together)
    numbers = {f"{ratio.of}.length": ratio.length for ratio in all_ratios}
    wrong = [ratio for ratio in all_ratios if ratio.distance > 10 * case.alone.precision]
    if not wrong:
        parameters = [ratio.of for ratio in all_ratios if ratio.of not in ("queries", "candidates", "negatives")]
        of = f", and that of {', '.join(parameters)}" if parameters else ""
        yield verdict(name, "pass", f"the gradient of embeddings has the length that it must have{of}", **numbers)
        return
    reduction = "averages" if case.trial.mean else "adds up"
    advice = _advice(wrong, case.trial.processes)
    found = " and ".join(map(str, wrong))
    text = f"on {case.trial.processes} processes the gradient is {found} the right one"
    yield verdict(name, "fail", f"{text}, where the trainer {reduction} gradients over processes{advice}", **numbers)


def _advice(wrong: list[Ratio], processes: int) -> str:
    """Say what a factor of all gradients is."""
    lengths = [ratio.length for ratio in wrong]
    if all(abs(length - processes) < 1e-4 for length in lengths):
        return f": the loss is multiplied by the {processes} processes, though nothing is lost"
    if all(abs(length * processes - 1) < 1e-4 for length in lengths):
        return f": each process states its part of a mean over all; multiply it by {processes}, or add gradients up"
    return ""
