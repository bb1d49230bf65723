"""Where losses break: equal similarities, batches of one, rows without positives, ties, few digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import Weights

from ..custom.embeddings import WIDTH
from .trial_batches import SIZE, Trial, constant, paired, trial
from .verdict import Verdict, judged, raised

NOBODY = "none carries any weight"
LEVELS = (-1.0, 0.0, 0.3, 1.0)
PRECISIONS = ((torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2))


def corners(objective: Any, seed: int) -> Iterator[Verdict]:
    """W and values must be finite in every corner, and 0 in rows without a positive or a negative."""
    batches = _corners(objective, seed)
    failed = [(label, why) for label, batch in batches.items() if (why := _trouble(objective, batch))]
    for label, why in failed:
        yield Verdict("corners", "fail", f"{label}: {why}")
    if not failed:
        what = "W is" if trial(objective, seed).weigh(objective).values is None else "W and values are"
        yield Verdict("corners", "pass", f"{what} finite in {len(batches)} corners: {', '.join(batches)}")


def _corners(objective: Any, seed: int) -> dict[str, Trial]:
    found = {f"all similarities {level:g}": constant(objective, level) for level in LEVELS}
    found["batch of 1"] = constant(objective, 0.3, size=1)
    random = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (2, SIZE, SIZE), generator=random).double() * 2 - 1
    if objective.square:
        first, units = torch.eye(1, WIDTH, dtype=torch.float64), torch.eye(SIZE, WIDTH, dtype=torch.float64)
        found["similarities of -1 or 1"] = paired(signs[0, :, :1] * first, signs[1, :, :1] * first)
        found["converged: S = identity"] = paired(units, units)
        found["float32 at 1 + 1e-7"] = paired(units.float(), units.float() * (1 + 1e-7))
        return found
    pairs, some = pair_mask(torch.arange(SIZE)), trial(objective, seed)
    everything, nothing = torch.ones_like(pairs.match), torch.zeros_like(pairs.match)
    found["similarities of -1 or 1"] = Trial(signs[0], pairs)
    found["converged: S = identity"] = Trial(torch.eye(SIZE, dtype=torch.float64), pairs)
    found["converged: S = +1 and -1"] = Trial(2 * torch.eye(SIZE, dtype=torch.float64) - 1, pairs)
    found["float32 at 1 + 1e-7"] = Trial(torch.full((SIZE, SIZE), 1 + 1e-7, dtype=torch.float32), pairs)
    found["one candidate"] = Trial(some.S[:, :1], Mask(everything[:, :1], everything[:, :1]))
    found["one query"] = Trial(some.S[:1], pairs.rows(torch.arange(1)))
    found["no positive"] = Trial(some.S, Mask(nothing, everything))
    found["no negative"] = Trial(some.S, Mask(pairs.match, pairs.match))
    return found


def _trouble(objective: Any, batch: Trial) -> str | None:
    """What is wrong in a corner, None where nothing is."""
    try:
        found = batch.weigh(objective)
    except Exception as error:
        return raised(error)
    strange = not_finite(found)
    if strange is not None:
        return strange
    left_out = found.W[~batch.mask.usable]
    if bool(left_out.any()):
        return f"rows without a positive or a negative must have W = 0; got {float(left_out.abs().max()):.3g}"
    return None


def not_finite(found: Weights) -> str | None:
    """The first number that is not finite."""
    for what, numbers in (("W", found.W), ("values", found.values)):
        if numbers is not None and not bool(torch.isfinite(numbers).all()):
            bad = ~torch.isfinite(numbers)
            return (
                f"{int(bad.sum())} of {numbers.numel()} entries of {what} are not finite (the first is "
                f"{float(numbers[bad][0])}, in row {int(bad.nonzero()[0, 0])})"
            )
    return None


def precision(objective: Any, seed: int) -> Iterator[Verdict]:
    """Few digits in S must give finite weights, near those of the same rounded S in float64."""
    for dtype, bound in PRECISIONS:
        name = str(dtype).removeprefix("torch.")
        few = trial(objective, seed).to(dtype)
        found, exact = few.weigh(objective), few.to(torch.float64).weigh(objective)
        strange = not_finite(found)
        off = max(_apart(found.W, exact.W), _apart(found.values, exact.values))
        apart = f"differ by {off:.2g} of the largest from those of the same rounded S in float64"
        what = "W" if found.values is None else "W and values"
        problems = [strange] if strange else [] if off <= bound else [f"{what} {apart}, more than {bound:g}"]
        yield judged(name, problems, f"{what} {apart} (bound {bound:g})")


def _apart(found: Tensor | None, exact: Tensor | None) -> float:
    """The largest difference, in units of the largest entry."""
    if found is None or exact is None:
        return 0.0
    return float((found.double() - exact).abs().max() / exact.abs().max().clamp(min=1e-12))


def ties(objective: Any, seed: int) -> Iterator[Verdict]:
    """Of equal hardest negatives all must carry the same weight, or the first ones all of it."""
    if objective.square:
        yield Verdict("ties", "skipped", "a loss of whole batches may weigh equal candidates of a row by their columns")
        return
    batch, level = trial(objective, seed), constant(objective, 0.3)
    S = batch.S.masked_fill(batch.mask.negatives, 0.1)
    tied = batch.mask.negatives & (batch.mask.negatives.cumsum(1) > 1)  # all but the first, which stays easier
    batch = Trial(S.masked_fill(tied, 0.7), batch.mask)
    problems, shares = [], set()
    for where, tried, equal in (("equal hardest negatives", batch, tied), ("an all-equal batch", level, None)):
        W = tried.weigh(objective).W
        for q, columns in enumerate(tried.mask.negatives if equal is None else equal):
            row = W[q, columns]
            if len(row) < 2 or not bool(torch.isfinite(row).all()):
                continue  # what is not finite is told by the corners
            carrying = _carrying(row)
            if carrying is None:
                some = ", ".join(f"{float(w):.4g}" for w in row)
                problems.append(f"{where}: those of row {q} carry {some}, neither one weight nor all on the first")
                break
            shares.add(_share(carrying, len(row)))
    who = " or ".join(sorted(shares - {NOBODY})) or NOBODY
    verdict = judged("ties", problems, f"of equal hardest negatives {who}, all-equal batches included")
    yield Verdict("ties", "note", verdict.evidence) if problems and objective.coupled else verdict


def _share(carrying: int, equals: int) -> str:
    if carrying == equals:
        return "all carry the same weight"
    if carrying > 1:
        return f"the first {carrying} carry the same weight and the others none"
    return "the first carries all the weight" if carrying else NOBODY


def _carrying(row: Tensor) -> int | None:
    """How many of equals carry the weight: the first ones, the same each. None where neither holds."""
    bound = 1e-9 * max(float(row.abs().max()), 1e-300)
    carrying = (row.abs() > bound).long()
    alike = bool(((row - row[0]).abs()[carrying.bool()] <= bound).all())
    return int(carrying.sum()) if alike and bool((carrying.diff() <= 0).all()) else None
