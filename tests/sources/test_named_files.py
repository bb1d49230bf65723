"""Does each message on a checkpoint's content name the file, and does a typed spec keep its own message?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.errors import InputError, SpecError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint, verify
from tests.each import each

WEIGHT = "text.rnn.bias_ih_l0"
DAMAGE: dict[str, Callable[[Checkpoint], dict[str, Any]]] = {
    "an empty encoder": lambda _: {"encoder": ""},
    "another encoder": lambda _: {"encoder": "nonsense"},
    "another data set": lambda _: {"data": "vsepp"},
    "data out of range": lambda _: {"data": "scenes:size=1000000000"},
    "a weight of another shape": lambda whole: {"weights": {**whole.weights, WEIGHT: torch.zeros(3)}},
    "a missing weight": lambda whole: {"weights": {k: v for k, v in whole.weights.items() if k != WEIGHT}},
    "words without <unk>": lambda whole: {"vocabulary": [word for word in whole.vocabulary if word != "<unk>"]},
    "a tokeniser that is none": lambda _: {"tokeniser": "x"},
}


@each("read", [load, verify], "damage", DAMAGE)
def test_a_message_on_a_part_names_the_file(damage: str, read: Any, tiny_checkpoint: Path, tmp_path: Path) -> None:
    whole, path = Checkpoint.load(tiny_checkpoint), tmp_path / "a.pt"
    assert WEIGHT in whole.weights
    replace(whole, **DAMAGE[damage](whole)).save(path)
    with pytest.raises(InputError, match=re.escape(str(path))):
        read(path)


def test_what_the_user_typed_stays_an_error_of_usage(tiny_checkpoint: Path) -> None:
    with pytest.raises(SpecError, match=r"^data set must be one of"):
        load(tiny_checkpoint, data="nonsense")
