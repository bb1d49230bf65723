"""Leave out the pairs of a file, such as the suspects of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.types import HIDDEN_FROM
from lossscope.errors import InputError

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class Pairs:
    """hidden = the file gives query and candidate a probability of at least `threshold` to match.

    The file is the mask.npz of `lossscope audit`, or its folder; `--mask FILE.npz` is short for it. Items are those of
    the same ids. Raises InputError unless 0 < threshold <= 1, and for one below which the file lists no pairs.
    """

    file: Path  # mask.npz of an audit
    threshold: float = HIDDEN_FROM  # probability from which a pair is left out
    needs: ClassVar[Needs] = "items"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(f"threshold must be in (0, 1]; got {self.threshold}")

    @cached_property
    def known(self) -> KnownPairs:
        """The pairs of the file. Raises InputError for a file of no audit, and for one that lists too few."""
        known = read_known_pairs(self.file)
        known.require_threshold(self.threshold)
        return known

    def hidden(self, rows: MaskInputs) -> Tensor:
        assert rows.items is not None
        hidden: Tensor = torch.from_numpy(rows.items.probabilities(self.known) >= self.threshold).to(rows.S.device)
        return hidden
