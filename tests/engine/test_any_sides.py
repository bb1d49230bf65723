"""Do sweeps of two sides or of one set share the mathematics of images and captions, and match other libraries?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.core.batches import Batch, Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.engine.small_batches import rows_of_stack
from lossscope.engine.sweep import Sweep
from lossscope.engine.terms import rows_with_terms
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load

SPECS = ("triplet", "triplet_sh", "ntxent:tau=0.02", "unified", "goal", "smoothap", "supcon:tau=0.02")
ANY = ("cocos:unit=paper", "recall", "similarity")


def unit(n: int, d: int, seed: int) -> Tensor:
    return normalise(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def embedded_of(first: Tensor, second: Tensor, relations: Relations) -> SplitEmbeddings:
    ids = [str(i) for i in range(max(len(first), len(second)))]
    return SplitEmbeddings(
        "dump", first, second, None, None, ids[: len(first)], ids[: len(second)], "0", relations=relations
    )


def queries_and_documents(q: int = 40, m: int = 70, k: int = 3, d: int = 8) -> SplitEmbeddings:
    """Return queries that share some of their positives, and mined negatives; some of these are positives."""
    random = np.random.default_rng(0)
    pairs = np.unique(np.stack([random.integers(0, q, 90), random.integers(0, m, 90)], 1), axis=0)
    negatives = random.integers(-1, m, (q, k))
    relations = Relations(q, m, pairs, QUERY_DOCUMENT, negatives=negatives)
    return embedded_of(unit(q, d, 1), unit(m, d, 2), relations)


def statistics(rows: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """Return the numbers of summary rows, without the columns that name the source's sides."""
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    columns = ["objective", "probe", "statistic", "mean", "std", "n"]
    return rows[columns].sort_values(columns[:3]).reset_index(drop=True)


def test_images_queries_and_other_sides_give_the_same_numbers() -> None:
    V, T = unit(50, 8, 1), unit(50, 8, 2)
    pairs = np.stack([np.arange(50)] * 2, 1)
    frames = {}
    for sides in (Sides(), QUERY_DOCUMENT, Sides("user", "item"), Sides("view 1", "view 2")):
        sweep = Sweep(SPECS, ANY, batch_size=16, sampling="pairs")
        frames[sides] = sweep.run(embedded_of(V, T, Relations(50, 50, pairs, sides))).summary
    whole = frames.pop(Sides())
    for sides, frame in frames.items():
        assert set(frame["direction"]) == set(sides.labels)
        for ours, theirs in zip(sides.labels, ("i2t", "t2i"), strict=True):
            pd.testing.assert_frame_equal(
                statistics(frame, direction=ours), statistics(whole, direction=theirs), check_exact=True
            )


