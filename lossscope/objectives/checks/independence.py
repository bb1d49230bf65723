"""Do queries influence each other only where `coupled`, and does the order of queries and candidates not matter?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lossscope.core.weights import Weights

from .tolerances import tolerances_of
from .trial_batches import SIZE, TrialBatch, random_batch
from .verdict import Verdict, judge

_ROUNDED = 1e-3  # of the largest entry: a larger change is no rounding error of any type


def check_row_independence(objective: Any, seed: int) -> Iterator[Verdict]:
    """A change of one row of S may change W and values of that row alone, and must change its value."""
    problems: list[str] = []
    of_others, of_row, same = 0.0, 0.0, tolerances_of(objective).same
    for queries, candidates in ((SIZE, SIZE), (6, 9)):
        batch = random_batch(objective, seed, queries=queries, candidates=candidates)
        before = batch.evaluate(objective)
        if before.values is not None and before.values.shape != batch.S.shape[:1]:
            problems.append(
                f"{queries} queries and {candidates} candidates give values of shape {tuple(before.values.shape)} "
                f"instead of ({queries},): they run over the wrong axis"
            )
            continue
        for q in range(len(batch.S)):
            others, row, text = _changes(before, _make_harder(batch, q).evaluate(objective), q)
            of_others, of_row = max(of_others, others), max(of_row, row)
            if others > same and not objective.coupled and len(problems) < 2:
                problems.append(f"changing row {q} of S moves {text}")
            if row == 0 and before.values is not None and not objective.coupled and len(problems) < 2:
                problems.append(f"changing row {q} of S, for the worse, does not move the value of query {q}")
    yield _judge_coupling(objective, problems, of_others, of_row)


def _make_harder(batch: TrialBatch, q: int) -> TrialBatch:
    """Lower the positives of one row and raise its negatives; an embedding is turned away from its partner."""
    if "queries" in batch.mask.info:
        return batch.with_step(q, q, -0.3)
    S = batch.S.clone()
    S[q] = torch.where(batch.mask.match[q], -0.6, S[q] + 0.1)
    return TrialBatch(S, batch.mask)


def _changes(before: Weights, after: Weights, q: int) -> tuple[float, float, str]:
    """Return the largest change of the other rows, the change of the value of row q, and a description of the first."""
    others = torch.arange(len(before.W)) != q
    changes = [("W", largest_change(before.W, after.W))]
    if before.values is not None and after.values is not None:
        changes.append(("value", largest_change(before.values[:, None], after.values[:, None])))
    what, rows = max(changes, key=lambda item: float(item[1][others].max()))
    worst = int(rows.masked_fill(~others, -1).argmax())
    of_row = float(changes[-1][1][q])
    return float(rows[worst]), of_row, f"the {what} of query {worst} by {float(rows[worst]):.3g} of the largest"


def largest_change(before: Tensor, after: Tensor) -> Tensor:
    """(q,) largest change of each row, in units of the largest entry."""
    scale = torch.maximum(before.abs().max(), after.abs().max()).clamp(min=1e-12)
    return (after - before).abs().amax(1) / scale


def _judge_coupling(objective: Any, problems: list[str], of_others: float, of_row: float) -> Verdict:
    if objective.coupled and not problems:
        if of_others > tolerances_of(objective).same:
            return Verdict("rows", "pass", f"coupled, as it claims: one row of S moves others by up to {of_others:.2g}")
        return Verdict("rows", "note", "it claims that its rows are coupled, but changing one row of S moved no other")
    if problems:
        problems[-1] += ". A loss of one query may depend on its own row only, unless `coupled` is set"
    evidence = f"changing one row of S moves other rows by {of_others:.1g}"
    return judge(
        "rows", problems, f"{evidence}, its own value by up to {of_row:.2g} of the largest" if of_row else evidence
    )


def check_candidate_order(objective: Any, seed: int) -> Iterator[Verdict]:
    """Permuting the candidates must permute the columns of W. Pairs are permuted as a whole."""
    batch, order = random_batch(objective, seed), _permutation(seed)
    if objective.traits.square:
        yield _judge_permutation(objective, "pairs", batch, order, order)
    else:
        yield _judge_permutation(objective, "candidates", batch, torch.arange(SIZE), order)


def check_query_order(objective: Any, seed: int) -> Iterator[Verdict]:
    """Permuting the queries must permute the rows of W and the values."""
    if objective.traits.square:
        yield Verdict("order of queries", "skipped", "pairs are permuted as a whole, with their candidates")
        return
    batch = random_batch(objective, seed)
    yield _judge_permutation(objective, "queries", batch, _permutation(seed), torch.arange(SIZE))


def _permutation(seed: int) -> Tensor:
    return torch.randperm(SIZE, generator=torch.Generator().manual_seed(seed + 1))


def _judge_permutation(objective: Any, what: str, batch: TrialBatch, rows: Tensor, columns: Tensor) -> Verdict:
    before, after = batch.evaluate(objective), batch.permute(rows, columns).evaluate(objective)
    off = {"W": float(largest_change(before.W[rows][:, columns], after.W).max())}
    if before.values is not None and after.values is not None:
        off["values"] = float(largest_change(before.values[rows][:, None], after.values[:, None]).max())
    same = tolerances_of(objective).same
    problems = [f"{k} of permuted {what} are off by {x:.3g} of the largest" for k, x in off.items() if not x <= same]
    if problems and max(off.values()) > _ROUNDED:
        problems[-1] += (
            ". Nothing may depend on the place of a row: a number of each row, such as its maximum or its mask, may be "
            "taken along the wrong axis (keepdim=True)"
        )
    evidence = f"permuting the {what} permutes {' and '.join(off)}, to within {max(off.values()):.1g} of the largest"
    return judge(f"order of {what}", problems, evidence)
