"""Runs in lines and in JSON, and their judgements, as `lossscope eval` reads them."""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.io.trec_files import is_run
from lossscope.retrieval.trec_eval import judge_run

FILES = {"run.txt": "text", "run.json": "json", "qrels.txt": "text", "qrels.json": "json"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a run of six queries and its judgements, in both forms."""
    run = {f"q{query}": {f"d{rank}": 1 / (rank + 2) for rank in range(5)} for query in range(6)}
    qrels = {query: {"d1": 2, "d3": 0, "d9": 1} for query in run}
    lines = [f"{q} Q0 {d} {n} {s} t" for q, ranked in run.items() for n, (d, s) in enumerate(ranked.items())]
    (folder / "run.txt").write_text("\n".join(lines) + "\n")
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, ds in qrels.items() for d, g in ds.items()))
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "qrels.json").write_text(json.dumps(qrels))


def read(folder: Path) -> object:
    """Judge both runs, and say whether they are known as runs."""
    read = []
    for run, qrels in (("run.txt", "qrels.txt"), ("run.json", "qrels.json")):
        judged = judge_run(folder / run, folder / qrels)
        read.append((is_run(folder / run), judged.per_query.to_dict("list"), judged.notices))
    return read
