"""Are the queries with the most and the least gradient those of an oracle in float64, one query at a time?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import KnownPairs
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.engine.changed_queries import changed_document, changed_queries, negatives_of_changed
from lossscope.engine.heaviest_negatives import LEAST, MOST, HeaviestNegatives, document
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.engine.weighed_queries import first_queries
from lossscope.errors import InputError
from lossscope.registry import names
from tests.each import each

N, K = 12, 2
SHOWN = 4
SPECS = ("ntxent:tau=0.1", "triplet:margin=0.2", "triplet-sh:margin=0.2", "smoothap:tau=0.1")


def split(seed: int = 0) -> SplitEmbeddings:
    """Return images with captions, in float64 so that rounding decides no weight."""
    random = torch.Generator().manual_seed(seed)
    images = torch.nn.functional.normalize(torch.randn(N, 6, generator=random, dtype=torch.float64))
    owner = torch.arange(N).repeat_interleave(K)
    noise = torch.randn(N * K, 6, generator=random, dtype=torch.float64)
    captions = torch.nn.functional.normalize(images[owner] + 0.6 * noise)
    ids = [f"i{row}" for row in range(N)], [f"c{row}" for row in range(N * K)]
    return SplitEmbeddings("made", images, captions, None, owner.numpy(), *ids, "made")


def passages() -> SplitEmbeddings:
    """Return queries with one document and two mined negatives each."""
    random = torch.Generator().manual_seed(3)
    queries, documents = (torch.nn.functional.normalize(torch.randn(n, 6, generator=random)) for n in (N, 3 * N))
    pairs = np.stack([np.arange(N), np.arange(N)], 1)
    mined = N + np.arange(2 * N).reshape(N, 2)
    relations = Relations(N, 3 * N, pairs, QUERY_DOCUMENT, None, mined)
    ids = [f"q{row}" for row in range(N)], [f"d{row}" for row in range(3 * N)]
    return SplitEmbeddings("passages", queries, documents, None, None, *ids, "made", relations=relations)


def sweep(*objectives: str, **options: Any) -> Sweep:
    return Sweep(objectives, **{"probes": ("cocos:unit=cosine",), "batch_size": 5, **options})


def brute_force(setup: Sweep, embedded: SplitEmbeddings, oracle: ModuleType) -> dict[str, list[dict[str, Any]]]:
    """Return direction -> each query of each batch: its weights by dL/dS of the oracle, one query at a time."""
    (batching,), rows = setup.plan_for(embedded).batchings, {"i2t": [], "t2i": []}
    assert embedded.images is not None
    assert embedded.captions is not None
    values = {name: value for name, value in vars(batching.objectives[0]).items() if name != "positive"}
    for number, batch in enumerate(batching.sampling.batches(embedded.relations)):
        mask = batch.mask(embedded.relations, setup.same_image)
        S = (embedded.images[batch.images] @ embedded.captions[batch.captions].T).numpy()
        for direction, s, of, items, others in (
            ("i2t", S, mask, batch.images, batch.captions), ("t2i", S.T, mask.t(), batch.captions, batch.images),
        ):  # fmt: skip
            match, valid = of.match.numpy(), of.valid.numpy()
            W = np.abs(oracle.weights(s, match, valid, **values))
            for q in range(len(s)):
                negatives = [c for c in range(s.shape[1]) if valid[q, c] and not match[q, c]]
                if not negatives or not (match[q] & valid[q]).any():
                    continue
                heavy = sorted(
                    (c for c in negatives if W[q, c] > 0), key=lambda c, q=q: (-W[q, c], -s[q, c], others[c])
                )
                rows[direction].append({
                    "batch": number, "query": int(items[q]),
                    "weight": W[q][valid[q]].sum(), "weight_negatives": W[q, negatives].sum(),
                    "positive_similarity": s[q][match[q] & valid[q]].max(),
                    "negatives": [(int(others[c]), W[q, c], s[q, c]) for c in heavy[:5]],
                })  # fmt: skip
    return rows


def listed(rows: list[dict[str, Any]], sign: int) -> list[dict[str, Any]]:
    """Return the first queries by weight, each once; among ties the lower row comes first."""
    best: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (round(sign * row["weight"], 9), row["query"], row["batch"])):
        best.setdefault(row["query"], row)
    return list(best.values())[:SHOWN]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("options", [{}, {"same_image": "mask"}, {"seed": 3, "drop_last": True}], ids=str)
def test_lists_are_those_of_an_oracle(spec: str, options: dict[str, Any], oracle: Callable[[str], ModuleType]) -> None:
    embedded, setup = split(), sweep(spec, **options)
    expected = brute_force(setup, embedded, oracle(spec.partition(":")[0].replace("-", "_")))
    lists = {of["direction"]: of for of in document(HeaviestNegatives(setup).most_and_least(embedded, SHOWN))}
    for direction, rows in expected.items():
        ours = lists[direction]
        assert ours["queries"] == len({row["query"] for row in rows})
        heavy = {row["query"] for row in rows if row["weight"] > 0}
        assert ours["without_weight"] == ours["queries"] - len(heavy)
        for name, sign in ((MOST, -1), (LEAST, 1)):
            wanted = listed(rows, sign)
            assert [query["query"] for query in ours[name]] == [row["query"] for row in wanted]
            for query, row in zip(ours[name], wanted, strict=True):
                assert query["batch"] == row["batch"]
                for column in ("weight", "weight_negatives", "positive_similarity"):
                    assert query[column] == pytest.approx(row[column], abs=1e-9)
                negatives = [(n["candidate"], n["negative_weight"], n["similarity"]) for n in query["negatives"]]
                assert [c for c, _, _ in negatives] == [c for c, _, _ in row["negatives"]]
                np.testing.assert_allclose(np.ravel(negatives), np.ravel(row["negatives"]), atol=1e-9)


COUNTED = {
    "pairs": (split, {"objectives": ("ntxent", "triplet", "triplet-sh")}),
    "images": (split, {"objectives": ("supcon", "multi_similarity"), "sampling": "images"}),
    "other unit": (split, {"objectives": ("ntxent",), "probes": ("cocos:unit=relative",)}),
    "released": (split, {"objectives": ("ntxent",), "probes": ("cocos:convention=released",)}),
    "masked": (split, {"objectives": ("ntxent", "triplet"), "masks": ("percent:share=0.9",), "same_image": "mask"}),
    "mined": (passages, {"objectives": ("ntxent",)}),
    "own mined, one": (passages, {"objectives": ("ntxent", "triplet"), "negatives": "own", "mined": 1}),
    "one batch": (split, {"objectives": ("ntxent",), "batch_size": None}),
    "tiles": (split, {"objectives": ("ntxent", "triplet"), "batch_size": None, "engine": "tiled"}),
    "views": (split, {"objectives": ("infonce",), "sampling": "views"}),
}  # fmt: skip


@pytest.mark.parametrize(("source", "options"), COUNTED.values(), ids=COUNTED)
def test_the_whole_list_has_the_counts_of_cocos(source: Callable[[], SplitEmbeddings], options: dict[str, Any]) -> None:
    """The negatives above eps of the full list of a query are its count, and their weights its masses."""
    embedded = source()
    setup = Sweep(**{"probes": ("cocos",), "batch_size": 5, **options}, per_query=True)
    parts: list[pd.DataFrame] = []
    HeaviestNegatives(setup, negatives=100).most_and_least(embedded, 1, on_rows=parts.append)
    rows, counted = pd.concat(parts), setup.run(embedded).queries
    keys = ["objective", "direction", "batch", "batch_row"]
    counted = counted.assign(batch_row=counted.groupby(keys[:3], sort=False).cumcount())
    counted = counted[counted["skipped"] == 0].set_index(keys).sort_index()
    assert len(counted)
    above = rows[rows["negative_weight"] > 0.01]
    for column, number in {
        "count": above.groupby(keys).size(),
        "mass_high": above.groupby(keys)["negative_weight"].sum(),
    }.items():
        np.testing.assert_allclose(number.reindex(counted.index, fill_value=0), counted[column], atol=2e-6)
    one_row = rows.groupby(keys).first().sort_index()
    assert list(one_row.index) == list(counted.index)
    total = counted["mass_high"] + counted["mass_below"]
    if "convention=released" not in setup.probes[0]:  # its masses leave out a weight equal to eps
        np.testing.assert_allclose(one_row["weight_negatives"], total, atol=2e-6)
    np.testing.assert_allclose(one_row["weight_positive"], counted["positive"], atol=2e-6)


def test_several_positives_share_a_weight_as_they_share_a_count() -> None:
    """A negative of smoothap has a weight for each positive; its weight is their sum over the number of positives."""
    embedded = split()
    setup = Sweep(("smoothap:tau=0.1",), ("cocos",), batch_size=5, per_query=True)
    rows = HeaviestNegatives(setup, negatives=100).most_and_least(embedded, N * K)
    rows = rows[rows["list"] == MOST]
    counted = setup.run(embedded).queries.set_index(["direction", "batch", "query"])
    for key, of_query in rows.groupby(["direction", "batch", "query"]):
        row = counted.loc[key]
        assert of_query["negative_weight"].sum() == pytest.approx(row["mass_high"] + row["mass_below"], abs=1e-6)
        assert of_query["share"].sum() == pytest.approx(1)


def test_of_ties_the_lower_row_comes_first_and_the_others_are_counted() -> None:
    vectors = torch.nn.functional.normalize(torch.ones(6, 3, dtype=torch.float64))
    ids = [str(row) for row in range(6)]
    equal = SplitEmbeddings("equal", vectors, vectors, None, np.arange(6), ids, ids, "made")
    rows = HeaviestNegatives(Sweep(("triplet",), batch_size=6, seed=1), negatives=2).most_and_least(equal, 3)
    (first, second) = document(rows)
    for lists in (first[MOST], first[LEAST], second[MOST], second[LEAST]):
        assert [query["query"] for query in lists] == [0, 1, 2]
        assert [[n["candidate"] for n in query["negatives"]] for query in lists] == [[1, 2], [0, 2], [0, 1]]
        assert [query["as_heavy"] for query in lists] == [3, 3, 3]


def test_a_query_stands_where_it_weighs_least() -> None:
    weight, query = np.array([3.0, 1.0, 2.0, 1.0, 1.0]), np.array([7, 7, 4, 9, 5])
    assert first_queries(weight, query, 3).tolist() == [4, 1, 3]
    assert first_queries(weight, query, 9).tolist() == [4, 1, 3, 2]


def test_a_query_without_weight_has_no_negative() -> None:
    vectors = torch.eye(6)
    ids = [str(row) for row in range(6)]
    apart = SplitEmbeddings("apart", vectors, vectors, None, np.arange(6), ids, ids, "made")
    lists = document(HeaviestNegatives(Sweep(("triplet",), batch_size=6)).most_and_least(apart, 2))
    assert [(of["queries"], of["without_weight"]) for of in lists] == [(6, 6), (6, 6)]
    assert all(query["negatives"] == [] and query["weight"] == 0 for query in lists[0][LEAST])


def test_batches_are_read_in_the_same_way_in_tiles_and_whole() -> None:
    setup = Sweep(("ntxent",), batch_size=None, engine="dense")
    whole = HeaviestNegatives(setup).most_and_least(split(), 3)
    tiles = HeaviestNegatives(replace(setup, engine="tiled")).most_and_least(split(), 3)
    pd.testing.assert_frame_equal(whole, tiles, rtol=1e-9)


def test_items_are_named_and_known_positives_are_marked() -> None:
    texts: Pair[Any] = Pair(None, {f"c{row}": f"caption {row}" for row in range(N * K)})
    embedded = replace(split(), read_texts=lambda: texts)
    rows = HeaviestNegatives(sweep("ntxent", batch_size=None)).most_and_least(embedded, N * K)
    forward = rows[(rows["direction"] == "i2t") & (rows["list"] == MOST)]
    assert set(forward["query_text"]) == {None}
    assert (forward["candidate_text"] == "caption " + forward["candidate_id"].str[1:]).all()
    assert (forward["query_id"] == "i" + forward["query"].astype(str)).all()
    assert (forward["known_positive"] == (forward["candidate"] // K == forward["query"])).all()
    assert forward["known_positive"].any()
    back = rows[rows["direction"] == "t2i"]
    assert back["query_text"].notna().all()
    assert (back["known_positive"] == (back["candidate"] == back["query"] // K)).all()


def test_views_are_named_by_the_side_that_they_are_of() -> None:
    setup = sweep("infonce", sampling="views", batch_size=None, captions="first")
    rows = HeaviestNegatives(setup, negatives=100).most_and_least(split(), 2 * N)
    ids = [*split().image_ids, *split().caption_ids]
    assert [ids[row] for row in rows["query"]] == rows["query_id"].tolist()
    assert [ids[row] for row in rows["candidate"]] == rows["candidate_id"].tolist()
    assert {id[0] for id in rows["candidate_id"]} == {"i", "c"}
    assert rows["known_positive"].isna().all()


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Write an audit that lists one pair for each image: with the next image's first caption."""
    ids = tuple(split().image_ids), tuple(split().caption_ids)
    first = np.arange(N)
    probability = np.linspace(0.06, 0.9, N).astype(np.float32)
    KnownPairs(first, (first + 1) % N * K, probability, *ids, status="calibrated by labels").write(
        tmp_path / "mask.npz"
    )
    return tmp_path


