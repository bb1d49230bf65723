"""Does an audit take models, dumps, similarities alone, one set, any two sides, mined negatives and texts?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.audit.output.document import document
from lossscope.audit.output.folder import mask_of
from lossscope.audit.output.pages import first_different
from lossscope.audit.parts.items import AuditedItems
from lossscope.audit.search import candidates
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import AuditResult
from lossscope.audit.steps.run import audit
from lossscope.audit.types import PairRows
from lossscope.core.relations import Relations
from lossscope.datasets.base import Split
from lossscope.datasets.scenes import Scenes
from lossscope.errors import InputError
from tests.audit.small import vectors
from tests.tiny import SCENES

pytestmark = pytest.mark.usefixtures("transferred")  # the tests need probabilities
TEXTS_ALONE = AuditOptions.of(data="scenes:train=60,val=4,test=8,size=16,ambiguity=0.5", batch_size=20)


def run(*sources: Path, **options: Any) -> AuditResult:
    return audit(sources, AuditOptions.of(**{"batch_size": 8, "sheet": 20, "split": "test"} | options))


def assert_sound(result: AuditResult) -> None:
    """Assert that numbers are in range, tables complete, the document JSON, and the suspects in the mask."""
    p = result.suspects.probability
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) <= 0).all()
    assert result.rate is not None
    assert result.per_query is not None
    assert 0 <= result.rate.value <= 1
    assert 0 <= result.per_query <= 1
    assert all(0 <= weight.share.value <= 1 and 0 <= weight.above <= 1 for weight in result.weights)
    assert all(np.isfinite(scored.Z).all() for scored in (result.suspects, result.sheet))
    keys = list(zip(result.sheet.pairs.left.tolist(), result.sheet.pairs.right.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    json.loads(json.dumps(document(result), allow_nan=False))
    assert len(mask_of(result).left) == len(p)


def test_texts_alone_find_captions_that_are_true_of_other_pictures() -> None:
    result = audit((), TEXTS_ALONE)
    assert_sound(result)
    truth = Scenes(train=60, val=4, test=8, size=16, ambiguity=0.5).split("train").truth()
    assert truth[result.suspects.pairs.right, result.suspects.pairs.left][:50].mean() > 0.5
    assert result.examined == 60 * 300 - 300 == result.pairs
    assert not result.weights
    assert len(result.sheet.pairs) == 100
    assert (result.suspects.copy == 1).any()


def test_a_run_is_audited_on_its_own_data(tiny_checkpoint: Path) -> None:
    result = run(tiny_checkpoint, split="train")
    assert_sound(result)
    assert {"similarity", "text_items"} <= set(result.signals)
    assert [weight.objective for weight in result.weights] == ["ntxent"]
    assert result.copy_names == ("same_picture", "same_text")
    assert "agreement" in result.unknown


def test_several_epochs_agree_and_are_weighed_one_by_one(tiny_run: Path) -> None:
    epochs = sorted((tiny_run / "checkpoints").glob("epoch-*.pt"))
    result = run(*epochs, objectives=("ntxent", "triplet"))
    assert_sound(result)
    assert "agreement" in result.signals
    expected = [int(path.stem.removeprefix("epoch-")) for path in epochs]
    assert [weight.epoch for weight in result.weights] == [n for n in expected for _ in range(2)]


def dump(path: Path, n: int = 12, each: int = 2, **more: Any) -> Path:
    owners = np.repeat(np.arange(n), each)
    images = vectors(n, 0, 8)
    captions = images[owners] + 0.5 * vectors(n * each, 1, 8)
    np.savez(path, images=images, captions=captions, caption_image=owners, **more)
    return path


def test_embeddings_alone_need_no_data(tmp_path: Path) -> None:
    result = run(dump(tmp_path / "a.npz"))
    assert_sound(result)
    assert result.unknown["text_items"].startswith("it has no texts")
    assert result.unknown["same_picture"].startswith("it has no pictures")


def test_of_similarities_alone_there_are_no_neighbours(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(12), 2)
    S = vectors(12, 0, 8) @ (vectors(12, 0, 8)[owners] + 0.5 * vectors(24, 1, 8)).T
    np.savez(tmp_path / "s.npz", similarity=S, caption_image=owners)
    result = run(tmp_path / "s.npz")
    assert_sound(result)
    assert result.unknown["candidate_neighbours"] == "it has similarities only, no embeddings"
    assert "without candidate_neighbours, query_neighbours" in result.calibration.origin
    p = result.suspects.probability
    s = S[result.suspects.pairs.left, result.suspects.pairs.right]
    assert len(p) > 3
    assert np.corrcoef(p, s)[0, 1] > 0.5


def test_one_labelled_set_is_audited(tmp_path: Path) -> None:
    labels = np.arange(40) % 8
    np.savez(tmp_path / "set.npz", embeddings=vectors(8, 0)[labels] + 0.4 * vectors(40, 1), labels=labels)
    result = run(tmp_path / "set.npz")
    assert_sound(result)
    assert result.pairs == 40 * 40 - 8 * 25
    same = labels[result.suspects.pairs.left] == labels[result.suspects.pairs.right]
    assert not same.any()
    both_ways = np.sort(np.stack([result.sheet.pairs.left, result.sheet.pairs.right], 1), 1)
    assert len(np.unique(both_ways, axis=0)) == len(both_ways)


def test_an_item_of_a_class_is_compared_with_all_others_of_it() -> None:
    labels = np.array([2, 0, 1, 0, 2, 0, 3, 2, 2, 1])
    known = AuditedItems(Relations.of_labels(labels), *[[str(row) for row in range(10)]] * 2)
    for lists in (known.positives_of_queries, known.positives_of_candidates):
        for row, label in enumerate(labels):
            assert sorted(lists[row][lists[row] >= 0]) == [n for n in np.flatnonzero(labels == label) if n != row]


@pytest.mark.parametrize("most", [6_000_000, 100])
def test_of_one_set_both_orders_of_a_pair_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Signals compared the candidate with the query's label alone: (b, a) was a suspect, and (a, b) was not."""
    monkeypatch.setattr(candidates, "ALL_PAIRS", most)
    labels = np.arange(60) % 12
    np.savez(tmp_path / "set.npz", embeddings=vectors(12, 0)[labels] + 0.4 * vectors(60, 1), labels=labels)
    result = run(tmp_path / "set.npz", top=None if most > 100 else 7)
    probability = np.zeros((60, 60))
    probability[result.suspects.pairs.left, result.suspects.pairs.right] = result.suspects.probability
    assert np.count_nonzero(probability) > 50
    np.testing.assert_allclose(probability, probability.T, atol=1e-6)


