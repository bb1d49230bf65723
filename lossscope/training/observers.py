"""Who is told of a training while it runs; none of them changes a bit of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lossscope.core.types import Progress

from .trained_batch import OnBatch

OnEpoch = Callable[[dict[str, Any]], None]
"""Called with each row of metrics.csv."""


@dataclass(frozen=True)
class Observers:
    """Who is told of a training; None: nobody."""

    progress: Progress | None = None  # called with (label, done, of)
    on_epoch: OnEpoch | None = None
    on_batch: OnBatch | None = None  # called with each batch; training stops where it returns a reason
    on_notice: Callable[[str], None] | None = None  # called with what the user should know before it begins
    on_warning: Callable[[str], None] | None = None  # called with what may make it another run than the user means

    def notice(self, text: str) -> None:
        """Say what the user should know."""
        if self.on_notice is not None:
            self.on_notice(text)

    def warn(self, text: str | None) -> None:
        """Say what may make it another run than the user means; nothing where there is no text."""
        if self.on_warning is not None and text is not None:
            self.on_warning(text)
