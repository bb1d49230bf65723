"""Which negatives does a query have: other candidates of the batch, its mined ones, those of other queries?

A trainer that is given mined negatives and never looks at them trains without saying so. Source: FlagEmbedding issue
958 (the loss stays the same with 1, 4 and 10 negatives).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..mined import Hard, Mined
from ..pulls import Pulls

PLACE = 30
AFTER = ("step", "normalised-over-wrong-axis", "positives")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at what each query pushes, with mined negatives where the step takes them."""
    name, pulls = "negatives-ignored", case.pulls
    if not case.is_readable or not bool(pulls.active.any()):
        yield verdict(name, "skipped", "the weights of candidates cannot be read from the gradient")
        return
    size = case.trial.size
    in_batch = f"a query pushes {_mean(pulls.pushed.sum(1)[pulls.active])} of {size - 1} other candidates"
    queries = pulls.pushed_queries
    in_batch += f" and {_mean(queries.sum(1)[pulls.active])} other queries" if bool(queries.any()) else ""
    if not case.trainer.takes_negatives:
        yield verdict(name, "pass", f"{in_batch}; the step takes no mined negatives")
        return
    if not case.has(Mined) or not case.has(Hard):
        error = case.alone.errors.get("mined", case.alone.errors.get("hard", ""))
        yield verdict(name, "fail", f"it must run with negatives= of shape (b, k, d); {error}")
        return
    mined, hard = case.part(Mined).pulls, case.part(Hard).pulls
    if not _used(mined) and not _used(hard):
        yield verdict(name, "fail", f"{in_batch}; none of its mined negatives has a weight in any query")
        return
    best = mined if _used(mined) else hard
    used = (best.own_negatives > best.smallest).double().mean()
    assert best.negatives is not None
    others = (best.negatives > best.smallest).sum().double() - (best.own_negatives > best.smallest).sum()
    total = best.negatives.numel() - best.own_negatives.numel()
    share = (
        f"{100 * float(used):.0f} % of its own mined negatives, and {100 * float(others) / total:.0f} % of the others'"
    )
    yield verdict(name, "pass", f"{in_batch}, {share}", own=float(used), others=float(others) / total)


def _used(pulls: Pulls) -> bool:
    return bool((pulls.own_negatives > pulls.smallest).any())


def _mean(numbers: torch.Tensor) -> str:
    return f"{float(numbers.double().mean()):.3g}"