def test_a_labelled_set_gives_the_numbers_of_its_matrix_as_queries_and_documents(tmp_path: Path) -> None:
    """Item and partner in one batch. As documents, a query meets itself too: at −1 that weighs less than a rounding."""
    X = unit(24, 6, 3)
    labels = np.repeat(np.arange(12), 2)
    np.savez(tmp_path / "set.npz", embeddings=X.numpy(), labels=labels)
    S = (X @ X.T).fill_diagonal_(-1).numpy()
    partner = np.arange(24) ^ 1
    positives = np.stack([np.arange(24), partner], 1)
    np.savez(tmp_path / "pairs.npz", similarity=S, positives=positives)
    np.savez(tmp_path / "images.npz", similarity=S[:, partner], caption_image=np.arange(24))
    tables = {}
    for name in ("set", "pairs", "images"):
        sampling = None if name == "set" else "images"
        sweep = Sweep(("supcon:tau=0.02", "smoothap"), ("cocos:unit=paper", "recall"), sampling, batch_size=None)
        first = "all" if name == "set" else "q2d" if name == "pairs" else "i2t"
        tables[name] = statistics(sweep.run(load(tmp_path / f"{name}.npz")).summary, direction=first)
    for other in ("pairs", "images"):
        pd.testing.assert_frame_equal(tables["set"], tables[other], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_w_depends_on_s_and_the_mask_alone(spec: str) -> None:
    """One matrix as image-text, as query-document and as a labelled set has the same bits of W."""
    V, T = unit(12, 5, 4).float(), unit(12, 5, 5).float()
    pairs = np.stack([np.arange(12)] * 2, 1)
    batch = Batch(np.arange(12), np.arange(12), "pairs")
    directions = rows_of_stack(embedded_of(V, T, Relations(12, 12, pairs)), [batch], "keep")
    other = rows_of_stack(embedded_of(V, T, Relations(12, 12, pairs, QUERY_DOCUMENT)), [batch], "keep")
    labelled = Relations.of_labels(np.arange(24) % 12)
    joined = torch.cat([V, T])
    one_set = Batch(np.arange(24), np.arange(24), "classes")
    (rows,) = rows_of_stack(embedded_of(joined, joined, labelled), [one_set], "keep")
    objective = build("objectives", spec)
    W = [objective(row.S, row.mask).W for row in directions]
    assert all(torch.equal(a, objective(b.S, b.mask).W) for a, b in zip(W, other, strict=True))
    both_views = Batch(np.arange(24), np.arange(24), "views")
    (views,) = rows_of_stack(embedded_of(V, T, Relations(12, 12, pairs, Sides("a", "b"))), [both_views], "keep")
    assert torch.equal(views.mask.match, rows.mask.match)
    assert torch.equal(objective(views.S, views.mask).W, objective(rows.S, rows.mask).W)


@pytest.mark.parametrize("same_image", ["keep", "mask"])
@pytest.mark.parametrize("mode", ["pairs", "groups", "views"])
def test_lists_of_entries_are_the_dense_mask(mode: Any, same_image: Any) -> None:
    embedded = queries_and_documents()
    for batch in Sampling(mode, 16).batches(embedded.relations):
        dense = batch.mask(embedded.relations, same_image)
        sparse = SparseMask.of(batch, embedded.relations, same_image)
        for ours, theirs in ((sparse, dense), (sparse.t(), dense.t())):
            rows = ours.mask(torch.arange(ours.queries))
            assert torch.equal(rows.positives, theirs.positives)
            assert torch.equal(rows.negatives, theirs.negatives)


def test_lists_of_entries_are_the_dense_mask_of_classes() -> None:
    relations = Relations.of_labels(np.repeat(np.arange(9), 5))
    for batch in Sampling("classes", 16, per_class=4).batches(relations):
        dense, sparse = batch.mask(relations), SparseMask.of(batch, relations, "keep")
        rows = sparse.mask(torch.arange(sparse.queries))
        assert torch.equal(rows.positives, dense.positives)
        assert torch.equal(rows.negatives, dense.negatives)


@pytest.mark.parametrize("mode", ["pairs", "groups", "views"])
def test_tiles_give_the_numbers_of_dense_batches(mode: Any) -> None:
    embedded = queries_and_documents()
    specs = ("triplet", "triplet_sh", "ntxent", "unified") if mode != "groups" else ("supcon", "smoothap")
    dense, tiled = (
        Sweep(specs, ("cocos:unit=paper", "similarity", "recall"), mode, 16, engine=engine).run(embedded).summary
        for engine in ("dense", "tiled")
    )  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(statistics(dense), statistics(tiled), rtol=1e-9)


def test_mined_negatives_of_the_batch_are_candidates_of_every_query() -> None:
    embedded = queries_and_documents()
    (batch,) = Sampling("pairs", None).batches(embedded.relations)
    first, second = embedded.relations.positives.T
    assert embedded.relations.negatives is not None
    mined = embedded.relations.negatives[first]
    assert batch.images.tolist() == first.tolist()
    assert batch.captions.tolist() == [*second, *mined[mined >= 0]]
    mask = batch.mask(embedded.relations)
    assert bool(mask.valid.all())
    assert torch.equal(mask.match, torch.eye(*mask.match.shape, dtype=torch.bool))


def test_groups_have_all_positives_of_their_queries_and_their_mined_negatives() -> None:
    embedded = queries_and_documents()
    relations, negatives = embedded.relations, embedded.relations.negatives
    assert negatives is not None
    for only_own in (False, True):
        for batch in Sampling("groups", 8, negatives="own" if only_own else "batch").batches(relations):
            positives = {d for q, d in relations.positives.tolist() if q in batch.images}
            assert sorted(batch.captions[: batch.pairs].tolist()) == sorted(positives)
            mined = [d for q in batch.images for d in negatives[q].tolist() if d >= 0]
            assert batch.captions[batch.pairs :].tolist() == mined
            mask = batch.mask(relations)
            assert np.array_equal(mask.match.numpy(), relations.is_positive(batch.images, batch.captions))
            for row, query in enumerate(batch.images):
                seen = batch.captions[batch.pairs :][mask.valid[row, batch.pairs :].numpy()].tolist()
                assert seen == ([d for d in negatives[query].tolist() if d >= 0] if only_own else mined)


def test_a_query_can_see_its_own_mined_negatives_alone() -> None:
    embedded = queries_and_documents()
    negatives = embedded.relations.negatives
    assert negatives is not None
    for batch in Sampling("pairs", 16, negatives="own", mined=2).batches(embedded.relations):
        valid, b = batch.mask(embedded.relations).valid, len(batch.images)
        assert bool(valid[:, :b].all())
        for row, query in enumerate(batch.images):
            seen = batch.captions[b:][valid[row, b:].numpy()]
            assert seen.tolist() == [document for document in negatives[query, :2] if document >= 0]


def test_no_mined_negatives_are_those_of_a_source_without_any() -> None:
    embedded = queries_and_documents()
    bare = embedded_of(
        embedded.images, embedded.captions, Relations(40, 70, embedded.relations.positives, QUERY_DOCUMENT)  # type: ignore[arg-type]
    )  # fmt: skip
    ours = Sweep(("ntxent",), ANY, batch_size=16, negatives="none").run(embedded).summary
    pd.testing.assert_frame_equal(
        statistics(ours), statistics(Sweep(("ntxent",), ANY, batch_size=16).run(bare).summary)
    )


def test_known_positives_can_be_left_out() -> None:
    """A mined negative can be a positive of the query by the data's own pairs."""
    embedded = queries_and_documents()
    pairs = {tuple(pair) for pair in embedded.relations.positives.tolist()}
    by_rule = Sweep(("ntxent",), ("cocos",), batch_size=16, masks=("same-item",)).run(embedded).summary
    by_option = Sweep(("ntxent",), ("cocos",), batch_size=16, same_image="mask").run(embedded).summary
    pd.testing.assert_frame_equal(statistics(by_rule), statistics(by_option))
    for batch in Sampling("pairs", 16).batches(embedded.relations):
        mask = batch.mask(embedded.relations, "mask")
        known = [[(q, d) in pairs for d in batch.captions.tolist()] for q in batch.images.tolist()]
        assert torch.equal(~mask.valid, torch.tensor(known) & ~mask.match)


def mean_loss(S: Tensor, mask: Mask, spec: str) -> float:
    """Return the mean loss of rows of S; its gradient flows through W alone to the inputs of S."""
    weights = build("objectives", spec)(S.detach(), mask)
    assert weights.values is not None
    n = int(weights.usable.sum())
    torch.autograd.backward(S, weights.W / n)
    return float(weights.values.sum()) / n


def along_the_sphere(x: Tensor) -> Tensor:
    """Return the part of the gradient on unit rows that turns them: a loss that normalises has no other."""
    assert x.grad is not None
    return x.grad - (x.grad * x.detach()).sum(1, keepdim=True) * x.detach()


def test_two_views_are_simclr() -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    V, T = (unit(10, 6, seed).requires_grad_() for seed in (6, 7))
    relations = Relations(10, 10, np.stack([np.arange(10)] * 2, 1), Sides("view 1", "view 2"))
    (batch,) = Sampling("views", None).batches(relations)
    (rows,) = rows_of_stack(embedded_of(V.detach(), T.detach(), relations), [batch], "keep")
    joined = torch.cat([V, T])
    value = mean_loss(joined @ joined.T, rows.mask, "ntxent:tau=0.1")
    theirs = [x.detach().clone().requires_grad_() for x in (V, T)]
    loss = losses.NTXentLoss(temperature=0.1)(torch.cat(theirs), torch.arange(20) % 10)
    loss.backward()
    assert value == pytest.approx(float(loss.detach()), rel=1e-12)
    for ours, other in zip((V, T), theirs, strict=True):
        assert torch.allclose(along_the_sphere(ours), other.grad, atol=1e-12)


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_labels_are_the_supervised_contrastive_loss(tau: float) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    X, labels = unit(24, 6, 8).requires_grad_(), np.repeat(np.arange(6), 4)
    relations = Relations.of_labels(labels)
    (batch,) = Sampling("classes", 24, shuffle=False).batches(relations)
    assert batch.images.tolist() == list(range(24))
    value = mean_loss(X @ X.T, batch.mask(relations), f"supcon:tau={tau}")
    theirs = X.detach().clone().requires_grad_()
    loss = losses.SupConLoss(temperature=tau)(theirs, torch.from_numpy(labels))
    loss.backward()
    assert value == pytest.approx(float(loss.detach()), rel=1e-9)
    assert torch.allclose(along_the_sphere(X), theirs.grad, atol=1e-9)


def mined_pairs(k: int, b: int = 7, d: int = 5) -> tuple[SplitEmbeddings, Tensor, Tensor]:
    """Return b pairs with k mined negatives each; document b + q·k + j is the j-th of query q."""
    Q, D = unit(b, d, 9).requires_grad_(), unit(b * (1 + k), d, 10).requires_grad_()
    negatives = b + np.arange(b * k).reshape(b, k) if k else None
    relations = Relations(b, len(D), np.stack([np.arange(b)] * 2, 1), QUERY_DOCUMENT, negatives=negatives)
    return embedded_of(Q, D, relations), Q, D


TERMS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("query_to_doc",),
    ("q2q",): ("query_to_doc", "query_to_query"),
    ("d2q",): ("query_to_doc", "doc_to_query"),
    ("d2d",): ("query_to_doc", "doc_to_doc"),
    ("q2q", "d2q", "d2d"): ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc"),
}


