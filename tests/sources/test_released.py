"""What does lossscope say of a released model's words and pictures, and on what do its cached vectors depend?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lossscope.core.request import Request
from lossscope.datasets.base import Split
from lossscope.registry import build
from lossscope.sources._checkpoint import _notices, _words_key
from lossscope.sources._released import notices_of_released
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.text import word_tokenisers
from lossscope.text.vocabulary import SPECIAL
from tests.each import each

CONVERTED = {"converted_from": "model_best.pth.tar", "ignored": []}


def checkpoint(**changed: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "encoder": "vsepp", "objective": "", "data": "", "vocabulary": [*SPECIAL, "a", "shape"], "item_shape": [4],
        "data_fingerprint": "", "epoch": 0, "metrics": {}, "weights": {}, "training": CONVERTED,
        "word_tokeniser": "treebank",
    }  # fmt: skip
    return Checkpoint(**{**fields, **changed})


@pytest.fixture(scope="module")
def split() -> Split:
    part: Split = build("datasets", "scenes:train=4,val=2,test=2,size=16").split("val")
    return replace(part, captions=["a shape"] * len(part.captions))


def test_the_share_of_unknown_tokens_is_said_of_released_models_only(split: Split) -> None:
    (notice,) = _notices(checkpoint(), split, Request())
    assert notice.startswith("0.00% of ")
    assert _notices(checkpoint(training={}), split, Request()) == ()


@each("changed", [{"word_tokeniser": "words"}, {"item_shape": [3, 8, 8], "vocabulary": [], "tokeniser": "{}"}])
def test_a_file_converted_before_is_to_be_converted_again(changed: dict[str, Any], split: Split) -> None:
    (notice,) = notices_of_released(checkpoint(**changed), split)
    assert notice.startswith("WARNING: it was converted by an earlier lossscope")


def test_cached_vectors_depend_on_words_and_on_punkt(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [_words_key(checkpoint()), _words_key(checkpoint(vocabulary=[*SPECIAL, "shape", "a"]))]
    monkeypatch.setattr("lossscope.sources._released.has_punkt", lambda: not word_tokenisers.has_punkt())
    keys.append(_words_key(checkpoint()))
    assert len(set(keys)) == 3
    assert _words_key(checkpoint(training={}, word_tokeniser="words")) == ()


def test_of_many_captions_some_are_counted(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.sources._released._COUNTED", 4)
    (notice,) = notices_of_released(checkpoint(), split)
    step = -(-len(split.captions) // 4)
    assert step > 1
    assert notice.startswith(f"0.00% of {2 * len(split.captions[::step])} tokens")
