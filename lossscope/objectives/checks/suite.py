"""`check(spec)`: is this objective what it claims to be? Each check measures one promise on small seeded batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.registry import build, spec_of

from ..base import Objective
from .edge_cases import corners, not_finite, precision, ties
from .finite_differences import finite_differences
from .independence import candidates, independence, queries
from .multi_process import alone
from .padding import padding, scale
from .process_agreement import on_ranks
from .trial_batches import trial
from .verdict import Verdict, judged, raised

__all__ = ["Verdict", "check"]


@dataclass(frozen=True)
class _Check:
    """measure: (objective, seed) -> verdicts. after: checks that must not fail, or this one says nothing."""

    name: str
    measure: Callable[[Any, int], Iterator[Verdict]]
    after: tuple[str, ...] = ("shapes",)


def shapes(objective: Any, seed: int) -> Iterator[Verdict]:
    """W has the shape and type of S, is finite, and 0 where nothing takes part; a value per query or none; S stays."""
    batch = trial(objective, seed)
    S = batch.S.clone()
    found = objective(S, batch.mask)
    W, values, absent = found.W, found.values, ~batch.mask.valid
    problems = []
    if W.shape != S.shape or W.dtype != S.dtype:
        problems.append(f"W must be {_kind(S)}, as S; got {_kind(W)}")
    elif bool(W[absent].any()):
        wrong = int((W[absent] != 0).sum())
        problems.append(f"{wrong} of the {int(absent.sum())} entries that take no part have W ≠ 0")
    if values is not None and values.shape != S.shape[:1]:
        problems.append(f"values must be {tuple(S.shape[:1])}, one loss per query; got {tuple(values.shape)}")
    if not torch.equal(S, batch.S):
        problems.append(f"S must stay as it is; it was changed in {int((S != batch.S).sum())} entries")
    if (strange := not_finite(found)) is not None:
        problems.append(f"in a random batch {strange}")
    if W.requires_grad:
        problems.append("W must be detached; it requires a gradient")
    zero = f", and 0 on the {int(absent.sum())} entries that take no part" if bool(absent.any()) else ""
    kind = "no values: the gradient is stated directly" if values is None else f"{values.numel()} values, one a query"
    yield judged("shapes", problems, f"W is {_kind(S)} as S is, finite{zero}; {kind}")


def _kind(x: Tensor) -> str:
    return f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"


def differences(objective: Any, seed: int) -> Iterator[Verdict]:
    """Where `rows_sum_to_zero` is claimed, rows of W sum to 0."""
    off = 0.0
    for late in (False, True):
        W = trial(objective, seed, late=late).weigh(objective).W
        off = max(off, float(W.sum(1).abs().max() / W.abs().max().clamp(min=1e-12)))
    told = f"rows of W sum to at most {off:.2g} times the largest entry"
    if objective.rows_sum_to_zero:
        problems = [] if off <= 1e-9 else [f"it claims to pull as much as it pushes, but {told}"]
        yield judged("differences", problems, told)
    elif off <= 1e-9:
        yield Verdict("differences", "note", f"{told}: it may claim `rows_sum_to_zero`")
    else:
        yield Verdict("differences", "skipped", f"not claimed: {told}")


def round_trip(objective: Any, seed: int) -> Iterator[Verdict]:
    """object -> spec -> object -> spec."""
    spec = spec_of(objective)
    again = build("objectives", spec)
    problems = [] if again == objective else [f"{spec} builds {again}, which is not {objective}"]
    if spec_of(again) != spec:
        problems.append(f"{spec} is written {spec_of(again)} after being read")
    yield judged("spec", problems, f"{spec} builds an equal objective, which is written the same")


CHECKS = (
    _Check("shapes", shapes, ()),
    _Check("rows", independence),
    _Check("order of candidates", candidates, ("shapes", "rows")),
    _Check("order of queries", queries, ("shapes", "rows")),
    _Check("padding", padding, ("shapes", "rows")),
    _Check("scale", scale, ("shapes", "rows")),
    _Check("corners", corners),
    _Check("precision", precision),
    _Check("finite differences", finite_differences),
    _Check("ties", ties, ("shapes", "rows")),
    _Check("differences", differences),
    _Check("spec", round_trip, ()),
)


def check(spec: str, ranks: int = 2, seed: int = 0) -> list[Verdict]:
    """Everything that can be measured of an objective; `ranks` processes train on one batch together, 1 leaves it out.

    What the objective raises becomes a failed verdict. A script that asks for more than one process must do so under
    `if __name__ == "__main__"`. Raises InputError when the spec can not be built or is no objective.
    """
    if ranks < 1:
        raise InputError(f"ranks must be at least 1; got {ranks}")
    objective = build("objectives", spec)
    if Objective not in type(objective).__mro__:
        kind = type(objective).__name__
        raise InputError(f"{spec} must be an objective; {kind} derives from none of Loss, Gradient, Objective")
    found: list[Verdict] = []
    with alone(objective, seed):
        for item in CHECKS:
            found += _measured(item, objective, seed, found)
    spread = _Check("ranks", lambda one, number: on_ranks(one, ranks, number), ("shapes", "rows"))
    return found + _measured(spread, objective, seed, found)


def _measured(item: _Check, objective: Any, seed: int, before: list[Verdict]) -> list[Verdict]:
    """The verdicts of one check; skipped while what it rests on fails, failed with what the objective raises."""
    failed = {verdict.name for verdict in before if verdict.outcome == "fail"}
    missing = [name for name in item.after if name in failed]
    if missing:
        return [Verdict(item.name, "skipped", f"says nothing while {' and '.join(missing)} fails")]
    found: list[Verdict] = []
    try:
        found.extend(item.measure(objective, seed))
    except Exception as error:
        found.append(Verdict(item.name, "fail", raised(error)))
    return found
