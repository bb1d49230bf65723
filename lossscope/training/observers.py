"""Define the callbacks of a training; they do not change a bit of it."""

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
    """The callbacks of a training; None: no callback."""

    progress: Progress | None = None  # called with (label, done, of)
    on_epoch: OnEpoch | None = None
    on_batch: OnBatch | None = None  # called with each batch; training stops if it returns a reason
    on_notice: Callable[[str], None] | None = None  # called before the training with facts that the user should know
    on_warning: Callable[[str], None] | None = None  # called if the run may differ from what the user means

    def notice(self, text: str) -> None:
        """Tell the user a fact about the run."""
        if self.on_notice is not None:
            self.on_notice(text)

    def warn(self, text: str | None) -> None:
        """Warn that the run may differ from what the user means; None: do nothing."""
        if self.on_warning is not None and text is not None:
            self.on_warning(text)
