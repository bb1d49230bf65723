"""Does a file in the current folder, which anybody may have made, run code or change what a command writes?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.core.parent_process import SAFE_PATH
from lossscope.plots import style
from lossscope.registry import build
from lossscope.studies.launchers.base import command
from tests.each import each
from tests.waiting import wait_until

MODULES = (
    "lossscope_cli", "lossscope", "torch", "json", "numpy", "sitecustomize", "usercustomize", "submitit", "typing",
    "matplotlib", "pandas", "typer", "encodings",
)  # fmt: skip
LISTED = ["list", "objectives"]
AS_MODULE = ["-m", "lossscope_cli"]
SETTINGS = """text.usetex: True
text.latex.preamble: \\immediate\\write18{touch ran}
backend: module://evil
lines.linewidth: 9
xtick.major.size: 20
axes.grid: True
font.family: serif
savefig.bbox: tight
nonsense: 1
"""
HEAVY: Mapping[str, object] = {
    "lines.linewidth": 9, "xtick.major.size": 20, "xtick.minor.visible": True, "axes.grid": True, "font.size": 20,
    "legend.fontsize": 20, "savefig.bbox": "tight", "text.usetex": True, "path.sketch": (1, 100, 2),
}  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder of modules that leave a file when they are imported; return that file."""
    trace = tmp_path / "trace"
    (tmp_path / "here").mkdir()
    for name in MODULES:
        code = f"open({str(trace)!r}, 'a').write({name!r})\nraise SystemExit({name!r})\n"
        (tmp_path / "here" / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv(SAFE_PATH, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return trace


def script(name: str) -> str:
    """Return the path of an installed command."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is not installed beside Python")
    return found


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    whole = {**os.environ, **environment}
    return subprocess.run(words, env=whole, capture_output=True, text=True, check=False, timeout=120)


def test_no_module_of_the_current_folder_is_imported(hostile: Path) -> None:
    """`python -m lossscope_cli` ran a lossscope_cli.py of the current folder, where the page said that it did not."""
    torchrun = [script("torchrun"), "--standalone", "--nproc-per-node=1", *AS_MODULE]
    for words, environment in (
        ([script("lossscope"), *LISTED], {}),
        ([sys.executable, "-P", *AS_MODULE, *LISTED], {}),
        ([sys.executable, "-P", *AS_MODULE, "check", "ntxent"], {}),  # by two processes
        (command(LISTED), {}),  # as a worker of a study
        ([*torchrun, *LISTED], {SAFE_PATH: "1"}),
    ):
        done = run(*words, **environment)
        assert not hostile.exists(), (words, hostile.read_text(encoding="utf-8"))
        assert done.returncode == 0, (words, done.stderr)


@each("spec", ["local:jobs=1", "torchrun:processes=1", "slurm:cluster=local,gpus=0,cpus=1,minutes=5"])
def test_no_launcher_imports_a_module_of_the_current_folder(spec: str, hostile: Path, tmp_path: Path) -> None:
    """submitit started `python -m`, which searched it."""
    if spec.startswith("slurm"):
        pytest.importorskip("submitit")
    job = build("launchers", spec).start(LISTED, tmp_path / "log" / "log.txt")
    assert wait_until(lambda: job.poll() is not None, 120)
    assert not hostile.exists(), hostile.read_text(encoding="utf-8")
    assert job.poll() == 0, job.last()
    assert SAFE_PATH not in os.environ


def test_python_itself_runs_what_the_page_says_it_does(hostile: Path) -> None:
    """docs/security.md says that lossscope cannot help this case; if the test fails, the page is out of date."""
    assert run(sys.executable, *AS_MODULE, *LISTED).returncode and hostile.read_text(encoding="utf-8")


@each("lines", [["python", "-m", "lossscope_cli"], ["torchrun", "--nproc"]])
def test_pages_and_messages_start_python_safely(lines: Sequence[str]) -> None:
    root = Path(__file__).parents[2]
    files = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("lossscope/**/*.py"), *root.glob("cli/*.py")]
    text = " ".join(lines)
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            told = text in line and file.name not in ("security.md", "__main__.py", "_start.py")
            assert not told or f"{SAFE_PATH}=1 {text}" in line, f"{file}:{number}: {line}"


def draw_in(folder: Path) -> bytes:
    """Return the picture that a command draws in a folder."""
    words = [script("lossscope"), "diagram", "--triplet", "nca", "-o", "a.svg"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return (folder / "a.svg").read_bytes()


def test_a_matplotlibrc_of_the_current_folder_is_not_read(tmp_path: Path) -> None:
    """text.usetex started LaTeX, where a preamble could run programs, and ended in a traceback; a pipe would hang."""
    for name in ("none", "settings", "bytes", "pipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "settings" / "matplotlibrc").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "bytes" / "matplotlibrc").write_bytes(b"\xff\xfe\0")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe" / "matplotlibrc")
    expected = draw_in(tmp_path / "none")
    assert all(draw_in(tmp_path / name) == expected for name in ("settings", "bytes", "pipe"))
    assert not list(tmp_path.rglob("ran"))


def test_settings_of_matplotlib_change_no_picture_and_no_page(
    tiny_checkpoint: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages were laid out, and the ticks of their pictures drawn, by the settings of the machine."""
    commands = [
        ["diagram", "--triplet", "nca", "-o", "out/a.png"],
        ["diagram", "--pair", "lin", "--style", "paper", "-o", "out/b.svg"],
        ["trajectory", str(tiny_run), "-o", "out/c.pdf"],
        ["doctor", str(tiny_checkpoint), "--out", "out/page"],
    ]
    written = []
    for settings in ({}, HEAVY):
        folder = tmp_path / ("heavy" if settings else "plain")
        (folder / "out").mkdir(parents=True)
        monkeypatch.chdir(folder)
        with mpl.rc_context(dict(settings)):
            for words in commands:
                result = CliRunner().invoke(app, words)
                assert result.exit_code in (0, 3), result.output
        files = sorted(file for file in Path("out").rglob("*") if file.is_file())
        written.append({str(file): file.read_bytes() for file in files})
    assert len(written[0]) > len(commands)
    assert [name for name in written[0] if written[0][name] != written[1][name]] == []


@each("epoch", ["abc", "", "-5", "1.5", "9" * 30, " 7 ", "\udcff"])
def test_an_odd_time_of_the_build_is_ignored_with_a_notice(epoch: str, tmp_path: Path) -> None:
    """numpy and matplotlib raised ValueError, which ended in a traceback."""
    drawing = ["diagram", "--triplet", "nca", "-o", f"{tmp_path}/a.pdf"]
    done = run(script("lossscope"), *(drawing if epoch == "abc" else LISTED), SOURCE_DATE_EPOCH=epoch)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.startswith("SOURCE_DATE_EPOCH must be a whole number of seconds of at most 11 digits; got ")
    assert done.stderr.count("\n") == 1


@each("kind", ["pdf", "svg", "png"])
def test_pictures_have_no_dates_whatever_the_time_of_the_build(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with style.screen():
        figure = style.new_figure()
        figure.add_subplot().plot(np.arange(3))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    expected = style.save(figure, tmp_path / f"a.{kind}").read_bytes()
    for epoch in ("0", "1700000000", "99999999999", "abc", "", "-5", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        assert style.save(figure, tmp_path / f"a.{kind}").read_bytes() == expected
        assert os.environ["SOURCE_DATE_EPOCH"] == epoch
