"""Are the measures of a TREC run those of trec_eval, and is a query without a line or a positive counted and named?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.io.trec_files import is_run
from lossscope.retrieval.trec_eval import judge_run, summarise_run
from tests.command_line import lossscope, message, plain, rows_of
from tests.each import each

KNOWN = json.loads((Path(__file__).parents[1] / "data" / "trec_eval.json").read_text())
"""Lines of a run and of judgements with negative grades, ties, and scores that differ beyond float32; and what
ir-measures 0.4.3 (pytrec_eval-terrier 0.5.11) gives for each query."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write the run and the judgements."""
    for name in ("run", "qrels"):
        (tmp_path / f"{name}.txt").write_text("\n".join(KNOWN[name]) + "\n")
    return tmp_path / "run.txt", tmp_path / "qrels.txt"


def test_every_query_has_the_numbers_of_ir_measures(files: tuple[Path, Path]) -> None:
    judged = judge_run(*files, cutoffs=(3, 10, 100))
    rows = judged.per_query.set_index("query")
    assert set(rows.index) == set(KNOWN["expected"])
    for query, expected in KNOWN["expected"].items():
        for name, value in expected.items():
            scale = 100 if name.startswith(("R@", "recall@")) else 1
            assert rows.loc[query, name] == pytest.approx(scale * value, abs=1e-12), (query, name)
    assert judged.notices == (
        f"1 judged queries have no line in {files[0]}, and count as 0",
        "1 judged queries have no positive, and count as 0",
    )


def test_the_summary_is_the_mean_over_the_judged_queries(files: tuple[Path, Path]) -> None:
    judged = judge_run(*files)
    rows = summarise_run(files[0], judged).set_index("statistic")
    assert rows.loc["MAP", "mean"] == pytest.approx(np.mean([row["MAP"] for row in KNOWN["expected"].values()]))
    assert set(rows["n"]) == {6} and set(rows["direction"]) == {"q2d"}


def test_the_command_prints_the_means_and_the_notices(files: tuple[Path, Path]) -> None:
    shown = lossscope("eval", files[0], "--judgements", files[1], "--format", "json")
    rows = {row["statistic"]: row["mean"] for row in rows_of(shown)}
    assert rows["nDCG@10"] == pytest.approx(np.mean([row["nDCG@10"] for row in KNOWN["expected"].values()]))
    assert "Note: 1 judged queries have no line in" in message(shown)
    table = plain(lossscope("eval", files[0], "--judgements", files[1]).stdout)
    assert "Equal scores rank by descending document id" in table


@each("options, says", [
    ((), "is a TREC run, and needs the judgements of its queries"),
    (("--judgements", "qrels.txt", "--judged-only"), "--judged-only must be left out for TREC runs"),
])  # fmt: skip
def test_options_that_a_run_cannot_have_are_refused(
    options: tuple[str, ...], says: str, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files[0].parent)
    shown = lossscope("eval", "run.txt", *options)
    assert shown.exit_code and says in f"{message(shown)} {shown.exception}"


@each("line, says", [
    ("q9 Q0 d1 1 0.5 tag", r"must rank documents of queries of .*qrels\.txt; none of its 1 queries is among those 6"),
    ("q1 Q0 d1 1 0.5 tag\nq1 Q0 d1 2 0.4 tag", "must rank a document once per query; line 2 has 'd1' again for 'q1'"),
    ("q1 Q0 d1 1 x tag", "score in line 1 of .* must be a number"),
])  # fmt: skip
def test_a_run_that_is_damaged_is_named(line: str, says: str, files: tuple[Path, Path]) -> None:
    files[0].write_text(f"{line}\n")
    with pytest.raises(InputError, match=says):
        judge_run(*files)


@each("name, content", [
    ("run", ""), ("run", "\n\n"), ("run", "\ufeff"), ("run", "{}"), ("qrels", ""), ("qrels", "\n"), ("qrels", "{}"),
    ("qrels", "query-id\tcorpus-id\tscore\n"),
])  # fmt: skip
def test_a_run_or_judgements_without_a_line_are_refused(name: str, content: str, tmp_path: Path) -> None:
    """The message was of queries: none of 0 is among those 6."""
    files = {other: tmp_path / f"{other}.txt" for other in ("run", "qrels")}
    for other, path in files.items():
        path.write_text("\n".join(KNOWN[other]) + "\n")
    files[name] = tmp_path / f"empty{'.json' if content == '{}' else '.txt'}"
    files[name].write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"empty\..* must have (ranked documents|judgements); it has none"):
        judge_run(*files.values())
    shown = lossscope("eval", files["run"], "--judgements", files["qrels"])
    assert shown.exit_code == 1 and ("it has none" in message(shown) or "it is empty" in message(shown))


@each("text, expected", [("q Q0 d 1 0.5 tag\n", True), ("q Q0 d 1 x tag\n", False), ("q 0 d 1\n", False), ("", False)])
def test_a_run_is_known_by_its_first_line(text: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    assert is_run(tmp_path / "a") == expected
    assert not is_run(tmp_path)


def test_json_of_other_programs_is_read_as_the_lines_are(files: tuple[Path, Path]) -> None:
    """BEIR, pytrec_eval and ranx have query -> document -> score; MTEB has it by subset and split."""
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for line in KNOWN["run"]:
        query, _, document, _, score, _ = line.split()
        run.setdefault(query, {})[document] = float(score)
    for line in KNOWN["qrels"]:
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    folder, expected = files[0].parent, judge_run(*files).per_query
    predictions: Any = {"mteb_model_meta": {"model_name": "m"}, "default": {"test": run}}
    for name, content in (("run", run), ("qrels", qrels), ("predictions", predictions)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    for name in ("run.json", "predictions.json"):
        assert is_run(folder / name)
        assert judge_run(folder / name, folder / "qrels.json").per_query.equals(expected)
    predictions["default"]["dev"] = run
    (folder / "predictions.json").write_text(json.dumps(predictions))
    with pytest.raises(InputError, match="must have predictions of one split; it has default test, default dev"):
        judge_run(folder / "predictions.json", folder / "qrels.json")


@each("content, says", [
    ({"q1": {"d1": "x"}}, "'d1' of 'q1' in .* must be query -> document -> number; got 'x'"),
    ({"q1": [1]}, "'q1' of .* must be an object"),
])  # fmt: skip
def test_json_of_another_form_is_named(content: Any, says: str, files: tuple[Path, Path]) -> None:
    (files[0].parent / "run.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=says):
        judge_run(files[0].parent / "run.json", files[1])


def test_results_of_mteb_are_refused_with_what_works(tmp_path: Path) -> None:
    result = {"dataset_revision": "1", "task_name": "SciFact", "mteb_version": "2.0", "scores": {"test": []}}
    (tmp_path / "SciFact.json").write_text(json.dumps(result))
    for path in (tmp_path, tmp_path / "SciFact.json"):
        assert "lossscope eval predictions/TASK_predictions.json --judgements QRELS" in message(lossscope("eval", path))
