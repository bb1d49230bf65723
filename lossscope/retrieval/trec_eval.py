"""How well does a ranking that is in a TREC run file retrieve, by judgements in a qrels file? As trec_eval counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.sides import QUERY_DOCUMENT, sides_entry
from lossscope.datasets.formats.beir_files import read_judgements, require_rows
from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_RUNS
from lossscope.io.frames import SUMMARY
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path
from lossscope.io.trec_files import iter_run

from .measures import CUTOFFS, require_cutoffs

Gains = npt.NDArray[np.float64]
Judged = Mapping[str, Mapping[str, float]]  # query -> document -> grade


@dataclass(frozen=True)
class JudgedRun:
    """Measures of every judged query, and what the user should know of them."""

    per_query: pd.DataFrame  # a row per query of the qrels, columns `query` and those of `measures_of`
    notices: tuple[str, ...]


def judge_run(run: Path | str, qrels: Path | str, cutoffs: Sequence[int] | None = None) -> JudgedRun:
    """Return the measures of a run for each query of the judgements.

    A query without a line in the run, or without a positive, counts as 0, as in ir-measures.

    Args:
        run: file of lines `query Q0 document rank score tag`; ranks are those of the scores, best first, in float32,
            and of equal ones by descending document id, as trec_eval has them.
        qrels: file of lines `query 0 document grade`; a grade above 0 is a positive.
        cutoffs: k; 1, 5 and 10 unless given.

    Raises:
        InputError: a line that cannot be read, a document twice for a query, a file without any, or no query in both.
    """
    ks = require_cutoffs(CUTOFFS if cutoffs is None else cutoffs)
    judged: Judged = {
        query: {document: grade for document, (grade, _) in documents.items()}
        for query, documents in read_judgements(str(qrels)).items()
    }
    ranked = _read_run(run)
    both = judged.keys() & ranked.keys()
    if not both:
        raise InputError(
            f"{show_path(run)} must rank documents of queries of {show_path(qrels)}; none of its {len(ranked)} queries "
            f"is among those {len(judged)}, such as {shorten(next(iter(judged), None))}"
        )
    rows = [
        {"query": query} | measures_of(_grades(ranked.get(query, {}), documents), documents, ks)
        for query, documents in judged.items()
    ]
    counted = {
        f"judged queries have no line in {show_path(run)}, and count as 0": len(judged) - len(both),
        "judged queries have no positive, and count as 0": sum(max(d.values()) <= 0 for d in judged.values()),
        f"queries of {show_path(run)} are not judged, and do not count": len(ranked) - len(both),
    }
    notices = tuple(f"{number} {what}" for what, number in counted.items() if number)
    return JudgedRun(pd.DataFrame(rows), notices)


def measures_of(grades: Gains, judged: Mapping[str, float], cutoffs: Sequence[int]) -> dict[str, float]:
    """Return the measures of one query, g_r being the grade at place r.

    - nDCG@k = Σ_{r ≤ k} g_r / log2(r + 1), divided by the same sum of the best order (trec_eval's ndcg_cut).
    - MRR@k = 1 / place of the first positive, 0 behind place k.
    - MAP = 1/P · Σ over positives of the precision at their places, P the number of positives (trec_eval's map).
    - recall@k, R@k (any positive) and R-precision are those of `measures.measures`.

    Args:
        grades: (n,) of the ranked documents, 0 where a document is not judged.
        judged: document -> grade.
        cutoffs: k.
    """
    ideal = np.sort([max(grade, 0.0) for grade in judged.values()])[::-1]
    positives, hits = int((ideal > 0).sum()), np.flatnonzero(grades > 0) + 1  # places from 1
    values: dict[str, float] = {}
    number = max(positives, 1)
    for k in cutoffs:
        values[f"R@{k}"] = 100.0 * bool((hits <= k).any())
    for k in cutoffs:
        values[f"recall@{k}"] = 100.0 * int((hits <= k).sum()) / number
    for k in (k for k in cutoffs if k > 1):
        values[f"nDCG@{k}"] = _discounted(grades[:k]) / _discounted(ideal[:k]) if positives else 0.0
        values[f"MRR@{k}"] = float(1 / hits[0]) if len(hits) and hits[0] <= k else 0.0
    values["MAP"] = float((np.arange(1, len(hits) + 1) / hits).sum() / number)
    values["R-precision"] = int((hits <= positives).sum()) / number
    return values


def summarise_run(run: Path | str, judged: JudgedRun) -> pd.DataFrame:
    """Return summary rows (probe `recall`): the mean of each measure over the judged queries."""
    means, n = judged.per_query.drop(columns="query").mean(), len(judged.per_query)
    rows = [
        {
            "source": show_path(run), "direction": QUERY_DOCUMENT.labels[0], "probe": "recall", "statistic": name,
            "mean": float(value), "std": np.nan, "n": n, "n_defined": n,
            "unit": "%" if str(name).startswith(("R@", "recall@")) else "1", **sides_entry(QUERY_DOCUMENT),
        }
        for name, value in means.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*SUMMARY, *sides_entry(QUERY_DOCUMENT)])


def _read_run(run: Path | str) -> dict[str, dict[str, float]]:
    """Return query -> document -> score. Raises InputError for a document twice, by its line, and for no document."""
    ranked: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in iter_run(str(run)):
        documents = ranked[entry.query]
        if entry.document in documents:
            got = f"{shorten(entry.document)} again for {shorten(entry.query)}"
            raise InputError(f"{show_path(run)} must rank a document once per query; line {entry.line} has {got}")
        documents[entry.document] = entry.score
    require_rows(str(run), ranked, "ranked documents")
    return dict(ranked)


def _grades(ranked: Mapping[str, float], judged: Mapping[str, float]) -> Gains:
    """Return the grades of ranked documents in their order, at least 0."""
    order = sorted(ranked, key=IN_RUNS.write, reverse=True)  # words of the file that are equal in score descend
    order.sort(key=lambda document: -np.float32(ranked[document]))  # trec_eval has scores in this precision
    return np.array([max(judged.get(document, 0.0), 0.0) for document in order], np.float64)


def _discounted(grades: Gains) -> float:
    return float((grades / np.log2(np.arange(2, len(grades) + 2))).sum())
