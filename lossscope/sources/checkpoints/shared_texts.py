"""Equal content, equal bytes: pickle writes a text once per object, and a resumed run has other objects of one text."""

from __future__ import annotations

import sys
from typing import Any


def share_texts(value: Any) -> Any:
    """Return plain containers with every text as the one object of its letters; all else in them is as it was."""
    if type(value) is str:
        return sys.intern(value)
    if type(value) is dict:
        return {share_texts(key): share_texts(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(share_texts(item) for item in value)
    return value
