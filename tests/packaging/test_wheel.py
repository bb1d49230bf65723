"""Does the wheel hold all that an installed lossscope needs, and nothing else?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).parents[2]
SOURCES = ("lossscope", "cli", "checkpoints", "studies", "pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Build the wheel of a copy of the repository without a network; return it with the build's output."""
    home = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, home / name)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--verbose", "--wheel-dir", str(home / "dist")]
    environment = {name: text for name, text in os.environ.items() if name != "PIP_BUILD_CONSTRAINT"}  # of isolation
    line = [sys.executable, "-m", "pip", "wheel", *options, str(home)]
    build = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    output = build.stdout + build.stderr
    assert build.returncode == 0, output
    (wheel,) = (home / "dist").glob("*.whl")
    return wheel, output


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, str]) -> Path:
    """Return the wheel alone."""
    return built[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel into a folder."""
    folder = tmp_path_factory.mktemp("installed")
    with ZipFile(wheel) as files:
        files.extractall(folder)
    return folder


def _run(installed: Path, folder: Path, *words: str) -> str:
    """Run Python outside the repository, with the unpacked wheel before everything else."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "LOSSSCOPE_CACHE": str(folder / "cache")}
    result = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_what_is_shipped_is_checkpoints_and_studies_without_scripts(wheel: Path) -> None:
    shipped = {name for name in ZipFile(wheel).namelist() if name.startswith("lossscope/shipped/")}
    files = [*ROOT.glob("checkpoints/*.pt"), *ROOT.glob("studies/*.toml")]
    assert shipped == {f"lossscope/shipped/{file.relative_to(ROOT).as_posix()}" for file in files}
    assert {"lossscope/shipped/checkpoints/tiny.pt", "lossscope/shipped/studies/bleeker2022-small.toml"} <= shipped


def test_every_file_that_the_package_reads_is_in_the_wheel(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    inside = [path for path in (ROOT / "lossscope").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT).as_posix() for path in inside} <= names
    assert {f"lossscope_cli/{path.name}" for path in (ROOT / "cli").glob("*.py")} <= names


def test_no_folder_of_files_is_one_that_setuptools_will_leave_out(built: tuple[Path, str]) -> None:
    lines = built[1].splitlines()
    assert not [line for line in lines if "would be ignored" in line or "BuildBackendWarning" in line]


def test_nothing_else_is_at_the_top(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lossscope", "lossscope_cli"}


def test_the_shipped_checkpoint_is_probed_by_its_name(installed: Path, tmp_path: Path) -> None:
    path = _run(installed, tmp_path, "-c", "import lossscope; print(lossscope.__file__)")
    assert Path(path.strip()).is_relative_to(installed)
    table = _run(installed, tmp_path, "-m", "lossscope_cli", "cocos", "tiny", "--eps", "0.01", "--format", "csv")
    assert len(table.splitlines()) > 8 and "C_neg" in table


READ = """
from lossscope.io.shipped import shipped_files
from lossscope.studies.study_file import read_study_file
for name, file in shipped_files("studies").items():
    print(name, "shipped" in file.parts, len(read_study_file(file).runs) > 0)
"""


def test_every_shipped_study_is_found_and_read(installed: Path, tmp_path: Path) -> None:
    lines = _run(installed, tmp_path, "-c", READ).splitlines()
    assert sorted(lines) == sorted(f"{file.stem} True True" for file in ROOT.glob("studies/*.toml"))
