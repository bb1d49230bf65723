"""From the command line: a page from studies and runs; what cannot be reported is an error, and writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command_line import lossscope

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
