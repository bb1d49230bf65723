"""Captions that hold the text of a special token, as `[MASK]`: taken as text, as by code that lower-cases first."""

from __future__ import annotations

import json
from dataclasses import replace

from .subwords import Subwords


def split_special_tokens(tokeniser: Subwords) -> Subwords:
    """Return BERT's tokeniser so that `[MASK]` in a caption is three tokens, as in the originals, not the mask."""
    return replace(tokeniser, content=json.dumps({**json.loads(tokeniser.content), "added_tokens": []}))
