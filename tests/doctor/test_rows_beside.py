"""Does a model with a data file get checks of the file's rows as they are, beside the model's checks?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lossscope
from lossscope.core.facts import Missing
from lossscope.doctor._text_rows import worst_of
from lossscope.doctor.base import Evidence, Finding
from lossscope.doctor.examination.checks import Examination
from lossscope.sources.text_encoder import TextEncoderFolder
from tests.sources.text_folders import text_encoder

ROWS = (
    "positive-as-negative",
    "no-positive",
    "empty-text",
    "short-text",
    "duplicates",
    "near-copies",
    "near-duplicates",
    "long-text",
)


def rows_file(folder: Path, share: float, name: str = "train.jsonl", words: str = "answer") -> str:
    """Write rows; a share of them has the positive among its negatives."""
    path, lines = folder / name, []
    for n in range(60):
        text = f"the {words} of a number that is {n}"
        negative = text if n < share * 60 else f"another text with the number {n}"
        lines.append({"query": f"which {words} has the number {n}", "positive": text, "negative": negative})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a folder of a text encoder with random weights."""
    pytest.importorskip("transformers")
    folder = text_encoder(tmp_path)
    assert TextEncoderFolder.accepts(folder)
    return folder


def examine(*sources: Any, **options: Any) -> Examination:
    (found,) = lossscope.doctor(*sources, cache=False, **options).examinations
    return found


def finding(found: Examination, id: str) -> Finding | None:
    return next((finding for finding in (*found.findings, *found.folded) if finding.id == id), None)


def test_the_rows_are_those_of_the_file_and_not_of_its_reader(model: Path, tmp_path: Path) -> None:
    """A reader drops positives from the negatives; the doctor said "4 as it has no rows of text"."""
    file = rows_file(tmp_path, 0.25)
    beside = finding(examine(model, data=f"texts:file={file}"), "positive-as-negative")
    alone = finding(examine(file), "positive-as-negative")
    assert beside is not None and alone is not None
    assert beside.evidence == alone.evidence and beside.evidence[0].value == 0.25
    assert f"15 of 60 rows of texts:file={file}" in beside.why and beside.examples == alone.examples


def test_sound_rows_are_looked_at_and_have_no_finding(model: Path, tmp_path: Path) -> None:
    found = examine(model, data=f"texts:file={rows_file(tmp_path, 0)}")
    assert {*ROWS} <= {*found.checked} and not {*ROWS} & {finding.id for finding in (*found.findings, *found.folded)}


def test_rows_of_files_for_each_split_are_those_of_the_split(model: Path, tmp_path: Path) -> None:
    sick, well = rows_file(tmp_path, 0.5), rows_file(tmp_path, 0, "test.jsonl", "reply")
    spec = f"texts:file={sick},test={well}"
    assert finding(examine(model, data=spec, split="train"), "positive-as-negative") is not None
    assert finding(examine(model, data=spec, split="test"), "positive-as-negative") is None


def test_rows_of_the_training_data_leak(model: Path, tmp_path: Path) -> None:
    train, other = rows_file(tmp_path, 0), rows_file(tmp_path, 0, "test.jsonl", "reply")
    leak = finding(examine(model, data=f"texts:file={train}", against=train), "split-leak")
    assert leak is not None and leak.evidence[0].value == 1
    found = examine(model, data=f"texts:file={other}", against=train)
    assert "split-leak" in found.checked and finding(found, "split-leak") is None


def test_a_model_of_pictures_has_no_rows_of_text(tiny_run: Path) -> None:
    reasons = examine(tiny_run).reasons
    assert reasons["no-positive"] == "its data set has no text rows"


def test_rows_that_are_gone_are_said(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lossscope.doctor.examination import rows_beside
    from lossscope.errors import InputError

    def damaged(*_: Any, **__: Any) -> Any:
        raise InputError("line 3 of rows must be whole JSON")

    monkeypatch.setattr(rows_beside, "lint", damaged)
    spec = f"texts:file={rows_file(tmp_path, 0)}"
    found = examine(model, data=spec)
    assert found.reasons["no-positive"].endswith("cannot be read: line 3 of rows must be whole JSON")
    assert f"the rows of {spec} were not checked: line 3 of rows must be whole JSON" in found.notices


def of_value(value: float, threshold: float) -> Finding:
    return Finding("a", "error", "a", "a", (Evidence("a", value, threshold, (0, 1)),), (), "a test")


def missing(reason: str) -> Callable[[], Finding | None]:
    def look() -> Finding | None:
        raise Missing(reason)

    return look


def test_of_two_parts_the_worse_is_reported() -> None:
    mild, bad = of_value(0.5, 0.25), of_value(0.02, 0.001)
    assert worst_of(lambda: mild, lambda: bad) is bad is worst_of(lambda: bad, lambda: mild)
    assert worst_of(lambda: None, lambda: mild) is mild is worst_of(missing("no"), lambda: mild)
    assert worst_of(missing("no"), lambda: None) is None
    with pytest.raises(Missing) as error:
        worst_of(missing("first"), missing("second"))
    assert error.value.reason == "first"


def test_rows_that_were_not_compared_are_a_notice(tmp_path: Path) -> None:
    text = "the people of this town have lived beside the river for more than a hundred years"
    rows = [{"query": f"q{n}", "positive": f"In {n} words: {n} said that {text}"} for n in range(40)]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    (notice,) = [notice for notice in examine(str(file)).notices if "near-duplicates" in notice]
    assert notice.startswith("near-duplicates: 40 positives share")
