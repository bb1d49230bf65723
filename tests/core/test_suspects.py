"""Do an audit's suspects match all pairs, by ids and by texts, also beside items that it did not audit?"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import lossscope_cli.audit
import numpy as np
import pytest
import torch

import lossscope
from lossscope.audit.output.folder import mask_of
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.masks.base import BatchItems, MaskInputs
from lossscope.core.normal_form import normal_form
from lossscope.core.similarity import Mask
from lossscope.core.suspects import Suspects
from lossscope.core.text_digests import PairTexts, digest_texts
from lossscope.core.types import HIDDEN_FROM, LEAST_SUSPECT
from lossscope.errors import InputError
from lossscope.live.apart_sampler import ApartBatches, apart
from lossscope.registry import build
from tests.each import each

pytestmark = pytest.mark.usefixtures("transferred")  # these tests are about probabilities
DATA = "passages:train=60,val=20,test=20,duplicates=0.3"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the mask.npz of an audit of questions and passages; a third of them appear twice."""
    path = tmp_path_factory.mktemp("audit") / "mask.npz"
    mask_of(audit([], AuditOptions.of(DATA, sheet=10))).write(path)
    return path


@pytest.fixture(scope="module")
def split() -> Any:
    return build("datasets", DATA).split("train")


def known_pairs(**changed: Any) -> KnownPairs:
    """Return suspects a-y (0.9), b-x (0.1): a and c share a text, and so do x and z; a-x is a positive."""
    texts = PairTexts(digest_texts(["one", "two", "ONE"]), digest_texts(["X", "y", "x "]), np.array([False, False]))
    pairs = KnownPairs(
        np.array([0, 1]), np.array([1, 0]), np.array([0.9, 0.1], np.float32), ("a", "b", "c"), ("x", "y", "z"),
        texts=texts,
    )  # fmt: skip
    return replace(pairs, **changed)


@each("threshold", [LEAST_SUSPECT, 0.2, 0.9, 1])
def test_ids_hide_what_all_pairs_one_by_one_hide(file: Path, split: Any, threshold: float) -> None:
    known = read_known_pairs(file)
    probability = {
        (known.left_ids[i], known.right_ids[j]): p
        for i, j, p in zip(known.left.tolist(), known.right.tolist(), known.probability.tolist(), strict=True)
    }
    shuffled = np.random.default_rng(0).permutation(len(split.image_ids))
    queries, candidates = [split.image_ids[row] for row in shuffled[:50]], split.caption_ids[3:] * 2
    hidden = lossscope.suspects(file, threshold).hidden(queries, candidates)
    assert hidden.dtype == torch.bool
    assert hidden.tolist() == [[probability.get((q, c), 0) >= threshold for c in candidates] for q in queries]
    assert hidden.any()


def test_ids_hide_what_the_mask_of_training_hides(file: Path, split: Any) -> None:
    rows = np.arange(len(split.image_ids)), np.arange(len(split.caption_ids))
    items = BatchItems(split.image_ids, split.caption_ids, rows[0], rows[1][None])
    S = torch.zeros(len(rows[0]), len(rows[1]))
    expected = build("masks", f"pairs:file={file}").hidden(MaskInputs(S, Mask(S > 0, S == 0), items=items))
    assert torch.equal(lossscope.suspects(file.parent).hidden(split.image_ids, split.caption_ids), expected)


def test_no_known_positive_is_hidden(file: Path, split: Any) -> None:
    hidden = lossscope.suspects(file, LEAST_SUSPECT).hidden(split.image_ids, split.caption_ids)
    first, second = torch.from_numpy(split.relations.positives).T
    assert not hidden[first, second].any()


def test_texts_hide_what_all_pairs_one_by_one_hide(file: Path, split: Any) -> None:
    known = read_known_pairs(file)
    texts = [normal_form(text) for text in split.images.texts], [normal_form(text) for text in split.captions]
    suspected = {
        (texts[0][i], texts[1][j])
        for i, j, p in zip(known.left.tolist(), known.right.tolist(), known.probability.tolist(), strict=True)
        if p >= 0.1
    }
    nowhere = torch.zeros(len(texts[0]), len(texts[1]), dtype=torch.bool)
    found = lossscope.suspects(file)
    hidden = found.hidden_texts(split.images.texts, split.captions, nowhere)
    assert hidden.tolist() == [[(q, c) in suspected for c in texts[1]] for q in texts[0]]
    by_ids = found.hidden(split.image_ids, split.caption_ids)
    assert (by_ids <= hidden).all()
    assert (by_ids < hidden).any(), "the text also hides a positive's unlabelled copy"
    upper = [f" {text.upper()}  " for text in split.captions]
    assert torch.equal(found.hidden_texts(split.images.texts, upper, nowhere), hidden)


