"""SGRAF: the folded graph equals the full one, and SAF's batch norm sees one caption after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.sgraf import SGRAF
from lossscope.encoders.types import EncodedBatch
from lossscope.registry import build
from tests.each import each
from tests.encoders.released.releases import release_of

Oracles = Callable[[str], ModuleType]
CAPTIONS = [[1, 5, 6, 2], [1], [1, 4, 5, 9, 7, 2], [1, 2], [1, 7, 2], [1, 8, 9, 2]]
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])
both_modules = each("module", ["sgr", "saf"])


def pad(more: int = 0) -> Tensor:
    longest = max(map(len, CAPTIONS)) + more
    return torch.tensor([caption + [0] * (longest - len(caption)) for caption in CAPTIONS])


def model(spec: str = "", dropout: float = 0) -> Encoder:
    torch.manual_seed(0)
    options = f"dim=8,words=4,sim_dim=6,word_init=1,dropout={dropout}"
    encoder: Encoder = build("encoders", f"sgraf:{options}{spec}").build((5, 7), 10)
    with torch.no_grad():  # batch norms and biases that differ from those of a new model, scores that differ from 0.5
        for name, value in encoder.state_dict().items():
            if name.startswith("similarity.") and value.ndim == 1:
                value.copy_(torch.rand(value.shape) + 0.5 if "running_var" in name else 0.5 * torch.randn(value.shape))
    return encoder.eval()


def pictures(n: int = 4) -> Tensor:
    return torch.randn(n, 5, 7, generator=torch.Generator().manual_seed(1))


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    with torch.no_grad():
        return encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS)


def score(encoder: Encoder, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
    S = encoder.score(images, texts)
    assert isinstance(S, Tensor)
    return S


def similarity_state(encoder: Encoder) -> dict[str, Tensor]:
    state = {name: value.clone() for name, value in encoder.state_dict().items()}
    return {name.removeprefix("similarity."): v for name, v in state.items() if name.startswith("similarity.")}


def oracle_scores(oracle: Oracles, encoder: Encoder, state: Mapping[str, Tensor], training: bool = False) -> Tensor:
    """Return the oracle's S of the pictures and captions, from the features on."""
    images = oracle("scan").regions(encoder.state_dict(), pictures())
    captions = [oracle("scan").words(encoder.state_dict(), caption, "cap_rnn") for caption in CAPTIONS]
    S: Tensor = oracle("sgraf").scores(state, images, captions, training=training)
    return S


@each("module", ["sgr", "saf"], "spec", ["", ",lambda_softmax=4,bi_gru=false"])
def test_scores_equal_a_loop_over_captions(oracle: Oracles, module: str, spec: str) -> None:
    encoder = model(f",module={module}{spec}")
    images = oracle("scan").regions(encoder.state_dict(), pictures())
    captions = [oracle("scan").words(encoder.state_dict(), caption, "cap_rnn") for caption in CAPTIONS]
    S = oracle("sgraf").scores(similarity_state(encoder), images, captions, sharpness=4.0 if spec else 9.0)
    computed = score(encoder, *sides(encoder))
    assert torch.allclose(computed, S, atol=1e-5)
    assert computed.std() > 1e-3, "the scores must differ for the test to say something"
    assert computed.min() > 0 and computed.max() < 1


@both_modules
def test_scores_equal_the_loop_at_the_original_sizes(oracle: Oracles, module: str) -> None:
    torch.manual_seed(0)
    encoder = SGRAF(module=module).build((36, 64), 10).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        images = encoder.encode_images(torch.randn(2, 36, 64))
        texts = encoder.encode_texts(pad(), LENGTHS)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    with torch.no_grad():
        S = oracle("sgraf").scores(similarity_state(encoder), images.local, captions)
        assert torch.allclose(score(encoder, images, texts), S, atol=1e-5)


@both_modules
def test_one_step_of_training_equals_the_loop_and_so_do_its_running_statistics(oracle: Oracles, module: str) -> None:
    encoder = model(f",module={module}").train()
    encoder.pairs_per_chunk = 8  # two captions at a time, sorted by length
    state = similarity_state(encoder)
    S = oracle_scores(oracle, encoder, state, training=True)
    images, texts = encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS)
    computed = score(encoder, images, texts)
    assert torch.allclose(computed, S, atol=1e-5)
    computed.sum().backward()  # scores every chunk again, which must not count twice
    after = similarity_state(encoder)
    for name in (n for n in state if "running" in n):
        assert torch.allclose(after[name], state[name], atol=1e-6), name
    if module == "saf":
        before = int(model(",module=saf").state_dict()["similarity.SAF_module.bn.num_batches_tracked"])
        assert int(after["SAF_module.bn.num_batches_tracked"]) == before + len(CAPTIONS)


def test_the_order_of_captions_matters_to_the_running_statistics() -> None:
    means = []
    for rows in (torch.arange(6), torch.arange(5, -1, -1)):
        encoder = model(",module=saf").train()
        images, texts = encoder.encode_images(pictures()), encoder.encode_texts(pad()[rows], LENGTHS[rows])
        score(encoder, images, texts)
        means.append(similarity_state(encoder)["SAF_module.bn.running_mean"])
    assert not torch.allclose(means[0], means[1], atol=1e-6)


def test_statistics_are_learnt_without_a_gradient_too() -> None:
    encoder = model(",module=saf").train()
    before = similarity_state(encoder)["SAF_module.bn.running_var"]
    with torch.no_grad():
        score(encoder, encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS))
    assert not torch.equal(similarity_state(encoder)["SAF_module.bn.running_var"], before)


def test_saf_couples_the_images_of_a_batch_in_training_only() -> None:
    for training in (False, True):
        encoder = model(",module=saf")
        images, texts = sides(encoder)
        encoder.train(training)
        whole, two_images = score(encoder, images, texts), score(encoder, images.select(slice(0, 2)), texts)
        assert torch.allclose(whole[:2], two_images, atol=1e-6) != training


def test_scores_of_a_new_model_are_about_one_half() -> None:
    torch.manual_seed(0)
    encoder = SGRAF(dim=64, words=16, sim_dim=32).build((5, 7), 10).eval()
    S = score(encoder, *sides(encoder)).detach()
    assert float((S - 0.5).abs().max()) < 0.2


def test_hardest_negatives_are_on_unless_switched_off() -> None:
    for options, name in (({}, "triplet_sh"), ({"max_violation": False}, "triplet")):
        opened = SGRAF.from_released(replace(release_of("sgraf").file(), options=options))
        assert opened is not None and opened.objective == f"{name}:margin=0.2"
