"""Encoder: is a class of an older version refused, instead of never being called?"""

from __future__ import annotations

import pytest
from torch import nn

from lossscope.encoders.base import FORMER_NAMES, Encoder
from lossscope.errors import SpecError
from tests.each import each


@each("former", sorted(FORMER_NAMES))
def test_a_class_with_a_former_name_is_refused_with_the_current_one(former: str) -> None:
    message = f"Mine must define {FORMER_NAMES[former]}; it defines {former}, its former name"
    with pytest.raises(SpecError, match=message):
        type("Mine", (Encoder,), {former: None})


@each("former", sorted(FORMER_NAMES))
def test_a_former_name_of_a_mixin_or_of_the_object_itself_is_refused_too(former: str) -> None:
    mixin = type("Mixin", (), {former: None})
    with pytest.raises(SpecError, match=f"must define {FORMER_NAMES[former]}"):
        type("Mine", (mixin, Encoder), {})
    mine = type("Mine", (Encoder,), {})()
    with pytest.raises(SpecError, match=f"must define {FORMER_NAMES[former]}"):
        setattr(mine, former, True)
    setattr(mine, former, nn.Identity())  # a layer may have any name


def test_the_current_names_are_attributes_of_an_encoder() -> None:
    assert [name for name in FORMER_NAMES.values() if not hasattr(Encoder, name)] == []
