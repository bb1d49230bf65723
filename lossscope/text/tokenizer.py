"""What turns a caption into ids: words (vocabulary.py) or parts of words (subwords.py)."""

from __future__ import annotations

from typing import Protocol


class Tokeniser(Protocol):
    """Captions -> ids; 0 is padding."""

    def __len__(self) -> int:
        """Return the number of ids."""

    def encode(self, caption: str) -> list[int]:
        """Return the ids of a caption, start and end included; never empty."""