def test_an_audit_says_how_probable_each_listed_negative_is(audit: Path) -> None:
    listing = HeaviestNegatives(sweep("ntxent", batch_size=None), audit, negatives=100)
    assert listing.status == "calibrated by labels"
    listing.require_possible(split())
    rows = listing.most_and_least(split(), N * K)
    probability = np.linspace(0.06, 0.9, N).astype(np.float32)
    for row in rows.to_dict("records"):
        pair = (row["query"], row["candidate"]) if row["direction"] == "i2t" else (row["candidate"], row["query"])
        expected = probability[pair[0]] if pair[1] == (pair[0] + 1) % N * K else 0
        assert row["probability"] == expected
    assert (rows["probability"] > 0).any()


def test_what_cannot_be_listed_is_refused(audit: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--show lists queries of whole batches; got a sample"):
        HeaviestNegatives(Sweep(("ntxent",), batch_size=None, queries=4))
    with pytest.raises(InputError, match="--show lists candidates of one side; got further candidates"):
        HeaviestNegatives(Sweep(("ntxent",), terms=("q2q",)))
    with pytest.raises(InputError, match="views"):
        HeaviestNegatives(sweep("infonce", sampling="views"), audit).require_possible(split())
    others = replace(split(), image_ids=[f"x{row}" for row in range(N)])
    with pytest.raises(InputError, match="must be of the items of this split"):
        HeaviestNegatives(sweep("ntxent"), audit).require_possible(others)
    (tmp_path / "ranked").mkdir()
    (tmp_path / "ranked" / "audit.json").write_text('{"state": "ranked only"}')
    with pytest.raises(InputError, match="ranked-only audit"):
        _ = HeaviestNegatives(sweep("ntxent"), tmp_path / "ranked").known


def test_changed_queries_have_the_negatives_of_both_sides() -> None:
    """Each side's negatives are those of the whole list of its sweep, at the batch and row of the largest change."""
    setup = Sweep(("ntxent",), ("cocos",), batch_size=5, per_query=True)
    sides = setup, replace(setup, objectives=("ntxent:tau=0.5",))
    result = PairedSweep(*sides).run(split(), split())
    queries = changed_queries(result, split(), "count", 5)
    listings = HeaviestNegatives(sides[0]), HeaviestNegatives(sides[1])
    negatives = negatives_of_changed(queries, listings, split(), split())
    shown = changed_document(queries, negatives)
    assert len(shown) == 5
    for name, listing in zip(("heaviest", "b_heaviest"), listings, strict=True):
        parts: list[pd.DataFrame] = []
        listing.most_and_least(split(), 1, on_rows=parts.append)
        all_rows = pd.concat(parts)
        for row in shown:
            keys = all_rows["direction"].eq(row["direction"]) & all_rows["batch"].eq(row["batch"])
            expected = all_rows[keys & all_rows["batch_row"].eq(row["batch_row"])]
            assert row[name]["query"] == row["query"] == expected["query"].iloc[0]
            assert [n["candidate"] for n in row[name]["negatives"]] == expected["candidate"].tolist()
            weights = expected["negative_weight"].tolist()  # of other stacks: the last bits depend on the processor
            assert [n["negative_weight"] for n in row[name]["negatives"]] == pytest.approx(weights, rel=1e-12)
    a, b = result.queries
    for row in shown:
        same = a["direction"].eq(row["direction"]) & a["query"].eq(row["query"])
        change = (b.loc[same, "count"] - a.loc[same, "count"]).abs()
        at = change[a.loc[same, "batch"] == row["batch"]]
        assert at.max() == change.max()


def test_a_query_that_a_batch_has_twice_has_a_row_for_each() -> None:
    setup = sweep("ntxent", batch_size=None)
    parts: list[pd.DataFrame] = []
    HeaviestNegatives(setup).most_and_least(split(), 1, on_rows=parts.append)
    rows = pd.concat(parts)
    of_images = rows[rows["direction"] == "i2t"].drop_duplicates(["batch", "batch_row"])
    assert of_images["query"].value_counts().eq(K).all()
    wanted = of_images[["objective", "direction", "batch", "batch_row"]]
    again = HeaviestNegatives(setup).of_queries(split(), wanted.iloc[[3, 7]])
    assert again.drop_duplicates(["batch", "batch_row"])["weight"].tolist() == of_images["weight"].iloc[[3, 7]].tolist()


@each("name", names("objectives"))
def test_every_objective_lists_the_directions_that_cocos_counts(name: str) -> None:
    embedded = split()
    setup = Sweep((name,), ("cocos:unit=cosine",), batch_size=8, per_query=True)
    rows = HeaviestNegatives(setup, negatives=100).most_and_least(embedded, N * K)
    counted = setup.run(embedded).queries
    assert set(rows["direction"]) == set(counted["direction"])
    heavy = rows[(rows["list"] == MOST) & (rows["rank"] > 0)]
    assert len(heavy)
    assert (heavy["negative_weight"] > 0).all()
    shares = heavy.groupby(["direction", "batch", "batch_row"])["share"].sum()
    np.testing.assert_allclose(shares, 1, atol=1e-6)
