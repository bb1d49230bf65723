"""What do the runs show, in one plain sentence?"""

from __future__ import annotations

from ..chapters.base import ReportData
from .base import number, setting
from .best_loss import scores
from .gradient_share import Share, shares_of_largest_setting


def headline(data: ReportData) -> str:
    """Return which loss retrieves best, from how many samples it learns, and from how many the others do.

    Empty where no setting has several losses with both numbers.
    """
    name, encoder, shares = shares_of_largest_setting(data)
    means = scores(data).dropna(subset=["mean"])
    means = means[(means["data"] == name) & (means["encoder"] == encoder)]
    reached = {str(label): float(mean) for label, mean in zip(means["objective_label"], means["mean"], strict=True)}
    known = sorted((share for share in shares if share.label in reached), key=lambda share: -reached[share.label])
    if len(known) < 2:
        return ""
    best, *others = known
    where = f" on {setting(name, encoder, data.results.rows)}" if data.results.rows["data"].nunique() > 1 else ""
    most = max(others, key=lambda share: share.count)
    compared, score = "more" if most.count > best.count else "fewer", data.score
    return (
        f"{best.label} retrieves best{where} ({score.text(reached[best.label])}) and learns from {_samples(best)}; "
        f"{most.label} learns from {compared}, {number(most.count)}, and reaches {score.number(reached[most.label])}."
    )


def _samples(share: Share) -> str:
    """Return `6.8 negatives per query`, or `0.7 triplets per positive`."""
    return f"{number(share.count)} {share.samples.replace('of a', 'per')}"
