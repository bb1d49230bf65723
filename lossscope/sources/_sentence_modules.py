"""The module chain of a sentence-transformers folder, and what in it is not done here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import read_json, shorten

_SETTINGS = "config_sentence_transformers.json"
_OWN = "sentence_transformers."


def read_modules(folder: Path) -> list[dict[str, Any]]:
    """Return the modules of a folder. Raises InputError for modules that are not the library's own, and for none."""
    path = folder / "modules.json"
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [module["type"] for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} must be a list of modules with their types; {error!r}") from error
    for kind in kinds:
        if not isinstance(kind, str) or not kind.startswith(_OWN):
            raise InputError(f"modules of {path} must be sentence_transformers' own; got {kind!r}, not run")
    if not kinds:
        raise InputError(f"{path} must name at least one module; it names none")
    return modules  # type: ignore[no-any-return]


def require_cosine(folder: Path) -> Mapping[str, Any]:
    """Return the settings of a folder. Raises InputError when its similarity is not the cosine."""
    settings = read_json(folder / _SETTINGS) if (folder / _SETTINGS).is_file() else {}
    similarity = settings.get("similarity_fn_name")
    if similarity not in (None, "cosine"):
        raise InputError(f"similarity_fn_name of {folder / _SETTINGS} must be cosine; got {shorten(similarity)}")
    return settings


def require_plain_clip(folder: Path, modules: list[dict[str, Any]]) -> None:
    """Raise InputError unless a folder with an image tower is that model alone, or with vectors of length 1."""
    kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    if kinds[0] not in ("CLIPModel", "Transformer") or any(kind != "Normalize" for kind in kinds[1:]):
        raise InputError(f"modules of {folder} must be a CLIP, then Normalize or none; got {', '.join(kinds)}")
    settings = require_cosine(folder)
    for name in ("truncate_dim", "default_prompt_name"):
        if settings.get(name) is not None:
            raise InputError(f"{name} of {folder / _SETTINGS} must be null for a CLIP; got {shorten(settings[name])}")
