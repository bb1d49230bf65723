"""Do tiles, ranks, sweeps and training work for encoders without vectors, as for the others?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask
from lossscope.datasets.base import Split
from lossscope.datasets.formats.subset import first_images
from lossscope.encoders.base import Encoder, EncoderSpec
from lossscope.encoders.types import EncodedBatch, Items
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.objectives.base import Traits
from lossscope.registry import build
from lossscope.retrieval.evaluate import evaluate, retrieve
from lossscope.sources.base import load
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.pair_scores import PairScorer, concatenate_batches, score_split
from lossscope.text.vocabulary import Vocabulary
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name

DATA = "scenes:train=40,val=12,test=12,size=16"


class Pairs(Encoder):
    """S = the largest product of a word with the image; with `best`, the model scores only that many candidates."""

    pairwise = True
    pairs_per_chunk = 60

    def __init__(self, vocabulary: int, best: int = 0, further: float = 0.0) -> None:
        super().__init__()
        self.fc, self.embed = nn.Linear(48, 6), nn.Embedding(vocabulary, 6)
        self.best, self.further, self.needs_full_matrix = best, further, best > 0

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        pooled = nn.functional.adaptive_avg_pool2d(images.float() / 255, 4).flatten(1)
        return EncodedBatch(None, nn.functional.normalize(self.fc(pooled), dim=1)[:, None])

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1])[None] < lengths[:, None]
        return EncodedBatch(None, nn.functional.normalize(self.embed(ids), dim=2) * present[:, :, None], present)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        assert images.local is not None and texts.local is not None
        s = torch.einsum("nd,mld->nml", images.local[:, 0], texts.local)
        return (s if texts.mask is None else s.masked_fill(~texts.mask, -math.inf)).amax(2)

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor | Pair[Tensor]:
        S = super().score(images, texts)
        assert isinstance(S, Tensor)
        if not self.best or self.training:
            return S
        return Pair(
            *(scores.masked_fill(scores < scores.topk(self.best).values[:, -1:], math.nan) for scores in (S, S.T))
        )

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        return self.further * self.fc.weight.square().sum() if self.further else None


@dataclass(frozen=True)
class Pairwise(EncoderSpec):
    best: int = 0
    further: float = 0.0

    def build(self, item_shape: Any, vocabulary_size: int) -> Encoder:
        return Pairs(vocabulary_size, self.best, self.further)


SPEC = f"{__file__}:Pairwise"


@pytest.fixture
def split() -> Split:
    return build("datasets", DATA).split("val")  # type: ignore[no-any-return]


def scorer(split: Split, size: int = 5, best: int = 0) -> PairScorer:
    torch.manual_seed(0)
    words = Vocabulary.build(split.captions, 1)
    return PairScorer(Pairs(len(words), best), CaptionBatcher(split, words), size)


def rows(split: Split) -> tuple[Any, Any]:
    return np.arange(len(split.images)), np.arange(len(split.captions))


def test_tiles_make_the_matrix_of_one_call(split: Split) -> None:
    whole, tiled = scorer(split, 1000)(*rows(split)), scorer(split, 5)(*rows(split))
    assert isinstance(whole, Tensor) and isinstance(tiled, Tensor)
    torch.testing.assert_close(tiled, whole, rtol=0, atol=1e-6)
    part = scorer(split)(np.array([3, 1]), np.array([7, 0, 2]))
    assert isinstance(part, Tensor)
    torch.testing.assert_close(part, whole[[3, 1]][:, [7, 0, 2]])


def test_the_model_stays_in_the_mode_it_was_in(split: Split) -> None:
    pair_scorer = scorer(split)
    for training in (True, False):
        pair_scorer.model.train(training)
        pair_scorer(*rows(split))
        assert pair_scorer.model.training is training


def test_scores_that_are_not_finite_are_refused(split: Split) -> None:
    pair_scorer = scorer(split)
    with torch.no_grad():
        pair_scorer.model.fc.weight[0, 0] = torch.nan  # type: ignore[index, union-attr]
    with pytest.raises(InputError, match=r"that of image 0 and caption 0 is not. The training diverged"):
        pair_scorer(*rows(split))


def test_batches_are_padded_to_the_longest() -> None:
    first = EncodedBatch(None, torch.ones(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), {"w": torch.ones(2, 7)})
    second = EncodedBatch(None, torch.ones(1, 5, 4), torch.ones(1, 5, dtype=torch.bool), {"w": torch.zeros(1, 7)})
    both = concatenate_batches([first, second])
    assert both.local is not None and both.mask is not None
    assert both.local.shape == (3, 5, 4)
    assert both.mask.sum(1).tolist() == [3, 3, 5]
    assert both.extra["w"][:, 0].tolist() == [1, 1, 0]
    assert len(both) == 3 and both.lengths.tolist() == [3, 3, 5]


def test_a_split_can_be_cut_to_its_first_images(split: Split) -> None:
    pair_scorer = scorer(split)
    part = first_images(split, 4)
    whole, few = (
        score_split(pair_scorer.model, CaptionBatcher(images, pair_scorer.captions.tokeniser))
        for images in (split, part)
    )
    assert whole.i2t.shape == (12, 60) and few.i2t.shape == (4, 20)
    torch.testing.assert_close(few.i2t, whole.i2t[:4, :20])
    assert part.caption_image.tolist() == split.caption_image[:20].tolist()
    assert part.fingerprint != split.fingerprint
    assert first_images(split, 0) is first_images(split, 99) is split
    with_ids = replace(split, tokens=[[1, row] for row in range(60)], words=Vectors())
    few_with_ids = first_images(with_ids, 2)
    assert few_with_ids.tokens == [[1, row] for row in range(10)]
    assert few_with_ids.words is not None
    assert few_with_ids.words.take(np.array([3]))[0][0].tolist() == [3.0] * 3 and few_with_ids.words.width == 3


def embedded(split: Split, scores: PairScorer) -> SplitEmbeddings:
    return SplitEmbeddings(
        "pairs", None, None, None, split.caption_image, split.image_ids, split.caption_ids, "0", pair_scorer=scores
    )


def test_sweep_and_ranks_of_a_scorer_are_those_of_its_matrix(split: Split) -> None:
    pair_scorer = scorer(split)
    S = pair_scorer(*rows(split))
    assert isinstance(S, Tensor)
    direct = SplitEmbeddings("pairs", None, None, S, split.caption_image, split.image_ids, split.caption_ids, "0")
    sweep = Sweep(("ntxent", "smoothap"), ("cocos:unit=paper",), batch_size=8)
    result, of_matrix = sweep.run(embedded(split, pair_scorer)), sweep.run(direct)
    for scored, expected in ((result.summary, of_matrix.summary), (result.batches, of_matrix.batches)):
        numbers = [frame.select_dtypes("number").fillna(-1).to_numpy() for frame in (scored, expected)]
        np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-5)
    assert evaluate([embedded(split, pair_scorer)])["mean"].tolist() == pytest.approx(
        evaluate([direct])["mean"].tolist()
    )


def test_unscored_pairs_rank_below_all_and_are_masked_out(split: Split) -> None:
    pair_scorer = scorer(split, best=2)
    both = embedded(split, pair_scorer).similarities(*rows(split))
    assert both.i2t.shape == (12, 60) and both.t2i.shape == (60, 12)
    assert (~both.i2t.isnan()).sum(1).min() >= 2
    i2t, _ = retrieve(both, split.caption_image)
    for row in range(12):
        positives = [column for column in range(60) if split.caption_image[column] == row]
        best = max((float(both.i2t[row, c]) for c in positives if not math.isnan(both.i2t[row, c])), default=-math.inf)
        above = sum(float(x) > best for x in both.i2t[row] if not math.isnan(x)) if best > -math.inf else 59
        assert i2t.ranks[row] == above
    summary = (
        Sweep(("ntxent",), batch_size=12, shuffle=False, captions="first").run(embedded(split, pair_scorer)).summary
    )
    assert summary["mean"].notna().all()
    with pytest.raises(InputError, match="must be one matrix for this; its two directions differ"):
        embedded(split, pair_scorer).similarity_block(*rows(split))


def test_training_scores_pairs_and_its_checkpoint_is_probed(tmp_path: Path) -> None:
    recipe = Recipe(data=DATA, encoder=SPEC, objective="ntxent", epochs=2, batch_size=16, lr=0.01, val_images=6)
    run = train(recipe, tmp_path / "run")
    losses = [float(line.split(",")[1]) for line in run.metrics.read_text().splitlines()[2:]]
    assert losses[1] < losses[0]
    source = load(run.path, split="test", trust_code=True)
    assert source.pair_scorer is not None and source.images is None
    assert source.similarity_block(*(np.arange(3), np.arange(4))).shape == (3, 4)
    assert Sweep(("ntxent",), batch_size=8).run(source).summary["mean"].notna().all()


def test_an_extra_loss_is_trained_with_the_objective(tmp_path: Path) -> None:
    weights, losses = [], []
    for further in (0.0, 50.0):
        recipe = Recipe(data=DATA, encoder=f"{SPEC}:further={further}", objective="ntxent", epochs=1, batch_size=16)
        run = train(recipe, tmp_path / str(further))
        weights.append(float(Checkpoint.load(run.last).weights["fc.weight"].norm()))
        losses.append(float(run.metrics.read_text().splitlines()[2].split(",")[1]))
    assert weights[1] < 0.99 * weights[0]
    assert losses[1] > losses[0] + 10


def test_a_re_ranking_model_can_be_trained(tmp_path: Path) -> None:
    spec = f"{SPEC}:best=2"
    run = train(Recipe(data=DATA, encoder=spec, objective="ntxent", epochs=1, batch_size=16), tmp_path / "run")
    assert run.best.is_file()  # training scores all pairs; validation re-ranks


class Vectors:
    width = 3

    def __len__(self) -> int:
        return 60

    def take(self, rows: Any) -> Sequence[Any]:
        return [np.full((1 + int(row) % 2, 3), float(row), dtype=np.float32) for row in rows]


def test_captions_may_be_ids_or_vectors_of_the_data_set(split: Split) -> None:
    words = Vocabulary.build(split.captions, 1)
    token_ids = [[1, 4, 2], [1, 2]] * 30
    ids, lengths = CaptionBatcher(replace(split, tokens=token_ids), words).take(np.array([0, 1]), torch.device("cpu"))
    assert ids.tolist() == [[1, 4, 2], [1, 2, 0]] and lengths.tolist() == [3, 2]
    with pytest.raises(InputError, match=r"must be below the vocabulary's size, .* got 999"):
        _ = CaptionBatcher(replace(split, tokens=[[1, 999]] * 60), words).ids
    vectors = CaptionBatcher(replace(split, words=Vectors()), words)
    batch, lengths = vectors.take(np.array([0, 1]), torch.device("cpu"))
    assert batch.shape == (2, 2, 3) and lengths.tolist() == [1, 2]
    assert batch[0].tolist() == [[0.0] * 3, [0.0] * 3] and batch[1, 1].tolist() == [1.0] * 3


def test_an_objective_that_needs_embeddings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(build("objectives", "ntxent")), "traits", Traits(needs_embeddings=True))
    with pytest.raises(InputError, match=r"must be given embeddings; .*Pairwise.* scores pairs and has none"):
        train(Recipe(data=DATA, encoder=SPEC, objective="ntxent", epochs=1, batch_size=16), tmp_path / "run")
    assert not (tmp_path / "run").exists()
