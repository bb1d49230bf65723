"""A file of X-VLM, on pictures and captions in its layout, has the vectors, logits and losses of the authors' code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Mask
from lossscope.datasets.xvlm import XVLM
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.image_text_matching import contrastive_loss
from lossscope.encoders.types import EncodedBatch
from lossscope.errors import InputError
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.vocabulary import pad
from tests.authors.answers import Answers
from tests.authors.rule import network_by_rule
from tests.authors.xvlm_files import CONFIG, SIDE, write_data, write_words

pytest.importorskip("tokenizers")
ANSWERS = Answers("xvlm")
MADE = ANSWERS.content


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write what X-VLM's fine-tuning saves, with the tokeniser and the data beside it."""
    write_words(tmp_path / "vocab.txt")
    write_data(tmp_path / "data")
    masks = {name: torch.zeros(shape) for name, shape in MADE["derived"].items()}
    weights = {**network_by_rule(MADE["shapes"]), **masks, "temp": torch.tensor(MADE["temp"])}
    torch.save({"model": weights, "config": dict(CONFIG)}, tmp_path / "checkpoint_best.pth")
    return tmp_path / "checkpoint_best.pth"


def open_file(file: Path, *options: str) -> SplitEmbeddings:
    data = f"xvlm:root={file.parent / 'data'},name=small"
    return load(file, data=data, split="test", encoder=options, cache=False)


def test_vectors_are_those_of_the_authors(file: Path) -> None:
    embedded = open_file(file)
    assert embedded.images is not None
    assert embedded.captions is not None
    assert np.abs(embedded.images.numpy() - ANSWERS.array("v")).max() <= 1e-5
    assert np.abs(embedded.captions.numpy() - ANSWERS.array("t")).max() <= 1e-5
    squeezed = f"pictures are read with size={SIDE}, as the model's authors read them"
    assert squeezed in embedded.notices


def test_logits_of_the_best_pairs_and_recalls_are_those_of_the_authors(file: Path) -> None:
    embedded = open_file(file, "score=itm")
    both = embedded.similarities(np.arange(4), np.arange(8))
    for ours, theirs in ((both.i2t.numpy(), ANSWERS.array("i2t")), (both.t2i.numpy(), ANSWERS.array("t2i"))):
        assert np.array_equal(np.isnan(ours), theirs == -100)
        assert np.nanmax(np.abs(ours - theirs)[theirs > -100]) <= 1e-5
    values = evaluate([embedded]).set_index(["direction", "statistic"])["mean"]
    for ours, theirs in (("i2t", "txt_r1"), ("t2i", "img_r1"), ("t2i", "img_r5"), ("t2i", "img_r10")):
        assert values[ours, f"R@{theirs.rpartition('r')[2]}"] == MADE["recalls"][theirs]


def batch_of(file: Path) -> tuple[Encoder, EncodedBatch, EncodedBatch, Tensor]:
    """Return the model, four pictures with a caption of each, encoded, and which of them are the same picture."""
    checkpoint, _ = open_released(file, choices=("score=itm", "itc_loss=false"))
    model = checkpoint.with_encoder(("score=itm", "itc_loss=false")).model()
    split = XVLM(file.parent / "data", "small", size=SIDE).split("test")
    pixels = torch.from_numpy(np.asarray(split.images.take(np.arange(4))))
    ids, lengths = map(torch.from_numpy, pad([checkpoint.words().encode(split.captions[2 * row]) for row in range(4)]))
    same = torch.tensor(MADE["batch_ids"])
    with torch.no_grad():
        return model, model.encode_images(pixels), model.encode_texts(ids, lengths), same[:, None] == same[None, :]


def test_the_matching_loss_is_that_of_the_authors(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "multinomial", lambda weights, _: weights.argmax(1, keepdim=True))
    model, images, texts, same = batch_of(file)
    diagonal = torch.eye(4, dtype=torch.bool)
    nothing = torch.zeros(1)
    loss = model.extra_loss(images, texts, nothing, Mask(diagonal, diagonal | ~same), nothing, nothing)
    assert loss is not None
    assert float(loss.detach()) == pytest.approx(MADE["loss_itm"], abs=1e-6)


def test_the_contrastive_loss_is_that_of_the_authors(file: Path) -> None:
    _, images, texts, same = batch_of(file)
    logits = images.vectors @ texts.vectors.T / MADE["temp"]
    assert float(contrastive_loss(logits, Mask(same, torch.ones_like(same)))) == pytest.approx(
        MADE["loss_itc"], abs=2e-6
    )


def test_another_side_than_that_of_the_windows_is_refused(file: Path) -> None:
    content = torch.load(file)
    torch.save({**content, "config": {**content["config"], "image_res": 384}}, file)
    with pytest.raises(InputError, match="option image_res of the file must be 64, as its windows are; got 384"):
        open_file(file)
