"""Does lossscope read dumps of any two sides, of one labelled set and of token vectors, and truncate embeddings?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from lossscope.core.batches import Sampling
from lossscope.engine.small_batches import rows_of_stack
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import from_arrays, load
from tests.each import each


def unit(n: int, d: int = 6, seed: int = 0) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(seed).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def dumped(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "dump.npz", **arrays)
    return folder / "dump.npz"


POSITIVES = np.array([[0, 1], [0, 2], [1, 0], [3, 4]])
PAIRS: dict[str, Any] = {"queries": unit(4), "documents": unit(5, seed=1), "positives": POSITIVES}
TOKENS: dict[str, Any] = {
    "query_tokens": unit(7, seed=2),
    "query_offsets": np.array([0, 2, 3, 7]),
    "document_tokens": unit(12, seed=3),
    "document_offsets": np.array([0, 4, 5, 9, 12]),
    "positives": np.array([[0, 1], [1, 3], [2, 0]]),
}


def test_queries_and_documents(tmp_path: Path) -> None:
    negatives = np.array([[3, -1], [1, 2], [0, 1], [-1, -1]])
    split = load(dumped(tmp_path, **PAIRS, negatives=negatives))
    assert split.sides.text == "query/document"
    assert split.relations.positives.tolist() == POSITIVES.tolist()
    assert split.relations.negatives is not None
    assert split.relations.negatives.tolist() == negatives.tolist()
    assert repr(split).endswith("4 queries, 5 documents>")
    assert any("1 of 4 queries of" in notice for notice in split.notices)


@each("names", [("user", "item"), ("users", "items")])
def test_any_two_names_may_be_declared(tmp_path: Path, names: tuple[str, str]) -> None:
    arrays = {names[0]: PAIRS["queries"], names[1]: PAIRS["documents"], "positives": POSITIVES}
    split = load(dumped(tmp_path, sides=np.array(["user", "item"]), **arrays))
    assert split.sides.labels == ("u2i", "i2u")
    assert split.images is not None
    assert torch.equal(split.images, torch.from_numpy(PAIRS["queries"]))


def test_arrays_of_images_and_captions_do_not_hide_declared_sides_or_positives(tmp_path: Path) -> None:
    """The reader took a dump with `images` and `captions` row by row, whatever sides and positives it declared."""
    vectors = {"images": PAIRS["queries"], "captions": PAIRS["documents"]}
    split = load(dumped(tmp_path, **vectors, positives=POSITIVES))
    assert split.sides.is_image_text and split.relations.positives.tolist() == POSITIVES.tolist()
    split = load(dumped(tmp_path, **vectors, **PAIRS, sides=np.array(["query", "document"])))
    assert split.sides.labels == ("q2d", "d2q") and split.relations.positives.tolist() == POSITIVES.tolist()
    split = load(
        dumped(tmp_path, sides=np.array(["image", "caption"]), **vectors, caption_image=np.array([0, 0, 1, 2, 3]))
    )
    assert split.caption_image is not None and split.caption_image.tolist() == [0, 0, 1, 2, 3]


def test_image_rows_of_captions_are_refused_for_other_sides(tmp_path: Path) -> None:
    """The reader ignored them, in the file and as --caption-image."""
    says = r"must have positives \(n, 2\) for query/document; it has caption_image, which is of images and captions"
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **PAIRS, caption_image=np.zeros(5, int)))
    rows = tmp_path / "rows.npy"
    np.save(rows, np.zeros(5, int))
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **PAIRS), caption_image=rows)
    with pytest.raises(InputError, match=r"must have labels \(n,\) for item; it has caption_image"):
        load(dumped(tmp_path, embeddings=unit(4), labels=np.arange(4), caption_image=np.zeros(4, int)))


def test_arrays_in_memory_may_be_of_types_that_numpy_lacks() -> None:
    """bfloat16 ended in a traceback."""
    arrays = {name: torch.from_numpy(array) for name, array in PAIRS.items()}
    arrays |= {name: arrays[name].bfloat16().requires_grad_() for name in ("queries", "documents")}
    split = from_arrays(arrays)
    assert split.images is not None and split.images.dtype == torch.float32 and not split.images.requires_grad


def test_the_fingerprint_of_arrays_in_memory_has_their_names_types_and_shapes() -> None:
    Q, D = unit(4), unit(4, seed=1)
    ids, others = np.arange(4), np.arange(4).astype(np.uint64)
    given = [
        {"queries": Q, "documents": D},
        {"queries": Q, "documents": D, "query_id": ids},
        {"queries": Q, "documents": D, "document_id": ids},
        {"queries": Q, "documents": D, "query_id": others},
        {"queries": Q.reshape(8, 3), "documents": D.reshape(8, 3)},
    ]
    assert len({from_arrays(arrays).fingerprint for arrays in given}) == len(given)


def test_sides_can_be_typed_for_a_file_that_holds_no_texts(tmp_path: Path) -> None:
    save_file(PAIRS, tmp_path / "dump.safetensors")
    assert load(tmp_path / "dump.safetensors").sides.labels == ("q2d", "d2q")
    assert load(tmp_path / "dump.safetensors", sides="question/answer").sides.labels == ("q2a", "a2q")


def test_names_that_are_bytes_are_texts(tmp_path: Path) -> None:
    """Sides were called b'query' and b'document', and directions a2b and b2a, because both names begin with b."""
    split = load(dumped(tmp_path, sides=np.array([b"query", b"document"]), **PAIRS))
    assert split.sides.labels == ("q2d", "d2q")


@each("name", ["positives", "negatives", "labels", "sides", "query_offsets"])
def test_tensors_of_types_that_numpy_lacks_are_one_message(tmp_path: Path, name: str) -> None:
    """A TypeError escaped: numpy has no bfloat16."""
    usual: dict[str, Any] = {"query_offsets": TOKENS, "labels": {"embeddings": unit(4)}}
    arrays = {key: torch.from_numpy(array) for key, array in usual.get(name, PAIRS).items()}
    save_torch_file({**arrays, name: torch.ones(4, 2).bfloat16()}, tmp_path / "dump.safetensors")
    with pytest.raises(InputError, match=rf"{name} of .* must be .*of float64"):
        load(tmp_path / "dump.safetensors")


def test_rows_of_equal_sides_are_pairs_and_it_is_said(tmp_path: Path) -> None:
    split = load(dumped(tmp_path, queries=unit(4), documents=unit(4, seed=1)))
    assert split.relations.positives.tolist() == [[i, i] for i in range(4)]
    assert "row i of queries and row i of documents are taken as a pair" in split.notices[0]


@each("labels", [np.array([4, 4, 9, 9]), np.array(["a", "a", "b", "b"])])
def test_one_labelled_set(tmp_path: Path, labels: Any) -> None:
    split = load(dumped(tmp_path, embeddings=unit(4), labels=labels))
    assert split.sides.labels == ("all",)
    assert split.relations.labels is not None
    assert split.relations.labels.tolist() == [0, 0, 1, 1]
    assert split.images is split.captions
    assert load(dumped(tmp_path, embeddings=unit(4), labels=labels), sides="product").sides.first == "product"


def test_similarities_of_any_sides(tmp_path: Path) -> None:
    S = unit(4) @ unit(5, seed=1).T
    split = load(dumped(tmp_path, similarity=S, positives=POSITIVES))
    assert np.array_equal(split.similarities(np.array([1, 3]), np.array([0, 4, 2])).t2i, S[[1, 3]][:, [0, 4, 2]].T)
    assert split.sides.labels == ("q2d", "d2q")


def test_texts_and_ids_are_the_keys_of_inputs(tmp_path: Path) -> None:
    texts = np.array(["The cat.", "a dog", "the  cat", "x", "a dog!"])
    split = load(dumped(tmp_path, **PAIRS, document_text=texts, query_id=np.array(["a", "b", "a", "c"])))
    assert split.input_keys.i2t is not None
    assert split.input_keys.t2i is not None
    assert split.input_keys.i2t.tolist() == [0, 1, 0, 2]
    assert split.input_keys.t2i.tolist() == [0, 1, 0, 2, 1]


def maxsim(arrays: dict[str, Any], query: int, document: int) -> float:
    """Return Σ over query tokens of the largest product with a document token, in loops."""
    rows = [range(*arrays[f"{side}_offsets"][i : i + 2]) for side, i in (("query", query), ("document", document))]
    Q, D = arrays["query_tokens"], arrays["document_tokens"]
    return sum(max(float(Q[i].astype(float) @ D[j].astype(float)) for j in rows[1]) for i in rows[0])


@each("entries", [1, 20, 1 << 24])
def test_late_interaction_is_the_sum_of_best_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    monkeypatch.setattr("lossscope.sources._maxsim._ENTRIES", entries)
    split = load(dumped(tmp_path, **TOKENS))
    queries, documents = np.array([2, 0, 2]), np.array([3, 0, 1, 2])
    S = split.similarities(queries, documents).i2t
    expected = [[maxsim(TOKENS, q, d) for d in documents] for q in queries]
    assert np.allclose(S.numpy(), expected, atol=1e-6)
    assert any("so they are not cosines" in notice for notice in split.notices)


@each("changes, says", [
    ({"documents": unit(5, d=3)}, "queries and documents of .* must have one width; got 6 and 3"),
    ({"documents": None}, "must hold `queries` and `documents`, or `similarity`; got positives, queries"),
    ({"positives": None}, r"must hold positives, \(n, 2\) rows of queries and documents, unless row i"),
    ({"positives": np.array([[0, 5]])}, "documents in positives of .* must be rows 0..4; entry 0 is 5"),
    ({"positives": np.array([[1, 1], [4, 1]])}, "queries in positives of .* must be rows 0..3; entry 1 is 4"),
    ({"positives": np.array([[0.0, 1.0]])}, r"positives of .* must be \(n, 2\) rows"),
    ({"positives": np.array([[0, 1], [0, 1]])}, "must have each pair once; 1 rows are copies of others"),
    ({"negatives": np.zeros((3, 2), int)}, "one row for each of 4 queries, -1 for none; got"),
    ({"negatives": np.full((4, 1), 9)}, "documents in negatives of .* must be rows 0..4; entry 0 is 9"),
    ({"labels": np.arange(4)}, "it has labels, which are of one set"),
    ({"sides": np.array(["a", "b", "c"])}, "sides of .* must be two names, or one of a set; got 3"),
    ({"sides": np.array(["x", "x"])}, "sides must have two names; got 'x' twice"),
    ({"queries": np.full((4, 6), np.nan, np.float32)}, "queries of .* must be finite; row 0 is not"),
    ({"query_id": np.array(["a"])}, "query_id of .* must have 4 entries; got 1"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    arrays = {name: array for name, array in {**PAIRS, **changes}.items() if array is not None}
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **arrays))


@each("changes, says", [
    ({"labels": np.arange(3)}, "labels of .* must be 4 whole numbers or texts, one per item"),
    ({"labels": np.ones(4)}, "labels of .* must be 4 whole numbers or texts"),
    ({"embeddings": None}, "must hold `embeddings`, or `similarity`; got labels"),
    ({"similarity": np.ones((3, 4)), "embeddings": None}, "must be square for one set of items; got 3 x 4"),
])  # fmt: skip
def test_labelled_sets_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    arrays = {"embeddings": unit(4), "labels": np.array([0, 0, 1, 1]), **changes}
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **{name: array for name, array in arrays.items() if array is not None}))


@each("changes, says", [
    ({"query_offsets": None}, r"must hold query_tokens \(T, d\) and query_offsets"),
    ({"query_offsets": np.array([0, 2, 2, 7])}, "must rise from 0 to 7, the number of tokens, by 1 or more"),
    ({"query_offsets": np.array([0, 2, 3, 8])}, "must rise from 0 to 7"),
    ({"query_offsets": np.array([0.0, 7.0])}, "must be .* whole numbers"),
    ({"document_tokens": unit(12, d=3)}, "tokens of both sides of .* must have one width; got 6 and 3"),
])  # fmt: skip
def test_tokens_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    arrays = {name: array for name, array in {**TOKENS, **changes}.items() if array is not None}
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **arrays))


def test_a_prefix_has_unit_length_again(tmp_path: Path) -> None:
    split = load(dumped(tmp_path, **PAIRS))
    short = split.prefix(2)
    assert short.images is not None
    assert short.captions is not None
    expected = PAIRS["queries"][:, :2] / np.linalg.norm(PAIRS["queries"][:, :2], axis=1, keepdims=True)
    assert np.allclose(short.images.numpy(), expected, atol=1e-6)
    assert short.name.endswith("dump.npz dims=2")
    assert short.fingerprint != split.fingerprint
    labelled = load(dumped(tmp_path, embeddings=unit(4), labels=np.array([0, 0, 1, 1]))).prefix(3)
    assert labelled.images is labelled.captions


def test_a_prefix_must_be_there(tmp_path: Path) -> None:
    split = load(dumped(tmp_path, **PAIRS))
    with pytest.raises(InputError, match=r"--dims must be at most the width of .*, 6; got 7"):
        split.prefix(7)
    with pytest.raises(InputError, match="--dims needs embeddings"):
        load(dumped(tmp_path, similarity=unit(4) @ unit(5).T, positives=POSITIVES)).prefix(2)


@each("name", ["query_id", "document_id", "image_id"])
def test_an_id_that_two_rows_have_is_a_notice_and_the_mask_that_it_names_leaves_them_out(
    name: str, tmp_path: Path
) -> None:
    """A document that appears twice was a negative of its own query, without a notice."""
    sides = ("images", "captions") if name == "image_id" else ("queries", "documents")
    rows = unit(6)
    rows[1] = rows[0]
    given = dict.fromkeys(sides, rows)
    assert not any("of an earlier row" in text for text in load(dumped(tmp_path, **given)).notices)
    split = load(dumped(tmp_path, **given, **{name: np.array(["x", "x", "b", "c", "d", "e"])}))
    (notice,) = (text for text in split.notices if "of an earlier row" in text)
    assert f"1 of 6 rows of {tmp_path / 'dump.npz'} have the {name} of an earlier row, such as 'x'" in notice
    assert notice.endswith("--mask same-text")


def test_the_mask_of_that_notice_leaves_copies_out(tmp_path: Path) -> None:
    rows = unit(6)
    rows[1] = rows[0]
    ids = {"query_id": np.arange(6), "document_id": np.array(["x", "x", "b", "c", "d", "e"])}
    split = load(dumped(tmp_path, queries=rows, documents=rows, **ids))
    before, after = (
        Sweep(objectives=("ntxent:tau=0.05",), probes=("weight-mass",), masks=masks, interval=None)
        .run(split).summary.set_index(["direction", "statistic"]).loc[("q2d", "W_neg"), "mean"]
        for masks in ((), ("same_text",))
    )  # fmt: skip
    assert before > after + 0.05


@each("arrays", [
    {"caption_image": np.repeat(np.arange(4), 2)}, {},
    {"positives": np.stack([np.repeat(np.arange(4), 2), np.arange(8)], 1)},
])  # fmt: skip
def test_similarities_that_fit_transposed_alone_are_named(arrays: dict[str, Any], tmp_path: Path) -> None:
    S = unit(4) @ unit(8, seed=1).T
    assert load(dumped(tmp_path, similarity=S, **arrays)).similarity is not None
    with pytest.raises(InputError, match=r"Rows of similarity are .*: where yours are .*, write similarity=S\.T$"):
        load(dumped(tmp_path, similarity=S.T, **arrays))


def test_positives_the_other_way_round_are_named(tmp_path: Path) -> None:
    pairs = np.stack([np.arange(4).repeat(2), np.arange(8)], 1)
    arrays = {"queries": unit(4), "documents": unit(8, seed=1)}
    with pytest.raises(InputError, match=r"entry 4 is 4\. .* other way round, write positives\[:, ::-1\]$"):
        load(dumped(tmp_path, **arrays, positives=pairs[:, ::-1]))
    with pytest.raises(InputError, match=r"must be rows 0\.\.7; entry 7 is 9$"):
        load(dumped(tmp_path, **arrays, positives=np.where(pairs == 7, 9, pairs)))


PROXIES: dict[str, Any] = {"embeddings": unit(7), "labels": np.array([0, 1, 2, 0, 1, 0, 0]), "proxies": unit(4, seed=1)}


def test_items_against_class_vectors(tmp_path: Path) -> None:
    """The reader took them as one labelled set, and ignored the proxies."""
    split = load(dumped(tmp_path, **PROXIES))
    assert split.sides.labels == ("i2p", "p2i") and split.captions is not None
    assert split.relations.positives.tolist() == [[i, label] for i, label in enumerate(PROXIES["labels"])]
    assert torch.equal(split.captions, torch.from_numpy(PROXIES["proxies"]))
    renamed = {"items" if name == "embeddings" else name: array for name, array in PROXIES.items()}
    assert load(dumped(tmp_path, **renamed)).relations.positives.tolist() == split.relations.positives.tolist()
    assert load(dumped(tmp_path, **PROXIES), sides="face/proxy").sides.labels == ("f2p", "p2f")
    assert load(dumped(tmp_path, **PROXIES), sides="item").relations.one_set


def test_items_of_a_dump_with_proxies_have_every_proxy_as_candidate_in_one_direction(tmp_path: Path) -> None:
    path = dumped(tmp_path, **PROXIES)
    result = Sweep(("ntxent:tau=0.5", "arcface:scale=4"), ("cocos:unit=paper",), batch_size=3, interval=None).run(
        load(path)
    )
    assert set(result.summary["sampling"]) == {"proxies, items x all 4"}
    assert set(result.batches["direction"]) == {"i2p"}
    S = torch.from_numpy(PROXIES["embeddings"] @ PROXIES["proxies"].T)
    p = (S.double() / 0.5).softmax(1)[torch.arange(7), torch.from_numpy(PROXIES["labels"])]
    rows = result.batches[result.batches["objective"] == "ntxent:tau=0.5"]
    assert rows["queries"].tolist() == [3, 3, 1]
    assert float((rows["W_pos"] * rows["queries"]).sum()) == pytest.approx(float((1 - p).sum()), rel=1e-5)


def test_proxy_anchor_of_a_dump_is_the_loss_of_all_items_and_all_proxies(tmp_path: Path) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    loss = losses.ProxyAnchorLoss(4, 6).double()
    loss.proxies.data = torch.from_numpy(PROXIES["proxies"]).double()
    items = torch.from_numpy(PROXIES["embeddings"]).double().requires_grad_()
    (expected,) = torch.autograd.grad(loss(items, torch.from_numpy(PROXIES["labels"])), items)
    split = load(dumped(tmp_path, **PROXIES))
    (batch,) = Sampling("proxies", None).batches(split.relations)
    (rows,) = rows_of_stack(split, [batch], "keep")
    W = build("objectives", "proxy_anchor")(rows.S.double(), rows.mask).W / 7
    unit_items = items.detach()
    gradient = W @ split.captions.double()  # type: ignore[union-attr]
    along = (gradient * unit_items).sum(1, keepdim=True) * unit_items
    torch.testing.assert_close(gradient - along, expected, rtol=1e-4, atol=1e-5)


@each("wrong, says", [
    ({"labels": np.array([0, 1, 4, 0, 1, 0, 0])}, r"rows of proxies, must be rows 0\.\.3; entry 2 is 4"),
    ({"labels": np.array([0, 1, -1, 0, 1, 0, 0])}, r"must be rows 0\.\.3; entry 2 is -1"),
    ({"labels": np.array(list("abcabca"))}, r"must be 7 rows of proxies, the class of each.*; got \(7,\) of <U1"),
    ({"labels": np.array([0, 1])}, r"must be 7 rows of proxies.*got \(2,\) of int64.*--sides item"),
    ({"proxies": unit(4, d=5)}, "must have one width; got 6 and 5"),
])  # fmt: skip
def test_labels_that_are_no_rows_of_proxies_raise(tmp_path: Path, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load(dumped(tmp_path, **{**PROXIES, **wrong}))
