"""Queries and candidates: whose weights a row may move, and that their order does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lossscope.core.weights import Weights

from .trial_batches import SIZE, Trial, trial
from .verdict import Verdict, judged

SAME = 1e-9  # of the largest entry: rounding in another order, no more


def independence(objective: Any, seed: int) -> Iterator[Verdict]:
    """Changing one row of S may move W and values of that row alone, and must move its value."""
    problems: list[str] = []
    moved = own = 0.0
    for queries, candidates in ((SIZE, SIZE), (6, 9)):
        batch = trial(objective, seed, queries=queries, candidates=candidates)
        before = batch.weigh(objective)
        if before.values is not None and before.values.shape != batch.S.shape[:1]:
            problems.append(
                f"{queries} queries and {candidates} candidates give values of shape {tuple(before.values.shape)} "
                f"instead of ({queries},): they run over the wrong axis"
            )
            continue
        for q in range(len(batch.S)):
            others, self_moved, told = _moved(before, _harder(batch, q).weigh(objective), q)
            moved, own = max(moved, others), max(own, self_moved)
            if others > SAME and not objective.coupled and len(problems) < 2:
                problems.append(f"changing row {q} of S moves {told}")
            if self_moved == 0 and before.values is not None and not objective.coupled and len(problems) < 2:
                problems.append(f"changing row {q} of S, for the worse, does not move the value of query {q}")
    yield _coupling(objective, problems, moved, own)


def _harder(batch: Trial, q: int) -> Trial:
    """Positives of one row down, its negatives up; where there are embeddings, one turned away from its partner."""
    if "queries" in batch.mask.info:
        return batch.stepped(q, q, -0.3)
    S = batch.S.clone()
    S[q] = torch.where(batch.mask.match[q], -0.6, S[q] + 0.1)
    return Trial(S, batch.mask)


def _moved(before: Weights, after: Weights, q: int) -> tuple[float, float, str]:
    """How far the other rows moved, how far the value of row q did, and the worst of the others in words."""
    others = torch.arange(len(before.W)) != q
    found = [("W", by_row(before.W, after.W))]
    if before.values is not None and after.values is not None:
        found.append(("value", by_row(before.values[:, None], after.values[:, None])))
    what, rows = max(found, key=lambda item: float(item[1][others].max()))
    worst = int(rows.masked_fill(~others, -1).argmax())
    own = float(found[-1][1][q])
    return float(rows[worst]), own, f"the {what} of query {worst} by {float(rows[worst]):.3g} of the largest"


def by_row(before: Tensor, after: Tensor) -> Tensor:
    """(q,) largest change of each row, in units of the largest entry."""
    scale = torch.maximum(before.abs().max(), after.abs().max()).clamp(min=1e-12)
    return (after - before).abs().amax(1) / scale


def _coupling(objective: Any, problems: list[str], moved: float, own: float) -> Verdict:
    if objective.coupled and not problems:
        if moved > SAME:
            return Verdict("rows", "pass", f"coupled, as it says: one row of S moves others by up to {moved:.2g}")
        return Verdict("rows", "note", "it says that its rows are coupled, but changing one row of S moved no other")
    if problems:
        problems[-1] += ". A loss of one query may look at its own row only, unless `coupled` says so"
    told = f"changing one row of S moves other rows by {moved:.1g}"
    return judged("rows", problems, f"{told}, its own value by up to {own:.2g} of the largest" if own else told)


def candidates(objective: Any, seed: int) -> Iterator[Verdict]:
    """Candidates in another order: the columns of W in that order. Pairs are permuted as a whole."""
    batch, order = trial(objective, seed), _order(seed)
    if objective.square:
        yield _permuted(objective, "pairs", batch, order, order)
    else:
        yield _permuted(objective, "candidates", batch, torch.arange(SIZE), order)


def queries(objective: Any, seed: int) -> Iterator[Verdict]:
    """Queries in another order: the rows of W and the values in that order."""
    if objective.square:
        yield Verdict("order of queries", "skipped", "pairs are permuted as a whole, with their candidates")
        return
    batch = trial(objective, seed)
    yield _permuted(objective, "queries", batch, _order(seed), torch.arange(SIZE))


def _order(seed: int) -> Tensor:
    return torch.randperm(SIZE, generator=torch.Generator().manual_seed(seed + 1))


def _permuted(objective: Any, what: str, batch: Trial, rows: Tensor, columns: Tensor) -> Verdict:
    before, after = batch.weigh(objective), batch.shuffled(rows, columns).weigh(objective)
    off = {"W": float(by_row(before.W[rows][:, columns], after.W).max())}
    if before.values is not None and after.values is not None:
        off["values"] = float(by_row(before.values[rows][:, None], after.values[:, None]).max())
    problems = [f"{k} of permuted {what} are off by {x:.3g} of the largest" for k, x in off.items() if not x <= SAME]
    told = f"permuting the {what} permutes {' and '.join(off)}, to within {max(off.values()):.1g} of the largest"
    return judged(f"order of {what}", problems, told)
