"""Is `spearman` the correlation of all scored pairs, as sentence-transformers' evaluator of similarities has it?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lossscope.core.request import Request
from lossscope.retrieval.rank_agreement import rank_agreement
from lossscope.sources.base import read_source
from tests.command_line import lossscope
from tests.sources.text_folders import text_encoder, texts_of

N = 60


def write(path: Path, scores: list[float]) -> str:
    queries, documents = texts_of("train")
    rows = [
        {"sentence1": f"{queries[k % 20]} {k % 30}", "sentence2": f"{documents[k % 18]} {k}", "score": score}
        for k, score in enumerate(scores)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def graded() -> list[float]:
    return [round(float(score), 1) for score in np.random.default_rng(0).uniform(0, 5, size=N)]


def test_all_scored_pairs_count_with_equal_ranks_shared(tmp_path: Path) -> None:
    file, scores = write(tmp_path / "sts.jsonl", graded()), graded()
    embedded = read_source(text_encoder(tmp_path / "model"), Request(data=f"texts:file={file}"))
    assert len(embedded.scores) == N and sorted(score for *_, score in embedded.scores) == sorted(scores)
    assert embedded.images is not None and embedded.captions is not None
    rows, columns, values = zip(*embedded.scores, strict=True)
    S = (embedded.images[list(rows)] * embedded.captions[list(columns)]).sum(1).numpy()
    ranks = [np.array([(x < value).sum() + (x == value).sum() / 2 for value in x]) for x in (S, np.array(values))]
    expected = np.corrcoef(ranks)[0, 1]
    assert rank_agreement(embedded) == pytest.approx(expected, abs=1e-6)


def test_eval_shows_it_and_says_how_many_pairs(tmp_path: Path) -> None:
    file, model = write(tmp_path / "sts.jsonl", graded()), str(text_encoder(tmp_path / "model"))
    words = ("eval", model, "--data", f"texts:file={file}")
    document = json.loads(lossscope(*words, "--format", "json").stdout)
    (row,) = [row for row in document["rows"] if row["statistic"] == "spearman"]
    assert (row["direction"], row["n"]) == ("both", N) and -1 <= row["mean"] <= 1
    assert "spearman: Spearman's correlation" in lossscope(*words).stdout


def test_labels_of_two_values_have_none(tmp_path: Path) -> None:
    file, model = write(tmp_path / "labels.jsonl", [float(k % 2) for k in range(N)]), text_encoder(tmp_path / "model")
    assert rank_agreement(read_source(model, Request(data=f"texts:file={file}"))) is None
