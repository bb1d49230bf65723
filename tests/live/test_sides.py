"""Does `watch` take sides other than images and captions: documents, mined negatives, one set, rows of one process?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.sides import Sides
from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.errors import InputError
from lossscope.live.monitor import LossScope
from tests.each import each

B, WIDTH, NTXENT = 8, 5, "ntxent:tau=0.05"
PROBES = ("cocos", "similarity", "alignment", "uniformity")


def vectors(seed: int, rows: int = B) -> Tensor:
    return torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed))


def watch(
    probes: tuple[str, ...] = PROBES, sides: Any = None, objective: str = NTXENT, **given: Any
) -> dict[str, float]:
    row = LossScope(objective, probes, sides=sides).watch(**given)
    assert row is not None and row["finite"] == 1
    return row


def renamed(row: dict[str, float], *names: tuple[str, str]) -> dict[str, float]:
    """Return a row with other names for its directions."""
    for old, new in names:
        row = {key.replace(f"{old}/", f"{new}/"): value for key, value in row.items()}
    return row


def test_queries_and_documents_have_the_numbers_of_images_and_captions() -> None:
    V, T = vectors(0), vectors(1)
    images = watch(images=V, captions=T)
    expected = renamed(images, ("i2t", "q2d"), ("t2i", "d2q"))
    assert watch(queries=V, documents=T) == expected
    assert list(watch(queries=V, documents=T)) == list(expected)
    assert watch(queries=V, documents=T, sides=("query", "document")) == expected
    assert watch(queries=V, documents=T, sides="user/item") == renamed(images, ("i2t", "u2i"), ("t2i", "i2u"))
    assert watch(queries=V, documents=T, sides=Sides("view 1", "view 2")) == renamed(
        images, ("i2t", "a2b"), ("t2i", "b2a")
    )
    S = normalise(V) @ normalise(T).T
    of_s = watch(("cocos",), ("query", "document"), S=S)
    assert of_s == {name: value for name, value in expected.items() if name in of_s}


def test_the_same_s_is_the_same_as_two_sides_and_as_a_set() -> None:
    """Two views as one set give each item the row of the two-sided S, once all other entries are left out."""
    first, second = vectors(0), vectors(1)
    E, labels = torch.cat([first, second]), torch.arange(B).repeat(2)
    whole = normalise(E) @ normalise(E).T
    other = ~torch.eye(2 * B, dtype=torch.bool)
    mask = Mask((labels[:, None] == labels[None, :]) & other, other)
    row = watch(embeddings=E, labels=labels)
    assert {name.partition("/")[0] for name in row} == {"finite", "all"}
    as_pairs = watch(("cocos", "similarity"), S=whole, mask=mask)
    for name, value in as_pairs.items():
        if name.startswith("i2t"):
            assert row[name.replace("i2t", "all")] == pytest.approx(value, rel=1e-6, abs=1e-7), name
    assert watch(("cocos",), S=whole, labels=labels) == watch(("cocos",), "item", S=whole, mask=mask)
    assert watch(("cocos",), "product", S=whole, labels=labels) == watch(("cocos",), S=whole, labels=labels)


def test_an_item_is_no_candidate_of_itself_even_where_the_mask_says_so() -> None:
    E = vectors(0)
    match = torch.zeros(B, B, dtype=torch.bool)
    match[torch.arange(B), (torch.arange(B) + 1) % B] = True
    everything = Mask(match, torch.ones(B, B, dtype=torch.bool))
    assert watch(("cocos",), "item", embeddings=E, mask=everything) == watch(
        ("cocos",), "item", embeddings=E, mask=Mask(match, ~torch.eye(B, dtype=torch.bool))
    )


@pytest.mark.parametrize("k", [1, 3])
def test_mined_negatives_stand_behind_the_positives(k: int) -> None:
    Q, P, N = vectors(0), vectors(1), vectors(2, k * B).view(B, k, WIDTH)
    documents = torch.cat([P, N.flatten(0, 1)])
    row = watch(queries=Q, documents=P, negatives=N)
    assert row == watch(queries=Q, documents=documents)
    S = normalise(Q) @ normalise(documents).T
    match = torch.eye(B, B * (1 + k), dtype=torch.bool)
    by_mask = watch(("cocos", "similarity"), ("query", "document"), S=S, mask=Mask(match, torch.ones_like(match)))
    for name, value in by_mask.items():
        if name.startswith("q2d"):
            assert row[name] == value, name
    of_pairs = watch(queries=Q, documents=P)
    assert {name: value for name, value in row.items() if name.startswith("d2q")} == pytest.approx(
        {name: value for name, value in of_pairs.items() if name.startswith("d2q")}, rel=1e-5, abs=1e-6
    )  # products of other shapes may differ in their last bits
    assert row["q2d/s_neg"] >= of_pairs["q2d/s_neg"]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_rows_of_one_process_have_their_positives_at_an_offset(rank: int) -> None:
    V, T = (normalise(vectors(seed, 3 * B)) for seed in (0, 1))
    share = slice(rank * B, rank * B + B)
    S = V[share] @ T.T
    match = torch.zeros(B, 3 * B, dtype=torch.bool)
    match[torch.arange(B), rank * B + torch.arange(B)] = True
    row = watch(("cocos", "similarity"), S=S, offset=rank * B)
    by_mask = watch(("cocos", "similarity"), S=S, mask=Mask(match, torch.ones_like(match)))
    assert row == {name: value for name, value in by_mask.items() if not name.startswith("t2i")}
    of_vectors = watch(images=V[share], captions=T, offset=rank * B)
    assert {name: of_vectors[name] for name in row} == pytest.approx(row, rel=1e-4, abs=1e-6)
    both = watch(("cocos", "similarity"), S=S, offset=rank * B, S_second=T[share] @ V.T)
    back = watch(("cocos", "similarity"), S=T[share] @ V.T, offset=rank * B)
    assert {name: value for name, value in both.items() if name.startswith("t2i")} == {
        name.replace("i2t", "t2i"): value for name, value in back.items() if name != "finite"
    }


def test_the_mean_over_processes_is_that_of_the_whole_batch() -> None:
    V, T = (normalise(vectors(seed, 3 * B)) for seed in (0, 1))
    whole = watch(("cocos", "similarity"), S=V @ T.T)
    parts = [
        watch(("cocos", "similarity"), S=V[share] @ T.T, offset=share.start, S_second=T[share] @ V.T)
        for share in (slice(k * B, k * B + B) for k in range(3))
    ]
    for name in ("i2t/C_neg", "t2i/C_neg", "i2t/s_pos", "t2i/s_neg", "i2t/W_neg", "t2i/N_eff"):
        assert sum(part[name] for part in parts) / 3 == pytest.approx(whole[name], rel=1e-6), name


def test_offset_zero_of_a_square_is_pairs() -> None:
    S = normalise(vectors(0)) @ normalise(vectors(1)).T
    assert watch(("cocos", "similarity"), S=S, offset=0) == watch(("cocos", "similarity"), S=S)


def test_the_frame_has_the_columns_of_all_rows() -> None:
    scope = LossScope(NTXENT, ("similarity",))
    scope.watch(images=vectors(0), captions=vectors(1))
    scope.watch(queries=vectors(0), documents=vectors(1))
    frame = scope.frame()
    assert frame["i2t/s_pos"].isna().tolist() == [False, True]
    assert frame["q2d/s_pos"].isna().tolist() == [True, False]
    assert list(LossScope(NTXENT, ("cocos",), sides="query/document").frame())[2] == "q2d/C_neg"
    assert {name.partition("/")[0] for name in list(LossScope("supcon", ("cocos",), sides="item").frame())[2:]} == {
        "all"
    }
    assert list(LossScope().frame()) == ["step", "finite"]


V, S = vectors(0), torch.eye(B)


@pytest.mark.parametrize(
    ("sides", "given", "message"),
    [
        (None, {"images": V, "queries": V}, "images and captions, or queries and documents; got both"),
        (None, {"queries": V}, "queries and documents must be given together; got one of them"),
        ("query/document", {"images": V, "captions": V}, r"sides are query/document; write watch\(queries="),
        ("query/document", {"embeddings": V, "labels": V[:, 0]}, "sides are query/document. Write LossScope"),
        (None, {"embeddings": V}, "one set of items needs labels, or a mask; got none"),
        (None, {"S": S, "labels": [1] * B, "mask": pair_mask(torch.arange(B))}, "or a mask; got both"),
        (None, {"embeddings": V, "labels": [1, 2]}, r"labels must be one per item, \(8,\); got \(2,\)"),
        (None, {"S": S[:4], "labels": [1, 2, 3, 4]}, r"S of one set must be \(n, n\), n at least 2; got \(4, 8\)"),
        (None, {"embeddings": V, "labels": [1] * B, "offset": 1}, "one set of items must be S.*got two sides"),
        ("item", {}, "must be given S, or embeddings; got neither"),
        (None, {"queries": V, "documents": V, "negatives": V}, r"negatives must be \(b, k, d\) of documents"),
        (None, {"queries": V[:3], "documents": V}, r"documents must be b \(1 \+ k\) rows.*got 8 of 3 queries"),
        (None, {"queries": V, "documents": V[:3]}, r"S of pairs must be \(b, b\)"),
        (None, {"S": S[:4], "offset": 5}, r"offset must be 0..4, as row i of S \(4, 8\).*got 5"),
        (None, {"S": S, "offset": 0, "mask": pair_mask(torch.arange(B))}, "give one of them"),
        (None, {"S": S, "mask": pair_mask(torch.arange(B)), "S_second": S}, "leave out the mask"),
        (None, {"queries": V[:1], "documents": V[:1]}, r"2 pairs or more, .* DataLoader\(\.\.\., drop_last=True\)"),
        (None, {"embeddings": V[:1], "labels": [1]}, r"2 items or more, .* DataLoader\(\.\.\., drop_last=True\)"),
        ("query/document", {"S": S[0]}, r"S must be \(queries, documents\) of floating point; got \(8,\)"),
    ],
)
def test_what_does_not_go_together_is_one_clear_error(sides: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LossScope(NTXENT, sides=sides).watch(**given)


@pytest.mark.parametrize("name", ["images", "captions", "queries", "documents", "negatives", "embeddings"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool])
def test_whole_numbers_are_no_embeddings(name: str, dtype: torch.dtype) -> None:
    """torch raised `linalg.vector_norm: Expected a floating point`, or cast mined negatives without a warning."""
    first, second = ("images", "captions") if name in ("images", "captions") else ("queries", "documents")
    given = {"embeddings": V, "labels": [1] * B} if name == "embeddings" else {first: V, second: V}
    given |= {name: torch.ones((B, 2, V.shape[1]) if name == "negatives" else V.shape, dtype=dtype)}
    with pytest.raises(InputError, match=rf"{name} must be of floating point, .* Write {name}={name}\.float\(\), or"):
        LossScope("supcon").watch(**given)


@pytest.mark.parametrize("kind", [list, np.array])
def test_labels_may_be_texts_as_in_a_dump(kind: Any) -> None:
    texts, numbers = ["cat", "dog", "owl", "cat"] * 2, torch.tensor([0, 1, 2, 0] * 2)
    told = [LossScope("supcon").watch(embeddings=V, labels=labels) for labels in (kind(texts), numbers)]
    assert told[0] == told[1]
    views = V.reshape(4, 2, -1)
    told = [LossScope("supcon").watch(embeddings=views, labels=labels) for labels in (kind(texts[:4]), numbers[:4])]
    assert told[0] == told[1]


@pytest.mark.parametrize("sides", [("a", "a"), "a/b/c", ("",)])
def test_sides_that_are_none_are_refused(sides: Any) -> None:
    with pytest.raises(InputError, match="sides must"):
        LossScope(NTXENT, sides=sides)


@pytest.mark.parametrize("with_labels", [True, False])
def test_views_of_items_are_one_set_in_which_views_of_an_item_or_a_class_match(with_labels: bool) -> None:
    features = torch.randn(6, 3, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 0, 1, 3]) if with_labels else torch.arange(6)
    given = {"labels": labels} if with_labels else {}
    joined = {"embeddings": torch.cat(features.unbind(1)), "labels": labels.repeat(3)}
    views, items = (
        LossScope("supcon", ("similarity", "recall")).watch(**batch)  # type: ignore[arg-type]
        for batch in ({"embeddings": features, **given}, joined)
    )
    assert views == items


def test_labels_of_views_are_one_an_item() -> None:
    with pytest.raises(InputError, match=r"one per item of embeddings \(b, views, d\), \(6,\); got \(12,\)"):
        LossScope("supcon", ("similarity",)).watch(embeddings=torch.randn(6, 2, 8), labels=torch.arange(12))


@each("with_labels", [True, False])
def test_features_of_supcon_are_embeddings_of_views(with_labels: bool) -> None:
    """`features` was an unknown argument, though every SupCon loss takes (b, views, d) by that name."""
    views, labels = vectors(0, 8).reshape(4, 2, WIDTH), torch.arange(4) // 2 if with_labels else None
    rows = [watch(objective="supcon", **{name: views}, labels=labels) for name in ("features", "embeddings")]
    assert rows[0] == rows[1]
    assert watch(objective="supcon", features=views[..., None], labels=labels) == rows[0]


@each("given, says", [
    ({"features": vectors(0)}, r"features must be \(b, views, d\), .* got \(8, 5\). Of \(n, d\) write embeddings="),
    ({"features": vectors(0).reshape(4, 2, 5), "embeddings": vectors(0)}, "features or embeddings; got both"),
])  # fmt: skip
def test_features_of_another_form_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        LossScope("supcon").watch(**given, labels=torch.arange(8))
