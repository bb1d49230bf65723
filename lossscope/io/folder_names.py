"""The rule for names that become folders, wherever they come from: a TOML file, a JSON file, the command line."""

from __future__ import annotations

import re

LONGEST_NAME = 200  # bytes in UTF-8


def is_folder_name(text: str) -> bool:
    """Return whether a text is letters, digits, `-`, `_` and `.`, not first `-` or `.`, and at most LONGEST_NAME."""
    return bool(re.fullmatch(r"\w[\w.-]*", text)) and len(text.encode(errors="replace")) <= LONGEST_NAME
