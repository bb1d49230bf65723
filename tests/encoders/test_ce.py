"""CE: the original's names, a slow oracle, missing experts, padding as the original reads it, its published files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.ce import CE
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import ReleasedFile
from lossscope.errors import InputError
from tests.each import each

Oracles = Callable[[str], ModuleType]
WIDTHS = {"audio": 4, "face": 5, "i3d.i3d.0": 6, "ocr": 3}
LONGEST = {"audio": (3, 1, 0, 0), "face": (1, 0, 1, 0), "i3d.i3d.0": (1, 3, 1, 0), "ocr": (0, 5, 2, 0)}
SMALL = CE(dim=6, clusters="audio=2+ocr=3", text_clusters=4, word_dim=7, length=8, rows="audio=4+ocr=6")
WORDS = (5, 2, 7)


def items(frames: int = 5, behind: float = 0.0) -> dict[str, Tensor]:
    """Return four videos, the last without any expert; `behind` fills the rows behind the frames."""
    generator = torch.Generator().manual_seed(1)
    videos: dict[str, Tensor] = {}
    for name, width in WIDTHS.items():
        features = torch.full((4, frames, width), behind)
        for row, length in enumerate(LONGEST[name]):
            features[row, :length] = torch.randn(length, width, generator=generator)
        lengths = torch.tensor(LONGEST[name])
        videos |= {name: features, f"{name}.length": lengths, f"{name}.time": torch.full((4, frames), torch.nan)}
    return videos


def captions(more: int = 0, behind: float = 0.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    vectors = torch.full((3, max(WORDS) + more, 7), behind)
    for row, length in enumerate(WORDS):
        vectors[row, :length] = torch.randn(length, 7, generator=generator)
    return vectors, torch.tensor(WORDS)


def model(spec: CE = SMALL, size: int = 0) -> Encoder:
    """Return a model in eval mode whose parameters all differ from their initial values."""
    torch.manual_seed(0)
    encoder = spec.build(item_shape_of(WIDTHS, 5), size)
    for name, tensor in encoder.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2)
        elif tensor.is_floating_point():
            tensor.add_(0.3 * torch.randn_like(tensor))
    return encoder.eval()


def scores(
    encoder: Encoder, videos: Mapping[str, Tensor] | None = None, words: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    with torch.no_grad():
        S = encoder.score(
            encoder.encode_images(items() if videos is None else videos), encoder.encode_texts(*(words or captions()))
        )
    assert isinstance(S, Tensor)
    return S


@each("gating", ["sequential", "simultaneous"], "padded", [False, True])
def test_scores_are_those_of_the_oracle(oracle: Oracles, padded: bool, gating: Any) -> None:
    encoder, slow, videos = model(replace(SMALL, padded=padded, gating=gating)), oracle("ce"), items()
    state = {name: tensor.double().numpy() for name, tensor in encoder.state_dict().items()}
    rows = {"audio": 4, "ocr": 6}
    S = np.zeros((4, 3))
    for i in range(4):
        pooled, present = [], [LONGEST[name][i] > 0 for name in WIDTHS]
        for name in WIDTHS:
            x = videos[name][i, : LONGEST[name][i]].double().numpy()
            if name in rows:
                pooled.append(slow.vlad(state, f"pooling.{name}", slow.padded(x, rows[name]) if padded else x))
            else:
                pooled.append(x.mean(0) if len(x) else np.zeros(WIDTHS[name]))
        experts = slow.video(state, pooled, present, sequential=gating == "sequential")
        for j in range(3):
            words = captions()[0][j, : WORDS[j]].double().numpy()
            views, weights = slow.text(
                state, slow.vlad(state, "text_pooling", slow.padded(words, 8) if padded else words), 4
            )
            S[i, j] = slow.similarity(views, weights, experts, present)
    assert np.allclose(scores(encoder).numpy(), S, atol=1e-5)
    assert S[:3].std() > 0.02 and (S[3] == 0).all()


def test_the_order_of_gating_and_padding_matter() -> None:
    whole = scores(model())
    assert not torch.allclose(scores(model(replace(SMALL, gating="simultaneous"))), whole, atol=1e-3)
    assert not torch.allclose(scores(model(replace(SMALL, padded=True))), whole, atol=1e-3)


def test_rows_and_length_cut_off_what_is_behind() -> None:
    short = replace(SMALL, padded=True, rows="audio=4+ocr=2")
    cut = items()
    cut["ocr"] = cut["ocr"].clone()
    cut["ocr"][:, 2:] = 9.0
    assert torch.allclose(scores(model(short), cut), scores(model(short)), atol=1e-6)
    few = replace(SMALL, length=2)
    words, lengths = captions()
    assert torch.allclose(scores(model(few)), scores(model(few), words=(words[:, :2], lengths.clamp(max=2))), atol=1e-6)


def test_with_keep_missing_all_experts_count_once() -> None:
    encoder = model(replace(SMALL, keep_missing=True))
    assert encoder.is_dot_product and not encoder.is_cosine and (encoder.score_min, encoder.score_max) == (-4, 4)
    with torch.no_grad():
        v, t = encoder.encode_images(items()).vectors, encoder.encode_texts(*captions()).vectors
    assert torch.equal(scores(encoder), v @ t.T)
    assert torch.allclose(v.view(4, 4, 6).norm(dim=2), torch.ones(4, 4))
    assert torch.allclose(t.view(3, 4, 6).norm(dim=2), torch.ones(3, 4))


def test_a_video_with_one_expert_has_the_cosine_of_that_one() -> None:
    encoder, videos = model(), items()
    for name in ("audio", "face", "i3d.i3d.0"):
        videos[f"{name}.length"] = torch.zeros(4, dtype=torch.long)
    with torch.no_grad():
        images, texts = encoder.encode_images(videos), encoder.encode_texts(*captions())
    assert not encoder.is_dot_product and images.extra["present"].sum(1).tolist() == [0, 1, 1, 0]
    e, t = images.vectors.view(4, 4, 6)[1, 3], texts.vectors.view(3, 4, 6)[:, 3]
    assert torch.allclose(scores(encoder, videos)[1], torch.nn.functional.cosine_similarity(t, e[None]), atol=1e-5)


def test_a_training_step_sees_the_shared_batch_norms_once_for_each_pair() -> None:
    encoder = model().train()
    encoder.encode_images(items())
    state = encoder.state_dict()
    assert int(state["ce.g_reason_shared.0.num_batches_tracked"]) == int(model().state_dict()[
        "ce.g_reason_shared.0.num_batches_tracked"
    ]) + 16  # fmt: skip


def test_learnt_words_are_an_embedding_of_the_vocabulary() -> None:
    spec = replace(SMALL, words="embedding", word_init=0.5)
    torch.manual_seed(0)
    encoder = spec.build(item_shape_of(WIDTHS, 5), 10)
    weight = encoder.state_dict()["embed.weight"]
    assert weight.shape == (10, 7) and weight.abs().max() <= 0.5 < 1.2 * weight.abs().max()
    assert not spec.reads_word_vectors and SMALL.reads_word_vectors
    encoder, ids, lengths = (
        model(spec, 10),
        torch.tensor([[1, 5, 6, 2, 0, 0], [1, 7, 2, 0, 0, 0]]),
        torch.tensor([4, 3]),
    )
    alike = scores(encoder, words=(ids, lengths))
    assert torch.allclose(scores(encoder, words=(torch.where(ids == 0, 9, ids), lengths)), alike, atol=1e-6)


@each("spec, shape, fragment", [
    (SMALL, (3, 5), "captions must fit words=features, word_dim=7; the data set gives ids"),
    (SMALL, (3, 5, 9), "the data set gives vectors of width 9"),
    (replace(SMALL, words="embedding"), (3, 5, 7), "captions must fit words=embedding"),
])  # fmt: skip
def test_captions_of_another_kind_are_refused(spec: CE, shape: tuple[int, ...], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        model(spec, 10).encode_texts(
            torch.zeros(shape, dtype=torch.long if len(shape) == 2 else torch.float), torch.ones(3)
        )


def test_a_file_without_a_configuration_or_batch_counters_has_the_nine_experts() -> None:
    widths = {
        "audio": 4, "face": 2, "i3d.i3d.0": 3, "imagenet.resnext101_32x48d.0": 2, "imagenet.senet154.0": 2, "ocr": 3,
        "r2p1d.r2p1d-ig65m.0": 2, "scene.densenet161.0": 2, "speech": 3,
    }  # fmt: skip
    spec = replace(SMALL, clusters="audio=2+ocr=3+speech=2")
    tower = {k: v for k, v in spec.build(item_shape_of(widths, 5), 0).state_dict().items() if "num_batches" not in k}
    opened = CE.from_released(ReleasedFile(Path("trained_model.pth"), (tower,)))
    assert opened is not None and opened.item_shape == item_shape_of(widths, 49)
    assert opened.encoder == replace(spec, padded=True, rows="audio=29+ocr=49+speech=32", length=37)