def test_the_page_of_one_set_shows_two_items_once(tmp_path: Path) -> None:
    """The page showed (b, a) beside (a, b), and their answers could contradict each other."""
    labels = np.arange(40) % 8
    np.savez(tmp_path / "set.npz", embeddings=vectors(8, 0)[labels] + 0.4 * vectors(40, 1), labels=labels)
    result = run(tmp_path / "set.npz")
    pairs = first_different(result, 30).pairs
    assert len(pairs) == 30
    assert len({frozenset(pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)}) == 30
    assert pairs.left[0] == result.suspects.pairs.left[0]


@pytest.mark.parametrize("size", [2, 3, 15])
def test_batches_of_one_set_are_of_twos(tmp_path: Path, size: int) -> None:
    np.savez(tmp_path / "set.npz", embeddings=vectors(40, 1), labels=np.arange(40) % 8)
    with pytest.raises(InputError, match=rf"even number of items, 4 or more, .* got {size}\. Change --batch-size"):
        run(tmp_path / "set.npz", batch_size=size)


def test_any_two_sides_are_audited(tmp_path: Path) -> None:
    pairs = np.array([[q, q] for q in range(10)] + [[q, 10 + q] for q in range(4)])
    np.savez(tmp_path / "p.npz", queries=vectors(12, 0), documents=vectors(20, 1), positives=pairs)
    result = run(tmp_path / "p.npz", batch_size=4)
    assert_sound(result)
    assert result.material.relations.sides.text == "query/document"
    assert result.calibration.origin.startswith("7 kinds of queries and documents")
    assert np.isnan(result.material.models[0].positive(PairRows(np.array([11]), np.array([3])))).all()