@pytest.mark.parametrize("spec", ["ntxent:tau=0.05", "infonce:tau=0.05", "vlc:gamma=20"])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("terms", TERMS, ids=" ".join)
def test_terms_are_those_of_multiple_negatives_ranking(terms: tuple[str, ...], k: int, spec: str) -> None:
    losses = pytest.importorskip("sentence_transformers.losses")
    embedded, Q, D = mined_pairs(k)
    (batch,) = Sampling("pairs", None).batches(embedded.relations)
    rows = rows_with_terms(embedded, batch, terms)
    value = mean_loss(rows.S, rows.mask, spec)
    theirs = [x.detach().clone().requires_grad_() for x in (Q, D)]
    columns = [theirs[0], theirs[1][:7], *(theirs[1][7 + j :: k] if k else () for j in range(k))]
    loss = losses.MultipleNegativesRankingLoss(None, scale=20.0, directions=TERMS[terms])
    result = loss.compute_loss_from_embeddings(columns, torch.zeros(0))
    result.backward()
    assert value == pytest.approx(float(result.detach()), rel=1e-10)
    for ours, other in zip((Q, D), theirs, strict=True):
        assert torch.allclose(along_the_sphere(ours), other.grad, atol=1e-10)


def test_terms_are_left_out_where_they_have_no_meaning() -> None:
    embedded, _, _ = mined_pairs(2)
    detached = embedded_of(embedded.images.detach(), embedded.captions.detach(), embedded.relations)  # type: ignore[union-attr]
    frame = Sweep(("ntxent",), ("cocos",), batch_size=4, terms=("q2q", "d2q")).run(detached).summary
    assert set(frame["direction"]) == {"q2d"}
    assert set(frame["sampling"]) == {"pairs, mined negatives, terms q2q+d2q"}
    for changes, says in (
        ({"objectives": ("triplet",)}, "--terms is for losses of one softmax over all candidates"),
        ({"probes": ("tangent",)}, "does not work with --terms"),
        ({"terms": ("q2x",)}, "--terms must be some of q2q, d2q, d2d, p2p"),
    ):
        options = {"objectives": ("ntxent",), "probes": ("cocos",), "terms": ("q2q",), **changes}
        with pytest.raises(InputError, match=says):
            Sweep(**options, batch_size=4).run(detached)  # type: ignore[arg-type]


