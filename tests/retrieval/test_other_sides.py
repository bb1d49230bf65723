"""Are queries and documents, and a labelled set, evaluated as images and captions, under their names?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY
from lossscope.retrieval.evaluate import evaluate, metric_values
from lossscope.retrieval.per_query import COLUMNS, per_query
from lossscope.retrieval.trec import write_run_files
from lossscope.tables import retrieval as table
from tests.each import each
from tests.retrieval.random_sides import labelled, queries, texts

FURTHER = ["recall@1", "recall@5", "recall@10", "nDCG@5", "nDCG@10", "MRR@5", "MRR@10", "MAP@R", "R-precision"]


def images_and_captions(seed: int = 0) -> SplitEmbeddings:
    rng = np.random.default_rng(seed)
    v, t = (normalise(torch.from_numpy(rng.normal(size=(n, 6)))) for n in (12, 30))
    ids = [f"i{row}" for row in range(12)], [f"c{row}" for row in range(30)]
    return SplitEmbeddings("x", v, t, None, rng.integers(0, 12, 30), *ids, "f")


def rename_sides(source: SplitEmbeddings, sides: Sides) -> SplitEmbeddings:
    """Return images and captions under other names."""
    relations = replace(source.relations, sides=sides)
    return replace(source, caption_image=None, relations=relations)


def test_the_same_items_under_other_names_have_the_same_numbers() -> None:
    source = images_and_captions()
    published, other = (evaluate([split]) for split in (source, rename_sides(source, QUERY_DOCUMENT)))
    assert list(other.columns) == [*SUMMARY, "sides"] and list(published.columns) == list(SUMMARY)
    expected = published.set_index(["direction", "statistic"])["mean"]
    numbers = other.set_index(["direction", "statistic"])["mean"]
    for ours, theirs in (("i2t", "q2d"), ("t2i", "d2q")):
        for name in ("R@1", "R@5", "R@10", "medr", "meanr", "MRR", "mAP@5", "ties"):
            assert expected[ours, name] == numbers[theirs, name]
    assert set(other["direction"]) == {"q2d", "d2q"}
    assert set(evaluate([rename_sides(source, Sides("view 1", "view 2"))])["direction"]) == {"a2b", "b2a"}


def test_images_and_captions_have_further_measures_only_with_cut_offs() -> None:
    source = images_and_captions()
    plain, more = evaluate([source]), evaluate([source], cutoffs=(1, 5, 10))
    keys = ["direction", "statistic"]
    shared = more.merge(plain[keys], on=keys)[list(plain)]
    pd.testing.assert_frame_equal(
        shared.sort_values(keys, ignore_index=True), plain.sort_values(keys, ignore_index=True)
    )
    extra = set(more["statistic"]) - set(plain["statistic"])
    assert extra == {*FURTHER, "ties_any"}
    other = evaluate([rename_sides(source, QUERY_DOCUMENT)]).set_index(keys)["mean"]
    for name in FURTHER:
        assert more.set_index(keys)["mean"]["t2i", name] == other["d2q", name]
    assert tuple(per_query(source)) == COLUMNS
    assert list(per_query(source, cutoffs=(5,))) == [
        *COLUMNS,
        "R@5",
        "recall@5",
        "nDCG@5",
        "MRR@5",
        "MAP@R",
        "R-precision",
    ]
    assert len(evaluate([rename_sides(source, Sides())], folds=3, cutoffs=(5,))) > len(evaluate([source], folds=3))


@each("kind", ["vectors", "matrix", "scorer"])
def test_one_set_has_one_direction_and_no_item_finds_itself(kind: str) -> None:
    source = labelled(3, kind)  # type: ignore[arg-type]
    rows = per_query(source)
    labels = source.relations.labels
    assert labels is not None
    sizes = {label: int((labels == label).sum()) for label in labels}
    with_others = [f"x{row}" for row, label in enumerate(labels) if sizes[label] > 1]
    assert rows["query"].tolist() == with_others and set(rows["direction"]) == {"all"}
    assert rows["relevant"].tolist() == [sizes[label] - 1 for label in labels if sizes[label] > 1]
    assert rows["rank"].max() <= len(labels) - 2
    assert list(rows) == [*(name for name in COLUMNS if name != "image"), "R@1", "R@5", "R@10", *FURTHER]
    summary = evaluate([source])
    assert set(summary["direction"]) == {"all"} and set(summary["n"]) == {len(with_others)}


def test_queries_are_the_items_with_a_positive_in_the_order_of_rows() -> None:
    source = texts(5)
    rows = per_query(source)
    for label, direction in (("q2d", "i2t"), ("d2q", "t2i")):
        direction_rows, expected = rows[rows["direction"] == label], queries(source, direction)
        assert direction_rows["query"].tolist() == list(expected)
        assert direction_rows["relevant"].tolist() == [len(positives) for _, positives, _ in expected.values()]
        assert len(expected) < (25 if label == "q2d" else 40)


def test_validation_has_the_metrics_of_the_summary() -> None:
    for source in (texts(1), labelled(1)):
        rows = (np.arange(len(source.image_ids)), np.arange(len(source.caption_ids)))
        values = metric_values(source.similarities(*rows), source.relations)
        summary = evaluate([source])
        names = summary["direction"] + "_" + summary["statistic"]
        assert values == pytest.approx(dict(zip(names, summary["mean"], strict=True)))
    assert "all_MAP@R" in values


def test_validation_of_images_and_captions_takes_relations_or_rows() -> None:
    source = images_and_captions()
    S = source.similarity_block(np.arange(12), np.arange(30))
    assert metric_values(Pair(S, S.T), source.relations) == metric_values(Pair(S, S.T), source.relations.caption_image)


def test_a_mean_of_similarities_is_ranked_for_any_sides() -> None:
    for maker in (texts, labelled):
        source, matrix = maker(4), maker(4, "matrix")
        rows = evaluate([source, replace(matrix, name="y")])
        assert set(rows["source"]) == {"mean of x, y"}
        pd.testing.assert_series_equal(rows["mean"], evaluate([source])["mean"])
        assert set(rows["direction"]) == set(source.sides.labels)


def test_an_ensemble_with_other_positives_or_labels_is_refused() -> None:
    source, items = texts(2), labelled(2)
    fewer = replace(source, relations=replace(source.relations, positives=source.relations.positives[1:]))
    assert items.relations.labels is not None
    relabelled = replace(items, relations=Relations.of_labels(items.relations.labels[::-1].copy(), "item"))
    for first, second in ((source, fewer), (items, relabelled), (source, renamed_sides(source))):
        with pytest.raises(InputError, match="must hold the same items; x and x differ"):
            evaluate([first, second])


def renamed_sides(source: SplitEmbeddings) -> SplitEmbeddings:
    return replace(source, relations=replace(source.relations, sides=Sides("user", "item")))


@each("source, names", [(texts(0), "queries and documents"), (labelled(0), "items")])
def test_folds_are_of_images_and_captions(source: SplitEmbeddings, names: str) -> None:
    with pytest.raises(InputError, match=f"--folds cuts images with their captions; x has {names}. Leave it out"):
        evaluate([source], folds=5)


def test_a_split_without_a_positive_is_refused() -> None:
    none = np.zeros((0, 2), np.int64)
    source = texts(0)
    with pytest.raises(InputError, match="retrieval needs queries with a positive; got none"):
        evaluate([replace(source, relations=replace(source.relations, positives=none))])
    with pytest.raises(InputError, match="retrieval needs items with a positive; got none"):
        evaluate([replace(labelled(0), relations=Relations.of_labels(np.arange(30), "item"))])


@each("side, field", [("query", "image_ids"), ("document", "caption_ids")])
def test_repeated_ids_are_refused_by_the_name_of_their_side(side: str, field: str, tmp_path: Path) -> None:
    source = texts(0)
    repeated = replace(source, **{field: ["a"] * len(getattr(source, field))})
    for evaluation in (per_query, lambda split: write_run_files(split, tmp_path)):
        with pytest.raises(InputError, match=f"{side} ids of x must be unique"):
            evaluation(repeated)


def test_run_files_are_named_after_the_directions(tmp_path: Path) -> None:
    written = write_run_files(texts(3), tmp_path / "texts", None)
    assert [path.name for path in written] == ["q2d.run", "q2d.qrels", "d2q.run", "d2q.qrels"]
    assert [path.name for path in write_run_files(labelled(3), tmp_path / "set", None)] == ["all.run", "all.qrels"]


@each("levels", [None, 1], "kind", ["vectors", "matrix", "scorer"])
def test_run_files_say_what_was_ranked(tmp_path: Path, kind: str, levels: int | None) -> None:
    import ir_measures
    from ir_measures import NumRel, NumRet, Rprec

    for source in (texts(8, kind, levels), labelled(8, kind, levels)):  # type: ignore[arg-type]
        write_run_files(source, tmp_path, None)
        rows = per_query(source)
        for label in source.sides.labels:
            qrels = list(ir_measures.read_trec_qrels(str(tmp_path / f"{label}.qrels")))
            run = list(ir_measures.read_trec_run(str(tmp_path / f"{label}.run")))
            direction_rows = rows[rows["direction"] == label].set_index("query")
            totals = ir_measures.calc_aggregate([NumRel, NumRet, Rprec], qrels, run)
            candidates = len(source.image_ids if label == "d2q" else source.caption_ids) - (label == "all")
            assert (totals[NumRel], totals[NumRet]) == (
                direction_rows["relevant"].sum(),
                candidates * len(direction_rows),
            )
            order = [judgement.query_id for judgement in qrels]
            assert list(dict.fromkeys(order)) == direction_rows.index.tolist()
            if levels is None:
                assert totals[Rprec] == pytest.approx(direction_rows["R-precision"].mean())


def test_an_item_is_not_a_document_of_itself(tmp_path: Path) -> None:
    write_run_files(labelled(3), tmp_path, None)
    for line in (tmp_path / "all.run").read_text().splitlines():
        query, _, document, *_ = line.split()
        assert query != document


def test_the_table_has_the_measures_of_each_direction() -> None:
    shown = table.build(evaluate([texts(0)]))
    names = ["nDCG@10", "MRR@10", "recall@10", "R@1", "MAP@R", "R-precision", "medr"]
    assert [heading for heading in shown.headings if heading[:3] in ("q2d", "d2q")] == [
        f"{label} {name}" for label in ("q2d", "d2q") for name in names
    ]
    assert shown.caption.startswith("Retrieval in both directions: ") and "discount log2" in shown.notes[0]
    shown_labels = table.build(evaluate([labelled(0)], cutoffs=(2, 4)))
    assert (
        "all nDCG@4" in shown_labels.headings
        and "all R@2" in shown_labels.headings
        and "all nDCG@2" not in shown_labels.headings
    )
    assert shown_labels.caption.startswith("Retrieval: ")
    assert len(shown_labels.notes) == 1 and "rsum" not in shown_labels.to_text()


def test_the_table_of_images_and_captions_shows_further_measures_where_they_were_computed() -> None:
    source = images_and_captions()
    plain, more = (table.build(evaluate([source], cutoffs=cutoffs)) for cutoffs in (None, (1, 10)))
    assert set(plain.headings) < set(more.headings)
    assert "t2i MAP@R" in more.headings and len(more.headings) == len(set(more.headings))
    assert (len(plain.notes), len(more.notes)) == (1, 2)
