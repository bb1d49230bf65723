"""Passages of Tevatron and DPR, `{"docid", "title", "text"}`: the text that a model reads, and the id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import shorten
from lossscope.io.limits import MAX_ROW_LETTERS

_TEXTS = ("text", "contents")
_IDS = ("docid", "passage_id", "psg_id", "_id", "id")  # the last ones of DPR and BEIR


def passage_text(passage: Mapping[str, Any], where: str) -> tuple[str, str | None]:
    """Return the title, a blank and the text of a passage, as Tevatron joins them, and the id; None: it has none.

    Raises InputError for a passage without a text, or with values of other kinds.

    >>> passage_text({"docid": "d1", "title": "Emma", "text": "A novel."}, "row 1")
    ('Emma A novel.', 'd1')
    """
    text = next((passage[name] for name in _TEXTS if name in passage), None)
    title = passage.get("title")
    if not isinstance(text, str) or not (title is None or isinstance(title, str)):
        raise InputError(f'{where} must be passages of {{"docid", "title", "text"}}; got {shorten(passage)}')
    id = next((passage[name] for name in _IDS if passage.get(name) not in (None, "")), None)
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise InputError(f"ids of {where} must be texts or whole numbers; got {shorten(id)}")
    joined = f"{title or ''} {text}".strip()
    if len(joined) > MAX_ROW_LETTERS:
        raise InputError(f"texts of {where} must be of at most {MAX_ROW_LETTERS} letters; got {len(joined)}")
    return joined, None if id is None else str(id)
