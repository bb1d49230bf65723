"""MMT: the original's names, a slow oracle, missing experts, reading of captions, its published files."""

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
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.mmt import MMT
from lossscope.encoders.types import ReleasedFile
from lossscope.errors import InputError
from lossscope.text.subwords import Subwords
from tests.each import each
from tests.encoders.released.releases import release_of

Oracles = Callable[[str], ModuleType]
WIDTHS = {"face": 5, "ocr": 3, "rgb": 4}
LONGEST = {"face": (0, 2, 5, 0), "ocr": (3, 1, 0, 0), "rgb": (5, 4, 1, 0)}  # frames of four videos
SMALL = MMT(dim=8, layers=2, heads=2, ffn=12, positions=6, bert="1x64", window=2.0)
IDS = torch.tensor([[2, 5, 6, 8, 3, 0], [2, 7, 3, 0, 0, 0], [2, 4, 5, 9, 7, 3]])
LENGTHS = torch.tensor([5, 3, 6])


def items(frames: int = 5, behind: float = 0.0) -> dict[str, Tensor]:
    """Return four videos, one without face, one without ocr, one without frames; `behind` fills rows behind frames."""
    generator = torch.Generator().manual_seed(1)
    videos: dict[str, Tensor] = {}
    for name, width in WIDTHS.items():
        features = torch.full((4, frames, width), behind)
        times = torch.full((4, frames), behind or torch.nan)
        for row, length in enumerate(LONGEST[name]):
            features[row, :length] = torch.randn(length, width, generator=generator)
            seconds = torch.rand(length, generator=generator) * 12
            times[row, :length] = seconds if name == "rgb" else torch.nan
        videos |= {name: features, f"{name}.length": torch.tensor(LONGEST[name]), f"{name}.time": times}
    return videos


def model(spec: MMT = SMALL) -> Encoder:
    """Return a model in eval mode whose parameters all differ from their initial values."""
    torch.manual_seed(0)
    encoder = spec.build(item_shape_of(WIDTHS, 5), 10)
    for name, tensor in encoder.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2)
        elif tensor.is_floating_point():
            tensor.add_(0.3 * torch.randn_like(tensor))
    return encoder.eval()


def scores(encoder: Encoder, videos: Mapping[str, Tensor], ids: Tensor = IDS, lengths: Tensor = LENGTHS) -> Tensor:
    with torch.no_grad():
        S = encoder.score(encoder.encode_images(videos), encoder.encode_texts(ids, lengths))
    assert isinstance(S, Tensor)
    return S


@each("keep", [True, False])
def test_scores_are_those_of_the_oracle(oracle: Oracles, keep: bool) -> None:
    encoder, slow, videos = model(replace(SMALL, keep_missing=keep)), oracle("mmt"), items()
    state = {name: tensor.double().numpy() for name, tensor in encoder.state_dict().items()}
    S = np.zeros((4, 3))
    with torch.no_grad():
        present = torch.arange(6) < LENGTHS[:, None]
        bert: Any = encoder.get_submodule("txt_bert")
        first = bert(input_ids=IDS, attention_mask=present.long()).last_hidden_state[:, 0].double().numpy()
    for i in range(4):
        experts = {
            name: tuple(videos[key][i, : LONGEST[name][i]].double().numpy() for key in (name, f"{name}.time"))
            for name in WIDTHS
        }
        video_vectors = slow.video(state, list(WIDTHS), experts, heads=2, window=2.0)
        for j in range(3):
            views, weights = slow.text(state, list(WIDTHS), first[j])
            present_experts = None if keep else {name: LONGEST[name][i] > 0 for name in WIDTHS}
            S[i, j] = slow.similarity(views, weights, video_vectors, present_experts)
    assert np.allclose(scores(encoder, videos).numpy(), S, atol=1e-5)
    assert S[:3].std() > 0.02, "the scores must differ for the test to say something"


def test_s_is_the_product_of_concatenated_vectors_whose_text_side_has_the_norm_of_the_weights() -> None:
    encoder = model()
    with torch.no_grad():
        v, t = encoder.encode_images(items()).vectors, encoder.encode_texts(IDS, LENGTHS).vectors
    assert encoder.is_dot_product and v.shape == (4, 24) and t.shape == (3, 24)
    assert torch.equal(scores(encoder, items()), v @ t.T)
    assert torch.allclose(v.view(4, 3, 8).norm(dim=2), torch.ones(4, 3))
    assert torch.allclose(t.view(3, 3, 8).norm(dim=2).sum(1), torch.ones(3)), "the weights sum to 1"


