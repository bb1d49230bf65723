"""Does lossscope compare a checkpoint's stated sizes with its weights before it builds a model of them?"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import EncoderSpec, encoder_spec
from lossscope.errors import InputError
from lossscope.sources.checkpoints.sizes import require_possible_sizes
from tests.each import each

SHAPE, WORDS = (3, 16, 16), 9
SPEC = "vsepp:dim=8,words=4,width=4"


def weights_of(spec: str) -> dict[str, Tensor]:
    return dict(encoder_spec(spec).build(SHAPE, WORDS).state_dict())


def test_sizes_that_are_those_of_the_weights_pass_and_no_random_number_is_drawn() -> None:
    weights, before = weights_of(SPEC), torch.get_rng_state()
    require_possible_sizes(encoder_spec(SPEC), SHAPE, WORDS, {}, weights)
    assert torch.equal(torch.get_rng_state(), before)


@each("sizes", ["dim=1000000000", "words=1000000000", "width=100000", "dim=9000000000000000000", "dim=16"])
def test_sizes_that_the_weights_do_not_have_are_refused_before_anything_is_allocated(sizes: str) -> None:
    spec = encoder_spec(_changed(sizes))
    begin = time.process_time()
    with pytest.raises(InputError, match=r"sizes of the encoder|weights must be those of|must be \("):
        require_possible_sizes(spec, SHAPE, WORDS, {}, weights_of(SPEC))
    assert time.process_time() - begin < 5


def _changed(sizes: str) -> str:
    key, value = sizes.split("=")
    values = {"dim": "8", "words": "4", "width": "4", key: value}
    return "vsepp:" + ",".join(f"{name}={text}" for name, text in values.items())


def test_a_vocabulary_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="must be"):
        require_possible_sizes(encoder_spec(SPEC), SHAPE, WORDS + 1, {}, weights_of(SPEC))


def test_layers_without_end_are_refused() -> None:
    class Deep(EncoderSpec):
        def rebuild(self, *_: object) -> torch.nn.Module:  # type: ignore[override]
            return torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(10**9)))

    Deep.__module__ = "lossscope.encoders.deep"
    with pytest.raises(InputError, match="its spec states over"):
        require_possible_sizes(Deep(), SHAPE, WORDS, {}, {"a": torch.zeros(1)})


def test_the_check_imports_no_compiler_of_torch() -> None:
    code = f"""
import sys
from lossscope.encoders.base import encoder_spec
from lossscope.sources.checkpoints.sizes import require_possible_sizes
spec = encoder_spec({SPEC!r})
weights = spec.build({SHAPE}, {WORDS}).state_dict()
require_possible_sizes(spec, {SHAPE}, {WORDS}, {{}}, weights)
print("sympy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
