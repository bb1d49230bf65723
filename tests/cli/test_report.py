"""From the command line: a page from studies and runs; what cannot be reported is an error, and writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command_line import lossscope, plain

pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_study: Path, tiny_run: Path) -> None:
    """A finished study, and a run folder that was not evaluated."""
    shutil.copytree(tiny_study, tmp_path / "study")
    shutil.copytree(tiny_run, tmp_path / "alone")


def test_a_study_and_a_run_become_a_page() -> None:
    words = "report study alone --out page --title Mine --resamples 99 --split val --device cpu"
    result = lossscope(words)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.strip() == "page/index.html"
    assert "Open the page in a browser:" in result.stderr
    listing = json.loads(Path("page/index.json").read_text(encoding="utf-8"))
    assert listing["title"] == "Mine" and listing["provenance"]["command"].startswith("lossscope report study alone")
    manifest = json.loads(Path("alone/evaluation/manifest.json").read_text(encoding="utf-8"))
    assert (manifest["config"]["split"], manifest["config"]["test"]) == ("val", "test")
    assert {path.name for path in Path("page").iterdir()} == {
        "index.html", "index.json", "latex", "csv", "figures", "numbers",
    }  # fmt: skip


def test_what_was_ranked_on_another_split_is_in_no_table_with_it() -> None:
    result = lossscope("report study alone --out page --test val --resamples 99 --device cpu")
    assert result.exit_code == 1 and not Path("page").exists()
    assert "got test split (runs scenes--vse" in result.stderr and "val split (run alone)" in result.stderr


def test_quiet_says_the_page_alone() -> None:
    result = lossscope("report study --resamples 99 --quiet")
    assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "report/index.html", "")


@pytest.mark.parametrize(
    ("words", "code", "fragment"),
    [
        ("report", 2, "Missing argument"),
        ("report gone", 1, "gone must be the folder of a study or of a run; it has neither study.json nor config.toml"),
        ("report study --out file", 1, "file must be a folder; it is a file. Choose another --out"),
        ("report study --out file/below", 1, "must be a folder that can be written"),
        ("report study --out mine", 1, "mine must be new, empty, or an earlier report; it holds other files"),
        ("report study study", 1, "names of runs must differ; got"),
        ("report study --resamples 5", 2, "greater than or equal to 99"),
        ("report study --device tpu", 2, "--device must be auto, cpu, cuda"),
        ("report broken", 1, "study.json must be whole JSON"),
        ("report waiting", 1, "at least one run must be done; got"),
    ],
)
def test_what_cannot_be_reported_is_an_error(words: str, code: int, fragment: str) -> None:
    Path("file").write_text("mine", encoding="utf-8")
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine", encoding="utf-8")
    Path("broken").mkdir()
    Path("broken/study.json").write_text('{"schema": ', encoding="utf-8")
    shutil.copytree("study", "waiting")
    for status in Path("waiting").glob("runs/*/status.json"):
        status.unlink()
    result = lossscope(words)
    assert result.exit_code == code, result.output
    assert fragment in plain(result.stderr)
    assert result.stdout == "" and not Path("report").exists()
    assert Path("mine/notes.txt").read_text(encoding="utf-8") == Path("file").read_text(encoding="utf-8") == "mine"


def test_every_picture_and_table_of_a_report_can_be_made_of_its_numbers(tiny_report: Path) -> None:
    """`plot --help` and `table --help` promised csv/, of whose files none worked."""
    shutil.copytree(tiny_report.parent, "report")
    listing = json.loads(Path("report/index.json").read_text(encoding="utf-8"))
    written = {path.stem for path in Path("report/numbers").iterdir()}
    assert written == {"rows", "comparisons", *listing["plots"]} and len(listing["plots"]) > 5
    remade = {path.stem for path in Path("report/figures").iterdir()} - set(listing["plots"])
    assert remade == {"fields"}  # weights of losses, which `lossscope diagram` makes
    for name, plot in listing["plots"].items():
        result = lossscope(f"plot {plot} report/numbers/{name}.parquet -o {name}.png")
        assert result.exit_code == 0, result.stderr
        assert Path(f"{name}.png").stat().st_size > 10_000
    for table, rows in {"retrieval": "rows", "cocos_softmax": "rows", "comparison": "comparisons"}.items():
        result = lossscope(f"table {table} report/numbers/{rows}.parquet --format csv")
        assert result.exit_code == 0, result.stderr
        assert "Triplet" in result.stdout or "NT-Xent" in result.stdout or "ntxent" in result.stdout
    for words, named in (("plot tangent", "tangent-1"), ("table retrieval", "rows")):
        result = lossscope(f"{words} report/csv/geometry.csv")
        assert result.exit_code == 1
        assert f"Files in csv/ are tables as a report shows them; give one of report/numbers/{named}" in result.stderr
