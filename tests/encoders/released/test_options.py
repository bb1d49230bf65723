"""Must options of released files have their types, however long their numbers are?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from lossscope.encoders.released.bert_folder import infer_bert
from lossscope.encoders.released.expert_config import read_margin
from lossscope.encoders.released.options import (
    count_layers,
    read_count,
    read_flag,
    read_number,
    read_text,
    require_agreement,
)
from lossscope.errors import InputError
from tests.each import each

LONG = 10**5000  # more digits than Python writes
Read = Callable[[Mapping[str, Any], str, Any], object]


@each("read, value", [(read_flag, True), (read_text, "a"), (read_number, 3), (read_number, 0.5), (read_count, 3)])
def test_options_are_read_or_have_a_default(read: Read, value: Any) -> None:
    assert read({"a": value}, "a", None) == value
    assert read({}, "a", value) == value


@each("read, value", [
    *((read_flag, value) for value in (1, "true", None, LONG)),
    *((read_text, value) for value in (1, None, LONG, ["a"])),
    *((read_number, value) for value in ("1", True, float("inf"), float("nan"), LONG, -LONG, [1])),
    *((read_count, value) for value in ("1", True, 1.0, 0, -1, -LONG, [1])),
])  # fmt: skip
def test_values_of_other_types_are_refused(read: Read, value: Any) -> None:
    with pytest.raises(InputError, match=r"option a of the file must be .*; got"):
        read({"a": value}, "a", None)


def test_an_option_that_is_not_that_of_the_tensors_is_refused() -> None:
    require_agreement({"a": 3}, {"a": 3, "b": 4})
    for value in (4, True, 3.0, LONG):
        with pytest.raises(InputError, match="option a of the file must be 3, as its tensors are; got"):
            require_agreement({"a": value}, {"a": 3})


@each("value", [-1, "0.2", LONG, float("nan")])
def test_a_margin_is_a_finite_number_from_0_on(value: Any) -> None:
    assert read_margin({"loss": {"args": {"margin": 1}}}, 0.05) == 1
    with pytest.raises(InputError, match="option margin of the file must be a finite number"):
        read_margin({"loss": {"args": {"margin": value}}}, 0.05)


def test_layers_are_those_of_the_tensors() -> None:
    weights = {f"rnn.weight_ih_l{k}": torch.zeros(1) for k in (0, 1, 3)}
    assert (count_layers(weights, "rnn"), count_layers({}, "rnn")) == (2, 1)


def test_the_size_of_a_bert_is_that_of_its_tensors() -> None:
    def bert(layers: int, width: int) -> dict[str, torch.Tensor]:
        blocks = {f"t.encoder.layer.{k}.{name}": torch.zeros(1) for k in range(layers) for name in "ab"}
        return {"t.embeddings.word_embeddings.weight": torch.zeros(2, width), **blocks}

    assert (infer_bert(bert(12, 768), "t"), infer_bert(bert(2, 128), "t")) == ("base", "2x128")
    for layers, width in ((0, 128), (2, 100)):
        with pytest.raises(InputError, match=f"the BERT must have layers, .* multiple of 64; got {width}"):
            infer_bert(bert(layers, width), "t")
