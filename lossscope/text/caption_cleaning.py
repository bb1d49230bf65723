"""How captions are cleaned before a tokeniser reads them, where the authors' code does it outside the tokeniser."""

from __future__ import annotations

import html
import re
import string

from lossscope.errors import needing

CLEANINGS = ("", "clip", "open_clip", "siglip")  # none; as the tokenisers of OpenAI, open_clip and SigLIP do
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_PLAIN = re.compile(r"[\t\n\r !-%'-~]*")  # printable ASCII but &: what ftfy leaves as it is


def clean(caption: str, cleaning: str) -> str:
    """Return a caption after one of CLEANINGS."""
    if cleaning in ("clip", "open_clip"):
        return clean_for_clip(caption)
    return clean_for_siglip(caption) if cleaning == "siglip" else caption


def clean_for_siglip(caption: str) -> str:
    """Return a caption in lower case without punctuation, one space between words.

    >>> clean_for_siglip("A man's hat:  t-shirt.")
    'a mans hat tshirt'
    """
    return " ".join(re.split(r"\s+", caption.lower().translate(_NO_PUNCTUATION).strip()))


def clean_for_clip(caption: str) -> str:
    """Return a caption with its encoding and HTML entities repaired, one space between words, in lower case.

    ftfy repairs encodings; without it, a caption that it could change is an InputError.

    >>> clean_for_clip("  Two   DOGS, a man's hat ")
    "two dogs, a man's hat"
    """
    repaired = caption if _PLAIN.fullmatch(caption) else _repair(caption)
    return " ".join(html.unescape(html.unescape(repaired)).split()).lower()


def _repair(caption: str) -> str:
    with needing("hf", f"captions of OpenAI's CLIP and open_clip's such as {caption[:60]!r} need ftfy"):
        import ftfy
    return ftfy.fix_text(caption)
