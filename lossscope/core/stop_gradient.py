"""Factors that a loss treats as constants: its gradient passes them by, though they depend on the similarities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor


class _Kept:
    """The constants of one evaluation, in the order in which they were met."""

    def __init__(self) -> None:
        self.values: list[Tensor] = []
        self.met = 0

    def meet(self, value: Tensor) -> Tensor:
        if self.met == len(self.values):
            self.values.append(value)
        self.met += 1
        return self.values[self.met - 1]

    def rewind(self) -> None:
        self.met = 0


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


def stop_gradient(factor: Tensor) -> Tensor:
    """The factor as a constant: W is the derivative with this value kept, as the loss's paper or code has it.

    To say so here, not with a bare detach(), lets finite differences keep it too: they see what is really followed.
    """
    kept = _KEPT.get()
    return factor.detach() if kept is None else kept.meet(factor.detach())


@contextmanager
def replay_stopped() -> Iterator[Callable[[], None]]:
    """Inside, the first evaluation sets all constants; after each call of what is yielded, another one repeats them.

    >>> import torch
    >>> x = torch.tensor(2.0)
    >>> with replay_stopped() as again:
    ...     first = stop_gradient(x) * x
    ...     again()
    ...     second = stop_gradient(x + 1) * (x + 1)
    >>> float(first), float(second)
    (4.0, 6.0)
    """
    kept = _Kept()
    token = _KEPT.set(kept)
    try:
        yield kept.rewind
    finally:
        _KEPT.reset(token)
