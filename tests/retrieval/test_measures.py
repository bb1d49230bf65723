"""Are nDCG, MRR, recall, MAP@R and R-precision those of sorted lists, ir-measures and pytorch-metric-learning?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType

import ir_measures
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, Qrel, R, Rprec, ScoredDoc, Success, nDCG

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.retrieval import metrics
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.measures import NEVER, measures
from lossscope.retrieval.per_query import per_query
from tests.each import each
from tests.retrieval.random_sides import Kind, labelled, queries, texts

Oracle = Callable[[str], ModuleType]
CUTOFFS = (1, 3, 10, 1000)
KINDS: tuple[Kind, ...] = ("vectors", "matrix", "scorer")
MAKERS = {"texts": texts, "labelled": labelled}


def directions(source: SplitEmbeddings) -> list[tuple[str, str]]:
    """Return (name, i2t or t2i) of the directions of a source."""
    return list(zip(source.sides.labels, ("i2t", "t2i"), strict=False))


@each("levels", [None, 1, 0], "kind", KINDS, "maker", MAKERS)
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), tile=st.integers(3, 50))
def test_every_query_has_the_measures_of_its_sorted_list(
    maker: str, kind: Kind, levels: int | None, seed: int, tile: int, oracle: Oracle
) -> None:
    """Few levels make nearly all scores ties, level 0 makes all: earlier rows are first among equals."""
    source, slow = MAKERS[maker](seed, kind, levels), oracle("ranked_lists")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lossscope.engine.blocks.matrix.ROWS", tile)
        patch.setattr("lossscope.engine.blocks.matrix.COLUMNS", tile)
        patch.setattr(metrics, "_rows_per_tile", lambda columns: tile)
        rows = per_query(source, cutoffs=CUTOFFS).set_index(["direction", "query"])
    for label, direction in directions(source):
        expected = {
            name: slow.measures(*query[:2], CUTOFFS, query[2]) for name, query in queries(source, direction).items()
        }
        direction_rows = rows.loc[label]
        assert direction_rows.index.tolist() == list(expected)
        frame = pd.DataFrame.from_dict(expected, orient="index")
        pd.testing.assert_frame_equal(direction_rows[list(frame)], frame, check_names=False, rtol=1e-12)


@each("maker", MAKERS, "levels", [None, 1])
def test_queries_with_very_many_positives_are_ranked_alike(
    maker: str, levels: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [MAKERS[maker](seed, "vectors", levels) for seed in range(4)]
    counted = [per_query(source) for source in sources]
    monkeypatch.setattr(metrics, "_MOST_COUNTED", 2)
    for source, expected in zip(sources, counted, strict=True):
        pd.testing.assert_frame_equal(per_query(source), expected)


@each("maker", MAKERS)
def test_summaries_are_means_over_queries_and_count_ties(maker: str, oracle: Oracle) -> None:
    slow = oracle("ranked_lists")
    for levels in (None, 1):
        source = MAKERS[maker](7, levels=levels)
        rows, summary = per_query(source), evaluate([source])
        for label, direction in directions(source):
            direction_means = summary[summary["direction"] == label].set_index("statistic")
            of_queries = rows[rows["direction"] == label]
            for name in (
                *(f"{m}@{k}" for m in ("nDCG", "MRR", "recall", "R") for k in (5, 10)),
                "MAP@R",
                "R-precision",
            ):
                assert direction_means.loc[name, "mean"] == pytest.approx(of_queries[name].mean(), rel=1e-12)
            assert direction_means.loc["mAP@5", "mean"] == pytest.approx(of_queries["ap5"].mean())
            mixed = [slow.mixed_ties(*query) for query in queries(source, direction).values()]
            assert direction_means.loc["ties_any", "mean"] == sum(mixed)
            assert (direction_means["n"] == len(mixed)).all()
            assert (direction_means.loc["ties_any", "mean"] > 0) == (levels == 1)
            assert direction_means["unit"].to_dict() == {
                name: "%" if name.startswith(("R@", "recall@")) else "rank" if name in ("medr", "meanr")
                else "queries" if name.startswith("ties") else "1" for name in direction_means.index
            }  # fmt: skip
        assert "rsum" not in set(summary["statistic"])
        assert "mAP@5_hits" not in set(summary["statistic"])


def test_one_query_by_hand() -> None:
    """Positives have ranks 2, 3 and 7 of 9, and a fourth has no score; R = 4."""
    values = measures(np.array([1]), np.array([[1, 2, 6, NEVER]]), np.array([4]), (1, 5, 10))
    gains = {rank: 1 / np.log2(rank + 1) for rank in range(1, 11)}
    ideal = gains[1] + gains[2] + gains[3] + gains[4]
    assert {name: float(value[0]) for name, value in values.items()} == pytest.approx({
        "R@1": 0, "R@5": 100, "R@10": 100, "recall@1": 0, "recall@5": 50, "recall@10": 75,
        "nDCG@5": (gains[2] + gains[3]) / ideal, "nDCG@10": (gains[2] + gains[3] + gains[7]) / ideal,
        "MRR@5": 1 / 2, "MRR@10": 1 / 2, "MAP@R": (1 / 2 + 2 / 3) / 4, "R-precision": 2 / 4,
    })  # fmt: skip


def test_a_perfect_ranking_has_one_everywhere_and_no_score_has_zero() -> None:
    ranks, relevant = np.array([[0, 1, 2], [NEVER] * 3]), np.array([3, 3])
    for name, (perfect, none) in measures(np.array([0, 8]), ranks, relevant, (5,)).items():
        assert (perfect, none) == (100.0 if name.startswith(("R@", "recall@")) else 1.0, 0.0)


@each("cutoffs", [(0,), (5, -1)])
def test_a_cut_off_below_one_is_refused(cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="cut-offs k must be at least 1; got"):
        evaluate([texts(0)], cutoffs=cutoffs)


def judge(source: SplitEmbeddings, direction: str) -> tuple[list[Qrel], list[ScoredDoc]]:
    """Return judgements and scores of every query; candidates are named so that later rows have smaller names.

    trec_eval ranks equal scores by the name of the document, the largest first: with these names, by row.
    """
    qrels, run = [], []
    for name, (scores, positives, itself) in queries(source, direction).items():
        documents = [f"{len(scores) - column:05d}" for column in range(len(scores))]
        qrels += [Qrel(name, documents[column], 1) for column in positives]
        run += [
            ScoredDoc(name, documents[column], float(score)) for column, score in enumerate(scores) if column != itself
        ]
    return qrels, run


@each("levels", [None, 1], "maker", MAKERS, "seed", range(5))
def test_measures_are_those_of_ir_measures(seed: int, maker: str, levels: int | None) -> None:
    """Ties are included: the names of the documents turn trec_eval's rule among equals into ours.

    R@k has another rule (the best positive is first among equals), and RR@k is not computed by trec_eval but by
    MS MARCO's script, which takes the smallest name: Success@k and RR@k are compared without ties only, and with ties
    RR, without a cut-off.
    """
    source = MAKERS[maker](seed, levels=levels)
    rows = per_query(source, cutoffs=CUTOFFS).set_index(["direction", "query"])
    theirs = {
        **{f"recall@{k}": (R @ k, 100) for k in CUTOFFS},
        **{f"nDCG@{k}": (nDCG @ k, 1) for k in CUTOFFS[1:]},
        "MRR@1000": (RR, 1),
        "R-precision": (Rprec, 1),
    }
    if levels is None:
        theirs |= {f"R@{k}": (Success @ k, 100) for k in CUTOFFS} | {f"MRR@{k}": (RR @ k, 1) for k in CUTOFFS[1:]}
    for label, direction in directions(source):
        qrels, run = judge(source, direction)
        sizes = rows.loc[label, "relevant"]
        at_R = {
            f"MAP@R {size}": (AP @ size, 1) for size in sizes.unique().tolist()
        }  # its divisor is the number of positives
        for name, (measure, unit) in {**theirs, **at_R}.items():
            values = {value.query_id: unit * value.value for value in ir_measures.iter_calc([measure], qrels, run)}
            ours = rows.loc[label][name.partition(" ")[0]]
            if name.startswith("MAP@R"):
                ours = ours[sizes == int(name.split()[1])]
            assert {query: values[query] for query in ours.index} == pytest.approx(ours.to_dict()), name


@each("seed", range(5))
def test_map_at_r_and_r_precision_are_those_of_pytorch_metric_learning(seed: int) -> None:
    """Items that are alone in their class are no queries in either library."""
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    from pytorch_metric_learning.utils.inference import CustomKNN

    source = labelled(seed, n=60)
    assert source.images is not None and source.relations.labels is not None
    names = ("mean_average_precision_at_r", "r_precision", "precision_at_1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calculator = AccuracyCalculator(names, k=59, device=torch.device("cpu"), knn_func=CustomKNN(CosineSimilarity()))
        theirs = calculator.get_accuracy(source.images, torch.from_numpy(source.relations.labels))
    ours = evaluate([source]).set_index("statistic")["mean"]
    assert ours["ties_any"] == 0
    assert (ours["MAP@R"], ours["R-precision"], ours["R@1"] / 100) == pytest.approx([theirs[name] for name in names])