def test_a_copy_of_a_positive_is_hidden_and_the_positive_is_not(file: Path, split: Any) -> None:
    """An unlabelled copy has the text of the positive: hiding both gives a loss of infinity."""
    pairs = split.relations.positives
    queries, candidates = [split.images.texts[i] for i in pairs[:, 0]], [split.captions[j] for j in pairs[:, 1]]
    found = lossscope.suspects(file)
    hidden = found.hidden_texts(queries, candidates)
    all_places = found.hidden_texts(queries, candidates, torch.zeros_like(hidden))
    assert all_places.diagonal().any()
    assert not hidden.diagonal().any()
    assert torch.equal(hidden | torch.eye(len(hidden), dtype=torch.bool), all_places | torch.eye(len(hidden)).bool())
    scores = torch.randn(len(queries), len(candidates)).masked_fill(hidden, -torch.inf)
    assert torch.nn.functional.cross_entropy(scores, torch.arange(len(queries))).isfinite()
    twice = found.hidden_texts(queries, [*candidates, *candidates])
    assert torch.equal(twice[:, len(queries) :], all_places), "a copy behind the positives is no positive"
    assert not found.hidden_texts(queries, candidates, torch.ones_like(hidden)).any()


def test_the_diagonal_says_nothing_of_a_pair_that_is_no_positive() -> None:
    """The lookup of one pair must not answer no because of the pair's position."""
    assert Suspects(known_pairs()).hidden_texts(["one"], ["y"]).tolist() == [[True]]


def test_items_of_one_text_are_hidden_if_one_of_them_is() -> None:
    known = known_pairs(left=np.array([0, 0]), right=np.array([1, 2]))
    assert known.texts is not None
    known = replace(known, texts=replace(known.texts, of_positive=np.array([False, True])))
    hidden = Suspects(known, 0.05).hidden_texts(["One", "two"], ["x", "y"])
    assert hidden.tolist() == [[False, True], [False, False]]
    assert Suspects(known, 0.05).hidden_texts(["two", "One"], ["x", "y"]).tolist() == [[False, False], [True, True]]


def test_what_is_of_no_audited_item_is_named_or_ignored() -> None:
    found = Suspects(known_pairs(), LEAST_SUSPECT)
    with pytest.raises(InputError, match=r"each id must be of an item of pairs, .* 3 such as 'a'; got 'q', and 1 of 2"):
        found.hidden(["a", "q"], ["y"])
    with pytest.raises(InputError, match=r"got 'a', and 2 of 2 are of no item.*its first side as queries"):
        found.hidden(["a"], ["a", "b"])
    with pytest.raises(InputError, match="each text must be of an item of pairs, which has 2; got 'three'"):
        found.hidden_texts(["one", "two"], ["y", "three"])
    assert found.hidden(["q", "b"], ["x", "nothing"], unknown="ignore").tolist() == [[False, False], [True, False]]
    assert found.hidden_texts(["q", "one"], ["y"], unknown="ignore").tolist() == [[False], [True]]


