"""Does lint read a file, a folder and a spec as its kind?"""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.datasets.lint.suite import LintReport, lint
from lossscope.datasets.lint.targets import lint_sources
from tests.datasets.test_beir import write as write_beir
from tests.datasets.test_saved import ROWS, write_splits


def counts(report: LintReport) -> dict[str, int]:
    return {finding.id: finding.count for finding in report.findings}


def test_a_folder_of_beir_is_its_splits(tmp_path: Path) -> None:
    root = write_beir(tmp_path)
    assert list(lint_sources(str(root))) == ["train", "val", "test"]
    report = lint(lint_sources(f"beir:root={root},run={root}/bm25.run"))
    assert (report.rows, counts(report)) == (4, {"split-leak": 2})


def test_a_saved_data_set_is_its_splits(tmp_path: Path) -> None:
    report = lint(lint_sources(str(write_splits(tmp_path, train=ROWS, validation=ROWS[7:9]))))
    assert (report.rows, counts(report)) == (2502, {"split-leak": 2})
    assert {row.file.rpartition("/")[2] for row in report.findings[0].examples} == {"data-00000-of-00001.arrow"}


def test_a_cut_file_leaks_no_query(tmp_path: Path) -> None:
    rows = [{"query": f"{'Q' if n % 2 else 'q'}{n // 2}", "positive": f"p{n}"} for n in range(500)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources = lint_sources(f"texts:file={tmp_path}/a.jsonl,val_share=0.1")
    report = lint(sources)
    assert (list(sources), report.rows, counts(report)) == (["train", "val", "test"], 500, {})


def test_a_file_that_nobody_cut_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"query": "q{n}", "positive": "p{n}"}}\n' for n in range(50)))
    target = f"texts:file={tmp_path}/a.jsonl"
    sources = lint_sources(target)
    assert (list(sources), lint(sources).rows) == ([target], 50)


def test_a_path_with_the_name_of_a_data_set_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"query": "q", "positives": []}\n')
    assert counts(lint(lint_sources(str(folder)))) == {"no-positive": 1}
