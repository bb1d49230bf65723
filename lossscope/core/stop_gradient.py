"""Factors that a loss treats as constants: its gradient does not follow them, though they depend on S."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor


class _StoppedFactors:
    """The constants of one evaluation, in the order of their use."""

    def __init__(self) -> None:
        self.values: list[Tensor] = []
        self.position = 0

    def record_or_replay(self, value: Tensor) -> Tensor:
        """Store a new constant, or return the one stored at this position by the first evaluation."""
        if self.position == len(self.values):
            self.values.append(value)
        self.position += 1
        return self.values[self.position - 1]

    def rewind(self) -> None:
        self.position = 0


_STOPPED: ContextVar[_StoppedFactors | None] = ContextVar("stopped", default=None)


def stop_gradient(factor: Tensor) -> Tensor:
    """Return the factor as a constant: W is the derivative with this value fixed, as in the loss's paper or code.

    Unlike a bare detach(), this lets finite differences fix the value too, so that they measure the same derivative.
    """
    stopped = _STOPPED.get()
    return factor.detach() if stopped is None else stopped.record_or_replay(factor.detach())


@contextmanager
def replay_stopped() -> Iterator[Callable[[], None]]:
    """Fix the constants of later evaluations to those of the first one; call the yielded function before each.

    >>> import torch
    >>> x = torch.tensor(2.0)
    >>> with replay_stopped() as rewind:
    ...     first = stop_gradient(x) * x
    ...     rewind()
    ...     second = stop_gradient(x + 1) * (x + 1)
    >>> float(first), float(second)
    (4.0, 6.0)
    """
    stopped = _StoppedFactors()
    token = _STOPPED.set(stopped)
    try:
        yield stopped.rewind
    finally:
        _STOPPED.reset(token)
