"""Is docs/conformance.md what its script makes, and does it still list the findings in released libraries?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import make_conformance
import pandas as pd
import pytest
from console_lines import lines_of

from tests.conformance.planted_steps import FOUND_BY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
ROWS = make_conformance.read_results()


def libraries() -> object:
    """Import the script of the study."""
    spec = importlib.util.spec_from_file_location("libraries", ROOT / "studies" / "conformance" / "libraries.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["libraries"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_makes() -> None:
    """test_console_lines.py runs its line, so its output is left out here."""
    shown = next(line.output for line in lines_of(make_conformance.PAGE) if line.output)
    assert make_conformance.page(make_conformance.SOURCE.read_text(encoding="utf-8"), shown) == PAGE, "run `make docs`"


@pytest.mark.thorough
def test_the_script_runs_the_line_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_conformance.main(["--check"]) == 0, capsys.readouterr().out


def test_every_bug_and_every_check_has_its_row() -> None:
    for name, check in FOUND_BY.items():
        assert any(f"`{name}`" in line and line.endswith(f"| `{check}` |") for line in PAGE.splitlines()), name
    checks = {file.stem.replace("_", "-") for file in make_conformance.CHECKS.glob("*.py")} - {"--init--"}
    assert all(f"\n| `{check}` | " in PAGE for check in checks)


def test_every_trainer_was_run_on_one_process_and_on_two() -> None:
    study = libraries()
    runs = {trainer for trainer, _ in study.RUNS}  # type: ignore[attr-defined]
    assert set(ROWS["trainer"]) == runs
    assert (ROWS.groupby("trainer")["processes"].nunique() == 2).all()


def failures(trainer: str, processes: int) -> set[str]:
    checks = ROWS[(ROWS["trainer"] == trainer) & (ROWS["processes"] == processes)]
    return set(checks.loc[checks["outcome"] == "fail", "check"])


def test_what_the_page_says_of_libraries_is_in_its_results() -> None:
    st, pml, clip = "sentence_transformers", "pytorch_metric_learning", "open_clip"
    failing = {trainer for trainer in ROWS["trainer"] if failures(trainer, 1) or failures(trainer, 2)}
    assert failing == {
        f"{st}:loss=GISTEmbedLoss", f"{st}:loss=CachedGISTEmbedLoss",
        f"{pml}:efficient=true", f"{pml}:one_set=true,efficient=true", f"{pml}:loss=TripletMarginLoss,efficient=true",
        clip, f"{clip}:local_loss=true",
    }  # fmt: skip
    assert {check for trainer in failing if "GIST" in trainer for check in failures(trainer, 1)} == {
        "mask-hits-curated-negatives"
    }
    assert all(failures(trainer, 2) == {"gather-without-gradient"} for trainer in failing if "GIST" not in trainer)
    cached = ROWS[ROWS["plain"] != ""]
    assert len(cached) and not (cached["check"] == "cached-gradient-differs").any()
    evidence = ROWS.loc[(ROWS["trainer"] == clip) & (ROWS["outcome"] == "fail"), "evidence"].item()
    assert "0.5 times (queries), 0.5 times (candidates), 1 times (logit_scale)" in evidence


@pytest.mark.parametrize(
    "trainer",
    [pytest.param("sentence_transformers", marks=pytest.mark.thorough), "pytorch_metric_learning:efficient=true"],
)
def test_a_row_is_what_the_library_gives_today(trainer: str) -> None:
    package = {"sentence_transformers": "sentence-transformers"}.get(trainer, "pytorch-metric-learning")
    version = importlib.metadata.version(package)
    if version not in set(ROWS.loc[ROWS["trainer"] == trainer, "version"]):
        pytest.skip(f"the page is of another version than {version}")
    found = pd.DataFrame(libraries().rows(trainer, None, 2, version))  # type: ignore[attr-defined]
    stored = ROWS[(ROWS["trainer"] == trainer) & (ROWS["processes"] == 2)]
    assert found[["check", "outcome"]].to_numpy().tolist() == stored[["check", "outcome"]].to_numpy().tolist()
