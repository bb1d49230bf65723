"""What the files beside tokenizer.json say of a tokeniser: its length, clean-up of captions, and padding token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import expect, read_json_value

_SETTINGS = "tokenizer_config.json"
_SIGLIP = ("SiglipTokenizer", "SiglipTokenizerFast")
_USUAL_PADDING = {**dict.fromkeys(_SIGLIP, "</s>"), **dict.fromkeys(("GemmaTokenizer", "GemmaTokenizerFast"), "<pad>")}

_MAX_MODEL_LENGTH = 1_000_000  # configurations without a limit have a model_max_length far above


def read_settings(folder: Path, name: str = _SETTINGS) -> dict[str, Any]:
    """Return a JSON file of a folder, {} when it has none. Raises InputError for a damaged one."""
    path = folder / name
    if not path.exists():
        return {}
    settings = read_json_value(path)
    return settings if isinstance(settings, dict) else {}


def find_cleaning(settings: dict[str, Any], folder: Path) -> str:
    """Return how the folder's tokeniser cleans captions outside of tokenizer.json: SigLIP's does."""
    if settings.get("tokenizer_class") not in _SIGLIP:
        return ""
    if settings.get("do_lower_case", True) is not True:
        raise InputError(f"do_lower_case of {folder / _SETTINGS} must be true; it is not")
    return "siglip"


def find_length(settings: dict[str, Any], folder: Path) -> int | None:
    """Return the greatest number of ids of a caption; None where it is not stated, or stands for any number.

    Raises InputError when it is no number.
    """
    length = settings.get("model_max_length")
    if length is None or (isinstance(length, float) and length >= _MAX_MODEL_LENGTH):
        return None
    whole = expect(length, int, f"'model_max_length' of {folder / _SETTINGS}")
    return whole if 2 < whole < _MAX_MODEL_LENGTH else None


def find_case(settings: dict[str, Any], folder: Path) -> bool:
    """Return whether captions are lower-cased: do_lower_case, True where it is not stated.

    Raises InputError when it is neither true nor false.
    """
    return expect(settings.get("do_lower_case", True), bool, f"'do_lower_case' of {folder / _SETTINGS}")


def find_padding(folder: Path) -> int | None:
    """Return the id with which a folder's tokeniser fills captions up, as transformers finds it; None without one."""
    content = read_settings(folder, "tokenizer.json")
    token = _find_padding_token(folder, content)
    return None if token is None else _ids_of(content).get(token)


def _find_padding_token(folder: Path, content: dict[str, Any]) -> str | None:
    """Return the first padding token that the files of a folder name."""
    settings = read_settings(folder)
    padding = content.get("padding")
    stated = [
        settings.get("pad_token"),
        read_settings(folder, "special_tokens_map.json").get("pad_token"),
        padding.get("pad_token") if isinstance(padding, dict) else None,
        _USUAL_PADDING.get(str(settings.get("tokenizer_class"))),
    ]
    texts = (token.get("content") if isinstance(token, dict) else token for token in stated)
    return next((text for text in texts if isinstance(text, str)), None)


def _ids_of(content: dict[str, Any]) -> dict[str, int]:
    """Return token -> id of tokenizer.json, added tokens included; {} for a damaged one."""
    model, added = content.get("model"), content.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids: dict[str, int] = {}
    if isinstance(vocabulary, dict):
        ids = {token: number for token, number in vocabulary.items() if type(number) is int}
    elif isinstance(vocabulary, list):  # of unigrams: [token, log probability], in the order of the ids
        rows = ((number, row[0]) for number, row in enumerate(vocabulary) if isinstance(row, list) and row)
        ids = {token: number for number, token in rows if isinstance(token, str)}
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and type(token.get("id")) is int:
            ids[str(token.get("content"))] = token["id"]
    return ids
