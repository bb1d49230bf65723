"""Is the token that fills captions up found where transformers finds it?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lossscope.errors import InputError
from lossscope.text.tokeniser_folder import find_case, find_length, find_padding
from tests.each import each

ADDED = {"added_tokens": [{"id": 7, "content": "<pad>"}]}
UNIGRAMS = {"model": {"vocab": [["<unk>", 0.0], ["</s>", 0.0], ["a", -1.0]]}}
PARTS = {"model": {"vocab": {"<unk>": 0, "<pad>": 4}}}


@each("content, settings, expected", [
    (PARTS, {"pad_token": "<pad>"}, 4),
    ({**PARTS, **ADDED}, {"pad_token": {"content": "<pad>"}}, 7),
    (UNIGRAMS, {"pad_token": "</s>"}, 1),
    (UNIGRAMS, {"tokenizer_class": "SiglipTokenizer"}, 1),
    ({**PARTS, "padding": {"pad_token": "<pad>", "pad_id": 4}}, {}, 4),
    ({**UNIGRAMS, **ADDED}, {"tokenizer_class": "GemmaTokenizerFast"}, 7),
    (UNIGRAMS, {"pad_token": "<pad>"}, None),
    (UNIGRAMS, {}, None),
    ({"model": 3, "added_tokens": "x"}, {"pad_token": "<pad>"}, None),
])  # fmt: skip
def test_the_padding_token_is_that_of_the_tokeniser(
    content: dict[str, Any], settings: dict[str, Any], expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    assert find_padding(tmp_path) == expected


def test_an_older_map_names_it_too(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(PARTS))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"pad_token": "<pad>"}))
    assert find_padding(tmp_path) == 4


def test_a_folder_without_a_tokeniser_has_none(tmp_path: Path) -> None:
    assert find_padding(tmp_path) is None


@each("find, key, value", [
    (find_case, "do_lower_case", "true"),
    (find_case, "do_lower_case", 1),
    (find_length, "model_max_length", "64"),
    (find_length, "model_max_length", True),
])  # fmt: skip
def test_settings_of_other_types_are_refused(
    find: Callable[[dict[str, Any], Path], object], key: str, value: object, tmp_path: Path
) -> None:
    """The reader took the text "true" for false, which gave other ids."""
    with pytest.raises(InputError, match=rf"'{key}' of .*tokenizer_config\.json must be"):
        find({key: value}, tmp_path)


@each("length", [None, 10**30, 1e30, 0])
def test_a_length_that_stands_for_any_number_is_none(length: float | None, tmp_path: Path) -> None:
    assert find_length({"model_max_length": length}, tmp_path) is None
    assert find_length({"model_max_length": 64}, tmp_path) == 64