@each("call, says", [
    (lambda s: s.hidden("ab", ["x"]), "query ids must be a list of texts; got the text 'ab'"),
    (lambda s: s.hidden(["a"], [0]), "candidate ids must be texts; got 0, of type int"),
    (lambda s: s.hidden(["a"], ["x"], unknown="warn"), "unknown must be one of error, ignore; got 'warn'"),
    (lambda s: s.hidden_texts("one", ["x"]), "queries must be a list of texts"),
    (lambda s: s.hidden_texts(["one"], [None]), "candidates must be texts; got None, of type NoneType"),
    (
        lambda s: s.hidden_texts(["one"], ["x"], torch.zeros(1, 2, dtype=torch.bool)),
        r"positives must be torch.bool of (1, 1), queries and candidates; got torch.bool (1, 2)",
    ),
])  # fmt: skip
def test_what_cannot_be_looked_up_is_refused(call: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        call(Suspects(known_pairs()))


def test_everything_leaves_out_from_one_probability_on(file: Path) -> None:
    """A training mask, the user's loop, a sampler, an audit's numbers and its option."""
    defaults = [
        inspect.signature(function).parameters["threshold"].default
        for function in (AuditOptions, lossscope.suspects, Suspects, apart, ApartBatches, lossscope_cli.audit.audit)
    ]
    assert {*defaults, build("masks", f"pairs:file={file}").threshold} == {HIDDEN_FROM}


@each("threshold", [0, 0.01, 1.1, float("nan")])
def test_a_threshold_below_what_an_audit_lists_is_refused(threshold: float) -> None:
    """It would hide less than it claims: no file lists pairs below 0.05."""
    with pytest.raises(InputError, match=r"threshold must be in 0\.05\.\.1"):
        Suspects(known_pairs(), threshold)


def test_a_file_without_texts_is_read_and_says_so_where_texts_are_asked_for(tmp_path: Path) -> None:
    known_pairs(texts=None).write(tmp_path / "mask.npz")
    found = lossscope.suspects(tmp_path / "mask.npz")
    assert found.hidden(["a"], ["y"]).tolist() == [[True]]
    with pytest.raises(
        InputError, match=r"mask\.npz must name the texts of both sides; it does not.*take ids, or audit"
    ):
        found.hidden_texts(["one"], ["y"])


def test_texts_come_back_from_a_file(tmp_path: Path) -> None:
    known = known_pairs()
    known.write(tmp_path / "mask.npz")
    read = read_known_pairs(tmp_path / "mask.npz")
    assert known.texts is not None
    assert read.texts is not None
    for name in ("left", "right", "of_positive"):
        assert np.array_equal(getattr(read.texts, name), getattr(known.texts, name))


def test_an_audit_of_pictures_has_the_texts_of_its_captions_alone(tmp_path: Path) -> None:
    split = build("datasets", "scenes:train=40,val=10,test=10").split("train")
    mask_of(audit([], AuditOptions.of("scenes:train=40,val=10,test=10", sheet=10))).write(tmp_path / "mask.npz")
    texts = read_known_pairs(tmp_path / "mask.npz").texts
    assert texts is not None
    assert texts.left is None
    assert np.array_equal(texts.right, digest_texts(split.captions))
    with pytest.raises(InputError, match="must name the texts of both sides; it does not"):
        lossscope.suspects(tmp_path).hidden_texts(["a"], split.captions[:1])


def test_an_id_that_two_items_have_is_not_looked_up() -> None:
    """The last of them would answer for both."""
    found = Suspects(known_pairs(left_ids=("a", "b", "a")))
    with pytest.raises(InputError, match=r"pairs, looked up by ids, must differ, .*; 'a' occurs twice"):
        found.hidden(["b"], ["y"])
    assert found.hidden_texts(["one"], ["y"]).tolist() == [[True]]


@each("changed, says", [
    ({"left_texts": None}, "must have left_texts, right_texts, texts_of_positive; got right_texts, texts_of_positive"),
    ({"left_texts": np.zeros(3)}, "left_texts of .* must be a column of uint64; got float64"),
    ({"left_texts": np.zeros(2, np.uint64)}, r"texts of .* must be \(3, 3, 2\), .*; got \(2, 3, 2\)"),
])  # fmt: skip
def test_damaged_texts_are_refused(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    file = tmp_path / "mask.npz"
    known_pairs().write(file)
    arrays = {**np.load(file), **changed}
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=says):
        read_known_pairs(file)


def test_a_large_batch_of_many_suspects_is_that_of_all_pairs() -> None:
    n = 20_000
    draw = np.random.default_rng(0)
    keys = np.unique(draw.integers(0, n * n, 400_000))
    ids = tuple(map(str, range(n)))
    found = Suspects(KnownPairs(keys // n, keys % n, np.full(len(keys), 0.5, np.float32), ids, ids))
    rows, columns = draw.integers(0, n, 1024), draw.integers(0, n, 1024)
    hidden = found.hidden([ids[row] for row in rows], [ids[row] for row in columns])
    assert np.array_equal(hidden.numpy(), np.isin(rows[:, None] * n + columns, keys))
