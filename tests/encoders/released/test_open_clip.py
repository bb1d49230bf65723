"""Are numbers in open_clip_config.json that no model has refused by name?"""

from __future__ import annotations

from typing import Any

import pytest

from lossscope.encoders.released.clip_config import select_configuration
from lossscope.encoders.released.open_clip import build_configuration
from lossscope.errors import InputError
from tests.each import each


def configuration(tower: str, **stated: Any) -> dict[str, Any]:
    model: dict[str, Any] = {"vision_cfg": {}, "text_cfg": {}, tower: stated}
    return select_configuration(build_configuration({"model_cfg": model}))


@each("tower", ["vision_cfg", "text_cfg"])
def test_the_width_inside_a_block_is_a_multiple_of_the_towers(tower: str) -> None:
    part = tower.replace("cfg", "config")
    assert configuration(tower, width=256, mlp_ratio=4.9231)[part]["intermediate_size"] == 1260


@each("tower", ["vision_cfg", "text_cfg"], "ratio", [1e308, 65, 0, -1, 1e-9, 10**400, float("nan"), "4", [4]])
def test_another_ratio_is_refused(tower: str, ratio: Any) -> None:
    with pytest.raises(InputError, match=r"mlp_ratio|intermediate_size"):
        configuration(tower, mlp_ratio=ratio)


@each(
    "tower", ["vision_cfg", "text_cfg"], "name", ["width", "layers"], "value", [0, -1, 10**400, 1.5, "12", [12], None]
)
def test_another_size_is_refused(tower: str, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        configuration(tower, **{name: value})