def test_two_views_are_audited(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", view_1=vectors(20, 0), view_2=vectors(20, 0) + 0.3 * vectors(20, 1))
    assert_sound(run(tmp_path / "v.npz", sides="view 1/view 2"))


def test_passages_with_mined_negatives_are_audited() -> None:
    result = run(data="passages:train=60,val=8,test=8", split="train", batch_size=16)
    assert_sound(result)
    assert "text_direct" in result.signals
    assert result.rate is not None
    assert result.rate.low is None
    assert "text_names" in result.signals


def test_an_image_without_a_caption_is_a_query_like_any_other(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(8), 2)
    np.savez(tmp_path / "a.npz", images=vectors(9, 0), captions=vectors(16, 1), caption_image=owners)
    result = run(tmp_path / "a.npz")
    assert_sound(result)
    assert result.examined == 9 * 16 - 16


def test_lists_of_a_large_set_have_the_suspects_of_all_pairs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = dump(tmp_path / "a.npz", 30)
    whole = run(path)
    monkeypatch.setattr(candidates, "ALL_PAIRS", 100)
    lists = run(path, top=12)
    assert_sound(lists)
    assert lists.examined < whole.examined
    np.testing.assert_allclose(lists.suspects.probability[:5], whole.suspects.probability[:5], atol=0.15)


def test_neither_texts_nor_sources_are_nothing_to_decide_by(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a SOURCE, a file of rows, or data with texts"):
        audit((), AuditOptions())


def test_data_without_texts_and_no_source_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Scenes.split

    def without_texts(self: Scenes, name: str) -> Split:
        split = whole(self, name)
        return dataclasses.replace(split, captions=[""] * len(split.captions))

    monkeypatch.setattr(Scenes, "split", without_texts)
    with pytest.raises(InputError, match="an audit needs texts or embeddings"):
        audit((), AuditOptions.of(data=SCENES))


def test_a_source_of_other_items_than_the_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be of the items of the audit; its first side has 12 items"):
        run(dump(tmp_path / "a.npz"), data=SCENES)


def test_sources_of_different_items_are_refused(tmp_path: Path) -> None:
    first, second = dump(tmp_path / "a.npz"), dump(tmp_path / "b.npz", 13)
    with pytest.raises(InputError, match="must be of the items of the audit"):
        run(first, second)


def test_permuted_items_have_the_same_suspects(tmp_path: Path) -> None:
    owners, order = np.repeat(np.arange(12), 2), np.random.default_rng(0).permutation(12)
    position = np.empty(12, int)
    position[order] = np.arange(12)
    images, captions = vectors(12, 0, 8), vectors(12, 0, 8)[owners] + 0.5 * vectors(24, 1, 8)
    ids = np.array([f"i{k}" for k in range(12)])
    texts: dict[str, Any] = {"captions": captions, "caption_id": np.array([f"c{k}" for k in range(24)])}
    np.savez(tmp_path / "a.npz", images=images, caption_image=owners, image_id=ids, **texts)
    np.savez(tmp_path / "b.npz", images=images[order], caption_image=position[owners], image_id=ids[order], **texts)
    found = []
    for name in ("a", "b"):
        result = run(tmp_path / f"{name}.npz", batch_size=24, keep=0.0)  # all pairs in one batch
        left, right = result.material.image_ids, result.material.caption_ids
        rows = zip(result.suspects.pairs.left, result.suspects.pairs.right, result.suspects.probability, strict=True)
        found.append({(left[a], right[b]): p for a, b, p in rows})
    assert found[0].keys() == found[1].keys()
    for pair, p in found[0].items():
        assert found[1][pair] == pytest.approx(p, abs=0.02)


def test_longer_embeddings_give_the_same_audit(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(12), 2)
    images, captions = vectors(12, 0, 8), vectors(24, 1, 8)
    for name, scale in (("a", 1), ("b", 7)):
        np.savez(tmp_path / f"{name}.npz", images=scale * images, captions=captions * scale, caption_image=owners)
    plain, scaled = run(tmp_path / "a.npz"), run(tmp_path / "b.npz")
    assert plain.rate is not None
    assert scaled.rate is not None
    assert scaled.rate.value == pytest.approx(plain.rate.value, rel=1e-3)
    np.testing.assert_allclose(scaled.suspects.probability, plain.suspects.probability, rtol=1e-3)


def test_the_audit_of_one_seed_is_the_same_again(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.npz")
    assert document(run(path)) == document(run(path))
    assert run(path, seed=1).sheet.pairs.left.tolist() != run(path).sheet.pairs.left.tolist()


def test_every_long_step_shows_its_progress(tiny_checkpoint: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    run(tiny_checkpoint, progress=lambda label, done, of: seen.__setitem__(label, (done, of)), split="train")
    assert {
        "reading texts", "comparing pictures", "most similar candidates", "measuring signals", "scoring pairs",
        "intervals", "weights of ntxent",
    } <= set(seen)  # fmt: skip
    assert all(done == of for done, of in seen.values())
