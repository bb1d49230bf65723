"""`check(spec)`: is an objective what it claims to be? Each check measures one property on small seeded batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError, UnsupportedLoss
from lossscope.registry import build, spec_of

from ..base import Objective
from .edge_cases import check_edge_cases, check_precision, check_ties, describe_not_finite
from .finite_differences import check_finite_differences
from .independence import check_candidate_order, check_query_order, check_row_independence
from .labels import NAME as OF_LABELS
from .labels import check_labels
from .multi_process import group_if_needed
from .padding import check_padding, check_scale
from .process_agreement import check_processes
from .softmax_form import check_softmax
from .trial_batches import SIZE, random_batch
from .verdict import Verdict, describe_error, judge

__all__ = ["Verdict", "check"]


@dataclass(frozen=True)
class _Check:
    """One check and what it depends on."""

    name: str
    measure: Callable[[Any, int], Iterator[Verdict]]  # (objective, seed) -> verdicts
    after: tuple[str, ...] = ("shapes",)  # checks that must not fail, or this one is skipped


def check_shapes(objective: Any, seed: int) -> Iterator[Verdict]:
    """W must have the shape and type of S, be finite, and be 0 where S is not valid; S must not be changed."""
    batch = random_batch(objective, seed)
    S = batch.S.clone()
    weights = objective(S, batch.mask)
    W, values, absent = weights.W, weights.values, ~batch.mask.valid
    problems = []
    if W.shape != S.shape or W.dtype != S.dtype:
        problems.append(f"W must be {_kind(S)}, as S; got {_kind(W)}")
    elif bool(W[absent].any()):
        wrong = int((W[absent] != 0).sum())
        problems.append(f"{wrong} of the {int(absent.sum())} entries that are not valid have W ≠ 0")
    if values is not None and values.shape != S.shape[:1]:
        problems.append(f"values must be {tuple(S.shape[:1])}, one loss per query; got {tuple(values.shape)}")
    if not torch.equal(S, batch.S):
        problems.append(f"S must stay as it is; it was changed in {int((S != batch.S).sum())} entries")
    if (not_finite := describe_not_finite(weights)) is not None:
        problems.append(f"in a random batch {not_finite}")
    if W.requires_grad:
        problems.append("W must be detached; it requires a gradient")
    zero = f", and 0 on the {int(absent.sum())} entries that are not valid" if bool(absent.any()) else ""
    kind = "no values: the gradient is stated directly" if values is None else f"{values.numel()} values, one a query"
    yield judge("shapes", problems, f"W is {_kind(S)} as S is, finite{zero}; {kind}")


def _kind(x: Tensor) -> str:
    return f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"


def check_row_sums(objective: Any, seed: int) -> Iterator[Verdict]:
    """Rows of W must sum to 0 where `rows_sum_to_zero` is claimed."""
    off = 0.0
    for late in (False, True):
        W = random_batch(objective, seed, late=late).evaluate(objective).W
        off = max(off, float(W.sum(1).abs().max() / W.abs().max().clamp(min=1e-12)))
    evidence = f"rows of W sum to at most {off:.2g} times the largest entry"
    if objective.rows_sum_to_zero:
        problems = [] if off <= 1e-9 else [f"it claims `rows_sum_to_zero`, but {evidence}"]
        yield judge("row sums", problems, evidence)
    elif off <= 1e-9:
        yield Verdict("row sums", "note", f"{evidence}: it may claim `rows_sum_to_zero`")
    else:
        yield Verdict("row sums", "skipped", f"not claimed: {evidence}")


def check_round_trip(objective: Any, seed: int) -> Iterator[Verdict]:
    """object -> spec -> object -> spec must give the same object and the same spec."""
    spec = spec_of(objective)
    rebuilt = build("objectives", spec)
    problems = [] if rebuilt == objective else [f"{spec} builds {rebuilt}, which is not {objective}"]
    if spec_of(rebuilt) != spec:
        problems.append(f"{spec} is written {spec_of(rebuilt)} after being read")
    yield judge("spec", problems, f"{spec} builds an equal objective, which is written the same")


CHECKS = (
    _Check("shapes", check_shapes, ()),
    _Check("rows", check_row_independence),
    _Check("order of candidates", check_candidate_order, ("shapes", "rows")),
    _Check("order of queries", check_query_order, ("shapes", "rows")),
    _Check("padding", check_padding, ("shapes", "rows")),
    _Check("scale", check_scale, ("shapes", "rows")),
    _Check("edge cases", check_edge_cases),
    _Check(OF_LABELS, check_labels),
    _Check("precision", check_precision),
    _Check("softmax", check_softmax, ("shapes", "rows")),
    _Check("finite differences", check_finite_differences),
    _Check("ties", check_ties, ("shapes", "rows")),
    _Check("row sums", check_row_sums),
    _Check("spec", check_round_trip, ()),
)


def check(spec: str, processes: int = 2, seed: int = 0) -> list[Verdict]:
    """Run all checks of an objective; an error that the objective raises becomes a failed verdict.

    Args:
        spec: of the objective.
        processes: that train on one batch together; 1 skips this check. A script that requests more than one must call
            this under `if __name__ == "__main__"`.
        seed: of the batches.

    Raises:
        InputError: when the spec cannot be built or is no objective, or a loss that cannot be checked as one.
    """
    if processes < 1:
        raise InputError(f"processes must be at least 1; got {processes}")
    objective = build("objectives", spec)
    if Objective not in type(objective).__mro__:
        kind = type(objective).__name__
        raise InputError(f"{spec} must be an objective; {kind} derives from none of LossObjective, Gradient, Objective")
    mistake = getattr(objective, "mistake", None)  # of a user's loss of embeddings
    if mistake is not None:
        return [Verdict("similarities", "fail", mistake)]
    _require_small_batches(objective, seed)
    verdicts: list[Verdict] = []
    with group_if_needed(objective, seed):
        for item in CHECKS:
            verdicts += _run(item, objective, seed, verdicts)
    agreement = _Check("processes", lambda checked, seed: check_processes(checked, processes, seed), ("shapes", "rows"))
    return verdicts + _run(agreement, objective, seed, verdicts)


def _require_small_batches(objective: Any, seed: int) -> None:
    """Raise InputError for a loss that runs, but on larger batches only than those of the checks."""
    smallest = getattr(objective, "smallest_batch", 0)
    if smallest <= SIZE:
        return
    try:
        random_batch(objective, seed).evaluate(objective)
    except UnsupportedLoss:
        raise
    except InputError as error:
        raise InputError(
            f"{spec_of(objective)} must run on batches of {SIZE} pairs for a check; {error}. It runs on "
            f"{smallest} pairs: check it with a smaller k or minimum"
        ) from error


def _run(item: _Check, objective: Any, seed: int, before: list[Verdict]) -> list[Verdict]:
    """Return the verdicts of one check: skipped if a check it depends on failed, failed if the objective raises."""
    failed = {verdict.name for verdict in before if verdict.outcome == "fail"}
    missing = [name for name in item.after if name in failed]
    if missing:
        return [Verdict(item.name, "skipped", f"not measured while {' and '.join(missing)} fails")]
    verdicts: list[Verdict] = []
    try:
        verdicts.extend(item.measure(objective, seed))
    except UnsupportedLoss:
        raise
    except Exception as error:
        verdicts.append(Verdict(item.name, "fail", describe_error(error)))
    return verdicts
