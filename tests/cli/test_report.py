"""Does `lossscope report` write a page from studies and runs, and nothing where it refuses?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command_line import lossscope, rows_of

pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_study: Path, tiny_run: Path) -> None:
    """Copy a finished study, and a run folder without an evaluation."""
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


def test_embeddings_alone_become_a_page(tmp_path: Path) -> None:
    """`report a.npz b.npz` was refused: embeddings had no page."""
    random = np.random.default_rng(0)
    queries = random.normal(size=(30, 6))
    for name, noise in (("a", 0.2), ("b", 0.8)):
        np.savez(tmp_path / f"{name}.npz", queries=queries, documents=queries + noise * random.normal(size=(30, 6)))
    result = lossscope("report a.npz b.npz --out page --title Mine --columns R@1,C_neg,s_pos")
    assert (result.exit_code, result.stdout.strip()) == (0, "page/index.html"), result.stderr
    listing = json.loads(Path("page/index.json").read_text(encoding="utf-8"))
    assert listing["title"] == "Mine" and listing["provenance"]["command"] == "lossscope report a.npz b.npz"
    assert [part["title"] for part in listing["sections"]][:4] == [
        "How well does it retrieve?", "Which samples carry the gradient?", "Which samples",
        "Are positives and negatives apart?",
    ]  # fmt: skip
    assert any(finding["text"].startswith("Note (b.npz): ") for finding in listing["findings"])
    rows = pd.read_parquet("page/numbers/rows.parquet").set_index(["source", "direction", "statistic"])["mean"]
    evaluated = rows_of(lossscope("eval a.npz b.npz --format json"))
    assert len(evaluated) > 20
    for row in evaluated:
        assert rows[row["source"], row["direction"], row["statistic"]] == row["mean"]
    words = "cocos a.npz b.npz --objective triplet --objective triplet-sh --objective ntxent --unit relative"
    counted = pd.DataFrame(rows_of(lossscope(f"{words} --format json")))
    written = pd.read_parquet("page/numbers/rows.parquet").query("probe == 'cocos'")
    assert sorted(counted["mean"]) == sorted(written["mean"]) and set(written["weight_unit"]) == {"relative"}
    assert lossscope("plot eps-curve page/numbers/eps-curve.parquet -o curve.png").exit_code == 0


def test_a_model_that_lossscope_did_not_train_has_a_page_too() -> None:
    shutil.copy("alone/best.pt", "model.pt")
    result = lossscope("report model.pt --split val --test val --device cpu --quiet")
    assert (result.exit_code, result.stdout.strip()) == (0, "report/index.html"), result.stderr
    rows = pd.read_parquet("report/numbers/rows.parquet")
    counted = rows[rows["probe"] == "cocos"]
    assert set(counted["objective"]) == {"ntxent:tau=0.1"} and set(counted["weight_unit"]) == {"paper"}
    recalls = rows[rows["probe"] == "recall"].set_index(["direction", "statistic"])["mean"]
    evaluated = rows_of(lossscope("eval model.pt --split val --format json"))
    assert all(recalls[row["direction"], row["statistic"]] == row["mean"] for row in evaluated)


def test_what_was_ranked_on_another_split_is_in_no_table_with_it() -> None:
    result = lossscope("report study alone --out page --test val --resamples 99 --device cpu")
    assert result.exit_code == 1 and not Path("page").exists()
    assert "got test split (runs scenes--vse" in result.stderr and "val split (run alone)" in result.stderr


def test_quiet_says_the_page_alone() -> None:
    result = lossscope("report study --resamples 99 --quiet")
    assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "report/index.html", "")


def test_every_picture_and_table_of_a_report_can_be_made_of_its_numbers(tiny_report: Path) -> None:
    """`plot --help` and `table --help` promised csv/, but none of its files worked."""
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
