"""What turns a caption into ids: words (vocabulary.py) or parts of words (subwords.py)."""

from __future__ import annotations

from typing import Protocol


class Tokens(Protocol):
    """A tokeniser with its ids; 0 pads."""

    def __len__(self) -> int:
        """How many ids there are."""

    def encode(self, caption: str) -> list[int]:
        """Ids of a caption, start and end included; never empty."""
