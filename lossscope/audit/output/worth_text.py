"""Say what a training gains without false negatives: floors of losses, differences of the trial, and a verdict."""

from __future__ import annotations

from ..estimate.held_out_trial import SEEDS, Difference, Trial
from ..estimate.loss_floor import LossFloor
from ..estimate.rates import Estimate
from ..steps.result import AuditResult
from ..steps.worth import Worth
from ..types import State


def floor_text(floor: LossFloor) -> str:
    """Return the floors of a loss."""
    return (
        f"{_loss(floor.counted)} with false negatives as negatives, {_loss(floor.masked)} with the mask, "
        f"{floor.without:.4g} without them"
    )


def _loss(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4g}"
    return f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g})"


def difference_text(difference: Difference) -> str:
    """Return a difference and its interval, in percentage points."""
    return f"{difference.value:+.2f} ({difference.low:+.2f} to {difference.high:+.2f})"


def verdict(trial: Trial, state: State) -> str:
    """Return the trial's verdict on the mask, by mAP.

    Without labels the probabilities do not decide: if they are too high, wrong answers would count as found. Then both
    other rankings must agree: the one where no suspect matches, and the one where no suspect counts.
    """
    rankings = {part.ranking: part for part in trial.differences if part.measure == trial.headline.measure}
    if state == "calibrated":
        chosen, where = [trial.headline], "with suspects right answers by their probability"
    else:
        chosen, where = [rankings["left out"], rankings["as labelled"]], "with suspects left out, and with them wrong"
    signs = {1 if part.low > 0 else -1 if part.high < 0 else 0 for part in chosen}
    if signs == {0}:
        return f"No difference could be seen in {trial.headline.measure}, {where}."
    if len(signs) > 1:
        return (
            "Whether the mask helps these heads depends on whether the suspects match, which probabilities "
            "of other data cannot say: label pairs, then give --labels."
        )
    return f"The heads found {'more' if signs == {1} else 'less'} with the mask in {trial.headline.measure}, {where}."


def worth_lines(result: AuditResult, worth: Worth) -> list[str]:
    """Return the printed lines about the worth of an audit's mask."""
    lines = [f"loss of a model that is right, {floor.objective}   {floor_text(floor)}" for floor in worth.floors]
    trial = worth.trial
    if trial is not None:
        lines += [
            f"Trial of p >= {result.threshold:g}: heads on {trial.vectors} ({trial.width} dimensions), "
            f"{trial.objective}, batches of {trial.batch_size:,}, {trial.queries:,} queries, {SEEDS} seeds, "
            f"{trial.hidden:,} pairs left out.",
            "What they find with the mask less what they find without it, in points:",
            f"{'suspects are':<16}" + "".join(f"{part.measure:<30}" for part in trial.differences[:3]).rstrip(),
        ]
        for start in range(0, len(trial.differences), 3):
            row = trial.differences[start : start + 3]
            lines.append(f"{row[0].ranking:<16}" + "".join(f"{difference_text(part):<30}" for part in row).rstrip())
        lines.append(verdict(trial, result.state))
    return [*lines, *(f"not known: {reason}" for reason in worth.reasons)]