def test_a_guide_hides_what_it_finds_more_similar() -> None:
    embedded, guide = queries_and_documents(), queries_and_documents()
    guide = embedded_of(unit(40, 8, 11), unit(70, 8, 12), guide.relations)
    plain, guided = (
        Sweep(("ntxent",), ("cocos", "similarity"), batch_size=16, masks=masks, per_query=True)
        for masks in ((), ("gist",))
    )
    before, after = plain.run(embedded).queries, guided.run(embedded, guide=guide).queries
    assert (after["hardest"].fillna(-1) <= before["hardest"].fillna(-1) + 1e-9).all()
    assert after["hardest"].fillna(-1).lt(before["hardest"].fillna(-1)).any()
    with pytest.raises(InputError, match="--mask gist needs a guide"):
        guided.run(embedded)
    with pytest.raises(InputError, match="--guide must hold the items of dump"):
        guided.run(
            embedded, guide=embedded_of(unit(41, 8, 1), unit(70, 8, 2), Relations(41, 70, np.zeros((1, 2), int)))
        )


def test_one_set_has_one_direction_and_its_own_batches() -> None:
    X = unit(60, 6, 13)
    embedded = embedded_of(X, X, Relations.of_labels(np.repeat(np.arange(15), 4), "product"))
    frame = Sweep(("supcon", "ntxent"), ("cocos",), batch_size=16).run(embedded).summary
    assert set(frame["direction"]) == {"all"}
    assert dict(zip(frame["objective"], frame["sampling"], strict=True)) == {
        "supcon:tau=0.1,form=out": "classes of 4",
        "ntxent:tau=0.1": "classes of 2",
    }
    with pytest.raises(InputError, match="--sampling must be classes for products of one labelled set"):
        Sweep(("ntxent",), sampling="pairs").run(embedded)


def test_views_need_embeddings() -> None:
    S = torch.rand(6, 6)
    relations = Relations(6, 6, np.stack([np.arange(6)] * 2, 1), Sides("a", "b"))
    ids = [str(i) for i in range(6)]
    embedded = SplitEmbeddings("dump", None, None, S, None, ids, ids, "0", relations=relations)
    with pytest.raises(InputError, match="--sampling views needs embeddings"):
        Sweep(("ntxent",), sampling="views", batch_size=4).run(embedded)


def test_own_negatives_of_a_large_batch_are_refused_where_they_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = queries_and_documents()
    sweep = Sweep(("ntxent",), batch_size=32, negatives="own", engine="tiled")
    monkeypatch.setattr("lossscope.core.memory.free_bytes", lambda device: 1)
    with pytest.raises(InputError, match="must fit into memory"):
        sweep.run(embedded)
