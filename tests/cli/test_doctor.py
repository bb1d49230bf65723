"""Does `lossscope doctor` state its findings on one screen, as JSON and as a page, with exit codes and messages?"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from tests.command_line import lossscope
from tests.hostile_names import CONTROLS, IN_FRAMES
from tests.planted import (
    complete_collapse,
    dimensional_collapse,
    diverged,
    duplicates,
    modality_gap,
    no_learning,
    non_finite,
    not_normalised,
    positive_as_negative,
    scale_falling,
    split_leak,
)
from tests.planted.base import SIZES, Case, Plant, curve, dump, healthy_dump, healthy_log, log

SCREEN = 40  # lines
OPTIONS = {"objective": "--objective", "batch_size": "--batch-size", "log": "--log", "against": "--against"}
Words = Callable[[Plant], list[str]]


def doctor(*words: object) -> Result:
    return lossscope("doctor", *words)


def words_of(case: Case) -> list[str]:
    """Return the arguments of a case."""
    options = [(OPTIONS[name], str(value)) for name, value in case.options.items()]
    return [*map(str, case.sources), *(word for option in options for word in option)]


@pytest.fixture
def plant() -> Words:
    """Write a case in a new folder below that of the test; return its arguments."""

    def write(planted: Plant) -> list[str]:
        folder = Path(f"{planted.__module__.rpartition('.')[2]}-{planted.__name__}")
        folder.mkdir()
        return words_of(planted(SIZES[0], folder))

    return write


def lines(result: Result) -> int:
    return len(result.stdout.splitlines())


def test_a_well_dump_is_said_to_be_well(plant: Words) -> None:
    result = doctor(*plant(healthy_dump))
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "recall@1" in text.splitlines()[0] and re.search(r"No problem found in \d+ checks", text)
    assert "error" not in text and re.search(r"\d+ more need: ", text)


def test_what_is_wrong_has_its_number_its_threshold_and_what_to_do(plant: Words) -> None:
    result = doctor(*plant(no_learning.vectors))
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert re.search(r"error +no-learning: nothing has been learnt", text)
    assert "threshold 0.98; healthy 0 to 0.8" in text and " do: " in text and re.search(r"1 error in \d+ checks", text)


@pytest.mark.parametrize(
    ("sick", "fail_on", "code"),
    [
        (no_learning.vectors, "error", 3),
        (no_learning.vectors, "warning", 3),
        (not_normalised.a_share, "error", 0),
        (not_normalised.a_share, "warning", 3),
        (not_normalised.lengths, "warning", 0),
        (modality_gap.gap, "warning", 0),
        (healthy_dump, "warning", 0),
    ],
)
def test_the_exit_code_is_3_where_fail_on_is_met(sick: Plant, fail_on: str, code: int, plant: Words) -> None:
    result = doctor(*plant(sick), "--fail-on", fail_on)
    assert result.exit_code == code, result.output


def test_fail_on_is_met_by_any_of_several_sources(plant: Words) -> None:
    well, sick = plant(healthy_dump)[0], plant(no_learning.vectors)[0]
    assert doctor(well, sick, "--fail-on", "error", "--format", "json").exit_code == 3


def test_a_run_without_a_checkpoint_says_what_was_not_looked_for(tmp_path: Path, tiny_run: Path) -> None:
    (tmp_path / "unfinished" / "checkpoints").mkdir(parents=True)
    shutil.copy(tiny_run / "config.toml", tmp_path / "unfinished")
    result = doctor("unfinished", "--no-cache")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "Too little to judge" in text and "the run has no checkpoint yet" in text


@pytest.mark.usefixtures("blank_pictures")
def test_json_is_one_document_and_nothing_else(plant: Words) -> None:
    result = doctor(*plant(duplicates.embeddings), "--format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0 and document["schema"] == "lossscope.doctor/1"
    assert document["findings"][0]["id"] == "duplicates" and document["source"].endswith("dump.npz")
    page = doctor(document["source"], "--format", "json", "--out", "page")
    assert json.loads(page.stdout)["schema"] == document["schema"] and "page/index.html" in page.stderr


def test_markdown_has_a_heading_for_each_finding(plant: Words) -> None:
    result = doctor(*plant(no_learning.vectors), "--format", "markdown")
    assert result.exit_code == 0 and "\n## error: no-learning\n" in result.stdout
    assert "\n- loss / log B" in result.stdout and "\n1. " in result.stdout and "\nSource: " in result.stdout


EIGHT = (
    no_learning.vectors, complete_collapse.with_objective, dimensional_collapse.two, not_normalised.lengths,
    non_finite.nan_rows, duplicates.texts, positive_as_negative.by_id, modality_gap.gap,
)  # fmt: skip


@pytest.mark.parametrize("sick", EIGHT, ids=lambda sick: sick.__module__)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_source_takes_at_most_one_screen(
    sick: Plant, columns: str, plant: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = doctor(*plant(sick))
    assert result.exit_code == 0 and 2 <= lines(result) <= SCREEN, result.stdout
    assert max(map(len, result.stdout.splitlines())) <= int(columns)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_eight_sick_sources_take_at_most_one_screen(
    columns: str, plant: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    sources = [plant(sick)[0] for sick in EIGHT]
    result = doctor(*sources, "--objective", "ntxent:tau=0.07")
    assert result.exit_code == 0 and lines(result) <= SCREEN, result.stdout
    assert all(source in result.stdout for source in sources)
    assert all(id in result.stdout for id in ("no-learning", "complete-collapse", "non-finite", "positive-as-negative"))


def test_verbose_says_every_number_and_every_reason(plant: Words) -> None:
    words = plant(no_learning.vectors)
    text = doctor(*words, "--verbose").stdout
    assert re.search(r"^  no-learning: 0\.\d+$", text, re.M)
    assert re.search(r"^  gather-without-gradient: not checked, ", text, re.M)
    assert len(text.splitlines()) > lines(doctor(*words))


def test_a_page_names_each_finding_and_has_its_pictures(plant: Words, tmp_path: Path) -> None:
    sources = [plant(sick)[0] for sick in (no_learning.vectors, dimensional_collapse.two, modality_gap.gap)]
    result = doctor(*sources, "--log", plant(diverged.jump)[1], "--batch-size", 64, "--out", "sick")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "sick" / "index.html").read_text(encoding="utf-8")
    for id in ("no-learning", "dimensional-collapse", "modality-gap", "diverged"):
        assert id in page, id
    assert all(re.search(rf"Error: {id}\b", page) for id in ("no-learning", "diverged"))
    figures = {file.stem for file in (tmp_path / "sick" / "figures").glob("*.png")}
    proofs = {"no-learning-pairs-1", "dimensional-collapse-spectrum-2", "modality-gap-pairs-3", "diverged-curve-4"}
    assert proofs <= figures
    assert (tmp_path / "sick" / "csv" / "checks.csv").is_file()


@pytest.mark.usefixtures("blank_pictures")
def test_two_sources_with_one_finding_have_a_page(plant: Words) -> None:
    (first, *_) = plant(no_learning.vectors)
    shutil.copy(first, "again.npz")
    result = doctor(first, "again.npz", "--out", "sick")
    assert result.exit_code == 0, result.output


def test_many_sources_are_cut_at_one_screen(plant: Words) -> None:
    (first, *_) = plant(no_learning.vectors)
    copies = [shutil.copy(first, f"copy{number}.npz") for number in range(24)]
    result = doctor(*copies)
    assert result.exit_code == 0 and lines(result) <= SCREEN and "more lines: -v" in result.stdout
    assert doctor(*copies[:3], "-v").stdout.count("no-learning: nothing") == 3


@pytest.mark.usefixtures("blank_pictures")
def test_a_page_of_a_well_source_says_so(plant: Words, tmp_path: Path) -> None:
    result = doctor(*plant(healthy_log), "--out", "well")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "well" / "index.html").read_text(encoding="utf-8")
    assert "No problem found in" in page and "logged loss" in page and "guessing" in page


def test_a_log_beside_a_source_is_of_its_training(plant: Words) -> None:
    source, of_run = plant(healthy_dump)[0], plant(scale_falling.at_log_b)[1]
    document = json.loads(doctor(source, "--log", of_run, "--batch-size", 64, "--format", "json").stdout)
    assert document["source"] == source and document["findings"][0]["id"] == "scale-falling"
    assert "non-finite" in document["checked"] and "diverged" in document["checked"]


def test_a_log_beside_two_sources_is_one_of_its_own(plant: Words) -> None:
    sources, of_run = [plant(healthy_dump)[0], plant(modality_gap.gap)[0]], plant(diverged.jump)[1]
    document = json.loads(doctor(*sources, "--log", of_run, "--format", "json").stdout)
    assert document["source"] == [*sources, of_run]
    assert {of_run} == {finding["source"] for finding in document["findings"] if finding["severity"] == "error"}


def test_a_column_is_chosen(tmp_path: Path) -> None:
    path = Path(log(tmp_path, loss=curve(SIZES[0], 4.0, 1.0)))
    path.write_text(path.read_text(encoding="utf-8").replace("loss", "my value", 1), encoding="utf-8")
    assert doctor("--log", path).exit_code == 1
    result = doctor("--log", path, "--column", "loss=my value", "--fail-on", "warning")
    assert result.exit_code == 0, result.output


def test_data_is_examined_without_a_model(plant: Words) -> None:
    assert doctor(*plant(duplicates.rows), "--fail-on", "warning").exit_code == 3
    shared = doctor(*plant(split_leak.rows), "--format", "json")
    assert json.loads(shared.stdout)["findings"][0]["id"] == "split-leak"
    (file,) = plant(positive_as_negative.rows)
    spec = json.loads(doctor(f"texts:file={file}", "--format", "json").stdout)
    assert spec["findings"][0]["id"] == "positive-as-negative" and spec["source"] == f"texts:file={file}"


def test_a_run_is_examined_with_its_curves(tiny_run: Path) -> None:
    document = json.loads(doctor(tiny_run, "--format", "json", "--no-cache").stdout)
    assert {"diverged", "frozen", "split-leak"} <= {*document["checked"]}
    assert document["objective"] and document["source"] == str(tiny_run)


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("format", ["table", "markdown", "json"])
def test_names_of_others_cannot_steer_the_terminal(format: str, tmp_path: Path) -> None:
    texts = np.array([IN_FRAMES[row % 2 + 5] for row in range(600)])
    ids = np.array([f"{row} {IN_FRAMES[row % len(IN_FRAMES)]}" for row in range(600)])
    case = duplicates.texts(SIZES[0], tmp_path)
    arrays = dict(np.load(str(case.sources[0]))) | {"document_text": texts, "document_id": ids, "query_id": ids}
    path = tmp_path / "a\x1b[31m\u202e.npz"
    shutil.move(dump(tmp_path, "hostile.npz", **arrays), path)
    result = doctor(path, "--format", format, "--verbose", "--out", "page")
    assert result.exit_code == 0, result.output
    assert not set(result.stdout.replace("\n", "")) & set(CONTROLS)
    assert not set(result.stderr.replace("\n", "").replace("\r", "")) & set(CONTROLS)
    assert "duplicates" in result.stdout


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_texts_of_rows_cannot_steer_the_terminal(format: str, tmp_path: Path) -> None:
    row = {"query": f"what {IN_FRAMES[5]}", "positive": f"that {IN_FRAMES[6]}", "negative": f"that {IN_FRAMES[6]}"}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(row)] * 20) + "\n", encoding="utf-8")
    result = doctor(path, "--format", format)
    assert result.exit_code == 0 and not set(result.output.replace("\n", "")) & set(CONTROLS)


def test_columns_of_a_log_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text('step,"\x1b[31mvalue"\n1,2\n2,3\n', encoding="utf-8")
    for words in (["--log", path], ["--log", path, "--column", "loss=\x1b]0;a\x07"]):
        result = doctor(*words)
        assert result.exit_code == 1 and not set(result.output.replace("\n", "")) & set(CONTROLS)
