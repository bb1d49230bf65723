"""The module chain of a sentence-transformers folder, and what in it is not done here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import expect, read_json, read_json_value, shorten

_SETTINGS = "config_sentence_transformers.json"
_OWN = "sentence_transformers."


def read_modules(folder: Path) -> list[dict[str, str]]:
    """Return `type` and `path` of each module of a folder, the path relative to the folder.

    Raises InputError for modules that are not the library's own or lie outside the folder, and for none.
    """
    file = folder / "modules.json"
    modules = expect(read_json_value(file), list, f"{file}, the modules,")
    if not modules:
        raise InputError(f"{file} must name at least one module; it names none")
    return [_check_module(expect(module, dict, f"each module of {file}"), file) for module in modules]


def _check_module(module: Mapping[str, Any], file: Path) -> dict[str, str]:
    kind, path = module.get("type"), module.get("path", "")
    if not isinstance(kind, str) or not kind.startswith(_OWN):
        raise InputError(f"modules of {file} must be sentence_transformers' own; got {shorten(kind)}, not run")
    if not isinstance(path, str) or Path(path).anchor or ".." in Path(path).parts:
        raise InputError(f"modules of {file} must lie in its folder; got the path {shorten(path)}")
    return {"type": kind, "path": path}


def require_cosine(folder: Path) -> Mapping[str, Any]:
    """Return the settings of a folder. Raises InputError when its similarity is not the cosine."""
    settings = read_json(folder / _SETTINGS) if (folder / _SETTINGS).is_file() else {}
    similarity = settings.get("similarity_fn_name")
    if similarity not in (None, "cosine"):
        raise InputError(f"similarity_fn_name of {folder / _SETTINGS} must be cosine; got {shorten(similarity)}")
    return settings


def reads_sides_alike(modules: Sequence[Mapping[str, str]], settings: Mapping[str, Any]) -> bool:
    """Whether a text has the same vector as a query, as a document and as neither: no prompts, no module that asks."""
    kinds = {module["type"].rpartition(".")[2] for module in modules}
    prompts = settings.get("prompts") or {}
    return not (kinds & {"Router", "Asym"} or (isinstance(prompts, Mapping) and any(prompts.values())))


def require_plain_clip(folder: Path, modules: Sequence[Mapping[str, str]]) -> None:
    """Raise InputError unless a folder with an image tower is that model alone, or with vectors of length 1."""
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds[0] not in ("CLIPModel", "Transformer") or any(kind != "Normalize" for kind in kinds[1:]):
        raise InputError(f"modules of {folder} must be a CLIP, then Normalize or none; got {', '.join(kinds)}")
    settings = require_cosine(folder)
    for name in ("truncate_dim", "default_prompt_name"):
        if settings.get(name) is not None:
            raise InputError(f"{name} of {folder / _SETTINGS} must be null for a CLIP; got {shorten(settings[name])}")
