"""Does --init say what to do with a file of another program, and has a released model what its training needs?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lossscope.encoders.base import encoder_spec
from lossscope.errors import InputError
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.text.subwords import Subwords
from lossscope.training.reading import read_start
from tests.each import each

STATE = {"epoch": 1, "model": [{"fc.weight": torch.zeros(2, 2)}]}


@each("protocol", [2, 4])
def test_another_program_s_file_is_told_how_to_become_a_checkpoint(protocol: int, tmp_path: Path) -> None:
    file = tmp_path / "model_best.pth.tar"
    torch.save(STATE, file, pickle_protocol=protocol)
    with pytest.raises(InputError, match=rf"--init must be .* lossscope convert {file} start\.pt$"):
        read_start(str(file))
    with pytest.raises(InputError, match=rf"lossscope convert {tmp_path} start\.pt$"):
        read_start(str(tmp_path))


def test_a_damaged_checkpoint_of_ours_is_not_called_foreign(tiny_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "damaged.pt"
    content = (tiny_run / "best.pt").read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cut off or damaged") as caught:
        read_start(str(file))
    assert "convert" not in str(caught.value)


@each("released", [True, False])
def test_a_converted_bert_drops_words_in_training(released: bool, tmp_path: Path) -> None:
    """`train --init` of a converted VSE-infinity BERT with drop=0.2 said that its tokeniser was missing."""
    words = Subwords.train(["a dog runs", "the cat sleeps"] * 9, 60)
    spec = encoder_spec("vse_infty:text=bert,bert=1x64,dim=8,drop=0.9")
    start = Checkpoint(
        encoder=str(spec), objective="", data="", vocabulary=[], item_shape=[5, 7], data_fingerprint="", epoch=0,
        step=0, metrics={}, weights={}, training={"converted_from": "x"} if released else {}, optimiser=None, rng=None,
        versions={}, tokeniser=words.to_json(),
    )  # fmt: skip
    model = spec.rebuild((5, 7), len(words), start.stored_files).train()
    ids = torch.tensor([words.encode("a dog runs")])
    if released:
        assert model.encode_texts(ids, torch.tensor([ids.shape[1]])).vectors.isfinite().all()
        return
    with pytest.raises(InputError, match="must have a tokeniser"):
        model.encode_texts(ids, torch.tensor([ids.shape[1]]))
