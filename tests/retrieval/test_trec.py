"""Do run files and qrels, read by an independent reader, give the numbers of `evaluate`?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_RUNS
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.trec import write_run_files
from tests.each import each

Run = dict[str, list[tuple[str, int, float]]]
FILES = ["i2t.qrels", "i2t.run", "t2i.qrels", "t2i.run"]


def make_source(levels: int | None = None, images: int = 30, captions: int = 70) -> SplitEmbeddings:
    """Return a source of images with captions or none, in random order; few `levels` make ties."""
    rng = np.random.default_rng(3)
    owner = rng.integers(0, images, captions)
    v = rng.normal(size=(images, 8))
    t = v[owner] + rng.normal(size=(captions, 8))
    sides = [torch.from_numpy(x).float() for x in (v, t)]
    v, t = ((x * (levels or 1)).round() for x in sides) if levels else map(normalise, sides)
    ids = [f"image {i}" for i in range(images)], [f"{c}%é" for c in range(captions)]
    return SplitEmbeddings("x", v, t, None, owner, *ids, "f")


def read(folder: Path, direction: str) -> tuple[Run, dict[str, set[str]]]:
    """Return query -> (document, rank, score) in file order, and query -> relevant documents."""
    run: Run = defaultdict(list)
    for line in (folder / f"{direction}.run").read_text(encoding="ascii").splitlines():
        query, q0, document, rank, score, tag = line.split(" ")
        assert (q0, tag) == ("Q0", r'"our\u0020tag"')
        run[IN_RUNS.read(query)].append((IN_RUNS.read(document), int(rank), float(score)))
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in (folder / f"{direction}.qrels").read_text(encoding="ascii").splitlines():
        query, zero, document, grade = line.split(" ")
        assert (zero, grade) == ("0", "1")
        relevant[IN_RUNS.read(query)].add(IN_RUNS.read(document))
    return run, relevant


def ranks(run: Run, relevant: dict[str, set[str]]) -> list[float]:
    """Count the documents that score above the best relevant document; infinite where the file has no relevant one."""
    counts = []
    for query, documents in relevant.items():
        best = max((score for document, _, score in run[query] if document in documents), default=None)
        counts.append(np.inf if best is None else sum(score > best for _, _, score in run[query]))
    return counts


@each("levels", [None, 2])
def test_recalls_and_mrr_of_the_files_are_those_of_evaluate(tmp_path: Path, levels: int | None) -> None:
    source = make_source(levels)
    assert sorted(p.name for p in write_run_files(source, tmp_path / "new", None, "our tag")) == FILES
    reported = evaluate([source]).set_index(["direction", "statistic"])["mean"]
    for direction in ("i2t", "t2i"):
        run, relevant = read(tmp_path / "new", direction)
        counts = np.array(ranks(run, relevant))
        assert len(relevant) == len(run)
        for k in (1, 5, 10):
            assert 100 * (counts < k).mean() == pytest.approx(reported[direction, f"R@{k}"])
        assert (1 / (counts + 1)).mean() == pytest.approx(reported[direction, "MRR"])


def test_a_run_is_sorted_and_ties_keep_the_order_of_rows(tmp_path: Path) -> None:
    source = make_source(2)
    write_run_files(source, tmp_path, None, "our tag")
    run, _ = read(tmp_path, "t2i")
    positions = {f"image {i}": i for i in range(30)}
    assert set(run) == {f"{c}%é" for c in range(70)}
    tied = 0
    for rows in run.values():
        assert [rank for _, rank, _ in rows] == list(range(1, 31))
        keys = [(-score, positions[document]) for document, _, score in rows]
        assert keys == sorted(keys)
        tied += len(keys) - len({score for score, _ in keys})
    assert tied > 0


def test_scores_are_printed_with_all_their_digits(tmp_path: Path) -> None:
    source = make_source()
    write_run_files(source, tmp_path, None, "our tag")
    assert source.images is not None
    assert source.captions is not None
    S = (source.images @ source.captions.T).numpy()
    run, _ = read(tmp_path, "i2t")
    rows = [int(query.split()[1]) for query in run]
    assert rows == sorted(set(source.caption_image.tolist()))
    for row, lines in zip(rows, run.values(), strict=True):
        ordered = sorted((float(document.partition("%")[0]), score) for document, _, score in lines)
        np.testing.assert_allclose([score for _, score in ordered], S[row], rtol=1e-5, atol=1e-6)


@each("block", [1, 64, 10_000])
def test_the_size_of_blocks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    source = make_source(2)
    write_run_files(source, tmp_path / "whole")
    monkeypatch.setattr("lossscope.retrieval.trec._BLOCK_ENTRIES", block)
    write_run_files(source, tmp_path / "parts")
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_progress_counts_the_queries_of_each_direction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.retrieval.trec._BLOCK_ENTRIES", 700)
    said: list[tuple[str, int, int]] = []
    source = make_source()
    write_run_files(source, tmp_path / "runs", progress=lambda *step: said.append(step))
    queries = len(np.unique(source.caption_image))
    assert said == [("i2t.run of x", start, queries) for start in range(0, queries, 10)] + [
        ("t2i.run of x", start, 70) for start in range(0, 70, 23)
    ]


def test_top_keeps_the_best_and_unscored_pairs_are_left_out(tmp_path: Path) -> None:
    i2t = torch.tensor([[0.1, torch.nan, 0.3], [torch.nan, 0.2, 0.1]])
    t2i = torch.tensor([[0.5, 0.1], [torch.nan, torch.nan], [0.2, 0.3]])
    base = make_source(None, 2, 3)
    owner = np.array([0, 0, 1])
    scorer = lambda images, captions: Pair(i2t[images][:, captions], t2i[captions][:, images])  # noqa: E731
    source = replace(base, images=None, captions=None, pair_scorer=scorer, caption_image=owner)
    write_run_files(source, tmp_path, 2, "our tag")
    run, relevant = read(tmp_path, "i2t")
    assert run["image 0"] == [("2%é", 1, pytest.approx(0.3)), ("0%é", 2, pytest.approx(0.1))]
    assert relevant["image 0"] == {"0%é", "1%é"}
    run, relevant = read(tmp_path, "t2i")
    assert [len(run[query]) for query in relevant] == [2, 0, 2]


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    broken = replace(make_source(), images=None, captions=None, similarity=torch.full((30, 70), torch.nan))
    with pytest.raises(InputError, match="must be numbers; got NaN"):
        write_run_files(broken, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_invalid_ids_top_and_folder_are_refused(tmp_path: Path) -> None:
    source = make_source()
    with pytest.raises(InputError, match="top must be at least 1; got 0"):
        write_run_files(source, tmp_path, 0)
    with pytest.raises(InputError, match="image ids of x must be unique"):
        write_run_files(replace(source, image_ids=["a"] * 30), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder for run files; it is a file"):
        write_run_files(source, tmp_path / "file")
