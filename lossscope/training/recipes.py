"""The papers' recipes by name: the TOML files of lossscope/presets."""

from __future__ import annotations

import difflib
from pathlib import Path

from lossscope.errors import SpecError

_HOME = Path(__file__).parent / "presets"


def presets() -> dict[str, str]:
    """Name -> its first comment line: what the recipe is and of which paper."""
    return {path.stem: _about(path) for path in sorted(_HOME.glob("*.toml"))}


def preset_path(name: str) -> Path:
    """The file of a preset; `-` and `_` are equal. Raises SpecError with the nearest names."""
    wanted = name.replace("-", "_").lower()
    known = list(presets())
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise SpecError(f"preset must be one of those that `lossscope list presets` shows; got {name!r}{hint}")
    return _HOME / f"{wanted}.toml"


def _about(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
