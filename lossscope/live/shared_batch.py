"""Merge the rows of a batch over processes: check that all agree, and compute the statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from lossscope.core.distributed import ProcessGroup
from lossscope.core.exchange import exchange
from lossscope.engine.one_batch import OneBatch
from lossscope.engine.run_probes import name_of_objective
from lossscope.engine.shares import Share
from lossscope.errors import InputError

from .observed import Observed

_NONE = -1.0  # an unknown offset


@dataclass(frozen=True)
class _Head:
    """The head of a message: facts of the rows of a process, all as float64."""

    failed: float  # 1: the process raised an error and has no rows
    step: float
    objective: float  # digests of names
    statistics: float
    offset: float = _NONE
    rows: float = 0  # of the first direction
    candidates: float = 0
    queries: float = 0  # from which these rows were drawn; the same number if all rows are there
    second_rows: float = 0
    second_candidates: float = 0
    second_queries: float = 0


_LENGTH = len(_Head.__dataclass_fields__)


@dataclass(frozen=True)
class BatchPart:
    """The rows of this process, after the probes have seen them."""

    plan: OneBatch
    shares: Sequence[Share]  # of each direction
    candidates: Sequence[int]  # of each direction
    finite: Tensor  # () bool
    offset: int | None  # column of the positive of the first row; None: not known
    means: Mapping[str, Tensor] = field(default_factory=dict)  # further means over the rows, () each, such as `loss`
    seen: Observed | None = None  # the rows, if they are all rows of this process

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each statistic, and of the bounds of its interval if it comes from a sample."""
        return tuple(name for share in self.shares for name in share.names)


def merge_processes(
    processes: ProcessGroup, step: int, part: Callable[[], BatchPart]
) -> tuple[bool, dict[str, float], Observed | None]:
    """Return whether all inputs are finite, the statistics of the rows of all processes, and the rows of this process.

    Each process sends one message, and all get the same numbers. A process whose part raises an error tells the others,
    so that none waits for it.

    Args:
        processes: with rows of the batch.
        step: its number.
        part: computes the rows of this process.

    Raises:
        InputError: processes do not watch the same, or a process raised an error.
    """
    try:
        computed = part()
        means = [mean.detach().double().to(computed.finite.device)[None] for mean in computed.means.values()]
        numbers = torch.cat([computed.finite.double()[None], *means, *(share.numbers() for share in computed.shares)])
        head = torch.tensor(astuple(_head(step, computed)), dtype=torch.float64, device=numbers.device)
    except Exception:
        exchange(processes, torch.tensor(astuple(_Head(1, step, 0, 0)), dtype=torch.float64))
        raise
    messages = exchange(processes, torch.cat([head, numbers]))
    heads = [_Head(*message[:_LENGTH].tolist()) for message in messages]
    _require_agreement(heads)
    finite = all(bool(message[_LENGTH]) for message in messages)
    end = _LENGTH + 1 + len(computed.means)
    values = _merge(computed, heads, [message[end:] for message in messages])
    of_rows = _means(heads, torch.stack([message[_LENGTH + 1 : end] for message in messages]))
    return finite, dict(zip([*computed.names, *computed.means], [*values, *of_rows], strict=True)), computed.seen


def _merge(part: BatchPart, heads: Sequence[_Head], numbers: Sequence[Tensor]) -> list[float]:
    """Return the statistics of both directions, in the order of the plan."""
    values = []
    for share, of_second in zip(part.shares, ("", "second_"), strict=False):
        rows, queries = ([int(getattr(head, of_second + name)) for head in heads] for name in ("rows", "queries"))
        merged, numbers = share.merge(rows, queries, numbers)
        values += merged
    return values


def _means(heads: Sequence[_Head], means: Tensor) -> list[float]:
    """Return the means over the rows of all processes, from (processes, k) those over the rows of each."""
    rows = torch.tensor([head.rows for head in heads], dtype=torch.float64)[:, None]
    merged: list[float] = ((means.where(rows > 0, 0.0) * rows).sum(0) / rows.sum(0)).tolist()
    return merged


def _head(step: int, part: BatchPart) -> _Head:
    sizes = [(share.rows, c, share.queries) for share, c in zip(part.shares, part.candidates, strict=True)]
    names = "\n".join([part.plan.sides.text, *part.plan.directions, *part.names, *part.means, *part.plan.probe_specs])
    return _Head(
        0, step, _digest(name_of_objective(part.plan.objective)), _digest(names),
        _NONE if part.offset is None else part.offset, *(size for of_direction in sizes for size in of_direction),
    )  # fmt: skip


def _digest(text: str) -> float:
    """Return 48 bits of a digest, which a float64 holds exactly."""
    return float(int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"))


def _require_agreement(heads: Sequence[_Head]) -> None:
    """Raise InputError, the same in every process, unless all watch the same step with the same statistics."""
    for rank, head in enumerate(heads):
        if head.failed:
            raise InputError(
                f"the step needs the rows of all processes; process rank {rank} raised an error in step "
                f"{int(head.step)}. Its own message says which"
            )
    _require_one("watch the same step", [int(head.step) for head in heads])
    for what in ("objective", "statistics"):
        digests = [getattr(head, what) for head in heads]
        if len(set(digests)) > 1:
            rank = next(i for i, digest in enumerate(digests) if digest != digests[0])
            words = {"objective": "objective", "statistics": "probes, sides and directions"}
            raise InputError(
                f"all processes must have the same {words[what]}; those of process rank {rank} differ from those of "
                "rank 0"
            )
    _require_one("have the candidates of all as columns of S", [int(head.candidates) for head in heads])
    _require_one("have the candidates of all as columns of S_second", [int(head.second_candidates) for head in heads])
    if not any(head.queries for head in heads):
        raise InputError("a batch must have a query; every process has none")
    _require_own_positives(heads)


def _require_one(what: str, values: Sequence[int]) -> None:
    if len(set(values)) > 1:
        raise InputError(f"all processes must {what}; got {', '.join(map(str, values))}, by rank")


def _require_own_positives(heads: Sequence[_Head]) -> None:
    """Raise InputError where rows of two processes have the same positive: an offset is wrong."""
    known = [(head.offset, head.queries, rank) for rank, head in enumerate(heads) if head.queries and head.offset >= 0]
    ranges = sorted(known)
    for (first, rows, rank), (start, _, other) in pairwise(ranges):
        if start < first + rows:
            raise InputError(
                f"rows of each process must have their own positives; those of process rank {rank} have columns "
                f"{int(first)} to {int(first + rows) - 1}, those of rank {other} begin at {int(start)}. Give "
                "offset = number of rows of the ranks before"
            )
