"""docs/performance.md is what its script makes of the benchmarks' words and results; scripts run at small sizes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SMALL = {
    "paper_sweep": ("--pairs", "500", "--width", "32", "--repeats", "1"),
    "recall": ("--images", "60", "--slice", "10", "--width", "64", "--repeats", "1"),
    "what_if": ("--size", "2100", "--width", "16", "--repeats", "1"),
    "all_pairs": ("--size", "2100", "--width", "16"),
}


@pytest.fixture(name="maker", scope="module")
def load_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_performance", ROOT / "docs" / "make_performance.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="home")
def small_home(maker: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two benchmarks, one of which has been run, and a module that they share."""
    (tmp_path / "results").mkdir()
    main = '\n\nif __name__ == "__main__":\n    pass\n'
    (tmp_path / "fast.py").write_text(f'"""Fast * `a*b`.\n\nMore of it.\n"""{main}', encoding="utf-8")
    (tmp_path / "slow.py").write_text(f'"""Slow."""{main}', encoding="utf-8")
    (tmp_path / "shared.py").write_text('"""What both need."""\n', encoding="utf-8")
    (tmp_path / "results" / "fast.txt").write_text("\na  1 \nb  2\n\n", encoding="utf-8")
    (tmp_path / "results" / "fast-h100.txt").write_text("a  3\n", encoding="utf-8")
    monkeypatch.setattr(maker, "HOME", tmp_path)
    return tmp_path


def test_the_page_is_what_the_script_makes(maker: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert maker.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_results_follow_what_the_script_says_of_itself(maker: ModuleType, home: Path) -> None:
    found = maker.section("fast")
    told = "`benchmarks/fast.py`: Fast \\* `a*b`.\n\nMore of it."
    assert found == f"{told}\n\n```text\na  1\nb  2\n```\n\n```text\na  3\n```"


def test_what_was_not_run_is_not_measured(maker: ModuleType, home: Path) -> None:
    page = maker.page("# A\n\n<!-- slow -->\n\n<!-- fast -->\n\nend\n")
    assert page.startswith(f"{maker.NOTE}# A\n\n`benchmarks/slow.py`: Slow.\n\nnot measured\n\n`benchmarks/fast.py`: ")
    assert page.endswith("```\n\nend\n")


@pytest.mark.parametrize("places", ["<!-- fast -->\n", "<!-- fast -->\n<!-- slow -->\n<!-- shared -->\n"])
def test_every_script_has_one_place(places: str, maker: ModuleType, home: Path) -> None:
    with pytest.raises(ValueError, match=r"performance\.in\.md must have one place for each of fast, slow; got fast"):
        maker.page(places)


def test_a_page_that_differs_is_refused_with_a_diff(
    maker: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    monkeypatch.setattr(maker, "PAGE", page)
    assert maker.main(["--check"]) == 1
    assert maker.main([]) == 0
    assert maker.main(["--check"]) == 0
    capsys.readouterr()
    page.write_text(page.read_text(encoding="utf-8").replace("# How fast it is", "# Fast"), encoding="utf-8")
    assert maker.main(["--check"]) == 1
    assert "-# Fast\n+# How fast it is\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs_at_a_small_size_and_prints_a_table(name: str, tmp_path: Path) -> None:
    """Each asserts on its way that what it compares is equal."""
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *SMALL[name]]
    own = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=own)
    assert done.returncode == 0, done.stderr
    head, _, table = done.stdout.partition("\n\n")
    widths = {len(line) for line in table.splitlines()}
    assert "torch" in head and len(table.splitlines()) >= 2 and len(widths) == 1
