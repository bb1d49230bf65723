"""Where losses break: equal similarities, batches of one, rows without positives, ties, low precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import Weights

from ..custom.embeddings import WIDTH
from .trial_batches import SIZE, TrialBatch, constant_batch, pair_batch, random_batch
from .verdict import Verdict, describe_error, judge

NONE = "none has any weight"
LEVELS = (-1.0, 0.0, 0.3, 1.0)
PRECISIONS = ((torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2))


def check_edge_cases(objective: Any, seed: int) -> Iterator[Verdict]:
    """W and values must be finite in every edge case, and 0 in rows without a positive or a negative."""
    batches = _edge_cases(objective, seed)
    failed = [(label, why) for label, batch in batches.items() if (why := _problem(objective, batch))]
    for label, why in failed:
        yield Verdict("edge cases", "fail", f"{label}: {why}")
    if not failed:
        what = "W is" if random_batch(objective, seed).evaluate(objective).values is None else "W and values are"
        yield Verdict("edge cases", "pass", f"{what} finite in {len(batches)} edge cases: {', '.join(batches)}")


def _edge_cases(objective: Any, seed: int) -> dict[str, TrialBatch]:
    cases = {f"all similarities {level:g}": constant_batch(objective, level) for level in LEVELS}
    cases["batch of 1"] = constant_batch(objective, 0.3, size=1)
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (2, SIZE, SIZE), generator=generator).double() * 2 - 1
    if objective.traits.square:
        first, units = torch.eye(1, WIDTH, dtype=torch.float64), torch.eye(SIZE, WIDTH, dtype=torch.float64)
        cases["similarities of -1 or 1"] = pair_batch(signs[0, :, :1] * first, signs[1, :, :1] * first)
        cases["converged: S = identity"] = pair_batch(units, units)
        cases["float32 at 1 + 1e-7"] = pair_batch(units.float(), units.float() * (1 + 1e-7))
        return cases
    pairs, batch = pair_mask(torch.arange(SIZE)), random_batch(objective, seed)
    everything, nothing = torch.ones_like(pairs.match), torch.zeros_like(pairs.match)
    cases["similarities of -1 or 1"] = TrialBatch(signs[0], pairs)
    cases["converged: S = identity"] = TrialBatch(torch.eye(SIZE, dtype=torch.float64), pairs)
    cases["converged: S = +1 and -1"] = TrialBatch(2 * torch.eye(SIZE, dtype=torch.float64) - 1, pairs)
    cases["float32 at 1 + 1e-7"] = TrialBatch(torch.full((SIZE, SIZE), 1 + 1e-7, dtype=torch.float32), pairs)
    cases["one candidate"] = TrialBatch(batch.S[:, :1], Mask(everything[:, :1], everything[:, :1]))
    cases["one query"] = TrialBatch(batch.S[:1], pairs.rows(torch.arange(1)))
    cases["no positive"] = TrialBatch(batch.S, Mask(nothing, everything))
    cases["no negative"] = TrialBatch(batch.S, Mask(pairs.match, pairs.match))
    return cases


def _problem(objective: Any, batch: TrialBatch) -> str | None:
    """Return what is wrong in an edge case; None if nothing is."""
    try:
        weights = batch.evaluate(objective)
    except Exception as error:
        return describe_error(error)
    problem = describe_not_finite(weights)
    if problem is not None:
        return problem
    skipped = weights.W[~batch.mask.usable]
    if bool(skipped.any()):
        return f"rows without a positive or a negative must have W = 0; got {float(skipped.abs().max()):.3g}"
    return None


def describe_not_finite(weights: Weights) -> str | None:
    """Return a description of the first number that is not finite; None if all are finite."""
    for what, numbers in (("W", weights.W), ("values", weights.values)):
        if numbers is not None and not bool(torch.isfinite(numbers).all()):
            bad = ~torch.isfinite(numbers)
            return (
                f"{int(bad.sum())} of {numbers.numel()} entries of {what} are not finite (the first is "
                f"{float(numbers[bad][0])}, in row {int(bad.nonzero()[0, 0])})"
            )
    return None


def check_precision(objective: Any, seed: int) -> Iterator[Verdict]:
    """S in low precision must give finite weights, near those of the same rounded S in float64."""
    for dtype, bound in PRECISIONS:
        name = str(dtype).removeprefix("torch.")
        rounded = random_batch(objective, seed).to(dtype)
        weights, exact = rounded.evaluate(objective), rounded.to(torch.float64).evaluate(objective)
        not_finite = describe_not_finite(weights)
        off = max(_largest_difference(weights.W, exact.W), _largest_difference(weights.values, exact.values))
        difference = f"differ by {off:.2g} of the largest from those of the same rounded S in float64"
        what = "W" if weights.values is None else "W and values"
        problems = [not_finite] if not_finite else [] if off <= bound else [f"{what} {difference}, more than {bound:g}"]
        yield judge(name, problems, f"{what} {difference} (bound {bound:g})")


def _largest_difference(values: Tensor | None, exact: Tensor | None) -> float:
    """Return the largest difference, in units of the largest entry."""
    if values is None or exact is None:
        return 0.0
    return float((values.double() - exact).abs().max() / exact.abs().max().clamp(min=1e-12))


def check_ties(objective: Any, seed: int) -> Iterator[Verdict]:
    """Of equal hardest negatives all must have the same weight, or the first ones all of it."""
    if objective.traits.square:
        yield Verdict("ties", "skipped", "a loss of whole batches may give equal candidates of a row unequal weights")
        return
    batch, level = random_batch(objective, seed), constant_batch(objective, 0.3)
    S = batch.S.masked_fill(batch.mask.negatives, 0.1)
    tied = batch.mask.negatives & (batch.mask.negatives.cumsum(1) > 1)  # all but the first, which stays easier
    batch = TrialBatch(S.masked_fill(tied, 0.7), batch.mask)
    problems, shares = [], set()
    for where, tested, equal in (("equal hardest negatives", batch, tied), ("an all-equal batch", level, None)):
        W = tested.evaluate(objective).W
        for q, columns in enumerate(tested.mask.negatives if equal is None else equal):
            row = W[q, columns]
            if len(row) < 2 or not bool(torch.isfinite(row).all()):
                continue  # W that is not finite is reported by the edge cases
            number = _number_with_weight(row)
            if number is None:
                weights = ", ".join(f"{float(w):.4g}" for w in row)
                problems.append(f"{where}: those of row {q} have {weights}, neither one weight nor all on the first")
                break
            shares.add(_describe_share(number, len(row)))
    who = " or ".join(sorted(shares - {NONE})) or NONE
    verdict = judge("ties", problems, f"of equal hardest negatives {who}, all-equal batches included")
    yield Verdict("ties", "note", verdict.evidence) if problems and objective.coupled else verdict


def _describe_share(number: int, equals: int) -> str:
    if number == equals:
        return "all have the same weight"
    if number > 1:
        return f"the first {number} have the same weight and the others none"
    return "the first has all the weight" if number else NONE


def _number_with_weight(row: Tensor) -> int | None:
    """Return how many of equal negatives have weight, if these are the first ones and have the same; else None."""
    bound = 1e-9 * max(float(row.abs().max()), 1e-300)
    has_weight = (row.abs() > bound).long()
    equal = bool(((row - row[0]).abs()[has_weight.bool()] <= bound).all())
    return int(has_weight.sum()) if equal and bool((has_weight.diff() <= 0).all()) else None