def test_without_missing_experts_the_present_ones_share_the_weights() -> None:
    encoder = model(replace(SMALL, keep_missing=False))
    assert not encoder.is_dot_product
    with torch.no_grad():
        images, texts = encoder.encode_images(items()), encoder.encode_texts(IDS, LENGTHS)
    assert images.extra["present"].tolist() == [[0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]]
    S = scores(encoder, items())
    assert torch.equal(S[3], torch.zeros(3)), "no expert at all"
    whole = scores(model(), items())
    assert torch.allclose(S[1], whole[1], atol=1e-6) and not torch.allclose(S[0], whole[0], atol=1e-3)
    assert texts.extra["weights"].shape == (3, 3)


def test_a_maximum_over_all_frames_is_taken_where_the_items_have_it() -> None:
    encoder, videos = model(), items()
    maxima = {f"{name}.max": videos[name].masked_fill(videos[name] == 0, -9).amax(1).clamp(min=-8) for name in WIDTHS}
    for name in WIDTHS:  # as the encoder computes it itself
        maxima[f"{name}.max"][torch.tensor(LONGEST[name]) == 0] = 0
    assert torch.allclose(scores(encoder, {**videos, **maxima}), scores(encoder, videos), atol=1e-6)
    higher = {name: tensor + 1 for name, tensor in maxima.items()}
    assert not torch.allclose(scores(encoder, {**videos, **higher}), scores(encoder, videos), atol=1e-3)


def test_a_file_without_a_configuration_or_batch_counters_is_opened_with_the_published_settings() -> None:
    state = model(replace(SMALL, positions=32, heads=4, window=1.0)).state_dict()
    tower = {name: tensor for name, tensor in state.items() if "num_batches" not in name}
    opened = MMT.from_released(ReleasedFile(Path("trained_model.pth"), (tower,)))
    assert opened is not None and opened.encoder == replace(SMALL, positions=32, heads=4, window=1.0, lower=True)


def test_position_embeddings_that_a_file_lacks_are_zeros() -> None:
    name = "vid_bert.embeddings.position_embeddings.weight"
    file = release_of("mmt").file()
    opened = MMT.from_released(replace(file, towers=({**file.towers[0], name: file.towers[0][name][:4]},)))
    assert opened is not None and opened.notices == ("position embeddings: 4 in the file, 2 of zeros behind them",)
    assert torch.equal(opened.weights[name][:4], file.towers[0][name][:4])
    assert torch.equal(opened.weights[name][4:], torch.zeros(2, 8))


def test_captions_are_read_as_sentences_of_at_most_n_parts() -> None:
    captions = ["a man talks", "the dog runs!"] * 4
    spec = MMT(bert="small", pieces=60, length=6)
    words = spec.build_tokeniser(captions, 1)
    assert isinstance(words, Subwords) and words.max_length == 6
    stop, end = words.id_of("."), words.id_of("[SEP]")
    assert stop is not None, "learnt from sentences, so that a full stop is known"
    assert words.encode(" a man ")[-2:] == [stop, end] and words.encode("a man.") == words.encode("a man")
    assert stop not in words.encode("dog!")
    assert len(words.encode("a man talks the dog runs a man talks")) == 6
    plain = replace(spec, sentence=False).build_tokeniser(captions, 1)
    assert isinstance(plain, Subwords) and plain.id_of(".") is None


def test_a_size_needs_the_folder_of_its_tokeniser() -> None:
    with pytest.raises(InputError, match="bert=base must come with its tokeniser"):
        MMT().build_tokeniser(["a man"], 1)


def test_experts_unknown_to_the_original_have_further_types() -> None:
    from lossscope.encoders.released.mmt import expert_types

    assert expert_types(["audio", "cats", "rgb", "wind"], 19) == [4, 10, 5, 11]
    with pytest.raises(InputError, match="types must be more than 11"):
        expert_types(["cats", "wind"], 11)
    encoder = SMALL.build(item_shape_of({"i3d.i3d.0": 3, "face": 2}, 4), 10)
    assert "video_dim_reduce.i3d_i3d_0.fc.weight" in encoder.state_dict()


def test_experts_whose_keys_would_be_equal_are_refused() -> None:
    for both in (("a.b", "a_b"), ("keys", "face")):
        with pytest.raises(InputError, match="experts must have names"):
            SMALL.build(item_shape_of(dict.fromkeys(both, 3), 4), 10)


def test_videos_without_an_expert_it_was_built_for_are_refused() -> None:
    videos = {name: tensor for name, tensor in items().items() if not name.startswith("ocr")}
    with pytest.raises(InputError, match="items must hold ocr"):
        model().encode_images(videos)
