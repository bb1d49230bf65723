"""Do the lines of docs/releasing.md make a release that docs/release_notes.py accepts, and begin the next version?"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import release_notes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files that state the version to an empty folder, at 0.2.0.dev0."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    version = release_notes.project_version(ROOT)
    for name, old, new in (
        ("pyproject.toml", f'version = "{version}"', 'version = "0.2.0.dev0"'),
        ("CITATION.cff", f"\nversion: {version}\n", "\nversion: 0.2.0.dev0\n"),
        ("CHANGELOG.md", release_notes.newest_section(ROOT)[0].splitlines()[0], "## 0.2.0 (unreleased)"),
    ):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    return tmp_path


def _edits(step: str) -> str:
    """Return the lines of a step of the page that name a version or edit a file."""
    (block,) = re.findall(rf"^## \d\. {step}\n.*?^```sh\n(.*?)^```", PAGE, re.M | re.S)
    return "\n".join(line for line in block.splitlines() if re.match(r"\w+=|sed ", line))


def test_the_files_of_the_repository_agree() -> None:
    assert release_notes.disagreements(ROOT) == []


def test_the_page_makes_a_release_and_begins_the_next_version(copy: Path) -> None:
    assert release_notes.disagreements(copy) == []
    notes = release_notes.newest_section(copy)["text"]
    subprocess.run(["bash", "-ec", _edits("State the version")], cwd=copy, check=True)
    assert release_notes.disagreements(copy, "v0.2.0") == []
    assert release_notes.newest_section(copy)["text"] == notes
    subprocess.run(["bash", "-ec", _edits("Begin the next version")], cwd=copy, check=True)
    assert release_notes.project_version(copy) == "0.3.0.dev0"
    assert release_notes.disagreements(copy) == []
    assert release_notes.newest_section(copy)["text"].strip() == ""


@pytest.mark.parametrize(
    ("name", "pattern", "new", "message"),
    [
        (
            "CITATION.cff",
            "version: .*",
            "version: 0.1.0",
            "CITATION.cff must be 0.2.0, as in pyproject.toml; got 0.1.0",
        ),
        ("CHANGELOG.md", "## .*", "## 0.2.0 (unreleased)", r"must be `## 0.2.0 \(YYYY-MM-DD\)`; got .*unreleased"),
        ("CHANGELOG.md", "## .*", "## 0.1.9 (2026-11-25)", r"must be `## 0.2.0 \(YYYY-MM-DD\)`; got `## 0.1.9 .*"),
        ("pyproject.toml", "version = .*", 'version = "0.2"', "pyproject.toml must be X.Y.Z or X.Y.Z.dev0; got 0.2"),
        ("pyproject.toml", "version = .*", 'version = "0.2.0.dev0"', "a release must be X.Y.Z; got 0.2.0.dev0"),
        ("pyproject.toml", "version = .*", 'version = "0.2.1"', "tag must be v0.2.1, .*; got v0.2.0"),
    ],
)
def test_a_release_is_refused_where_something_disagrees(
    copy: Path,
    name: str,
    pattern: str,
    new: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    subprocess.run(["bash", "-ec", _edits("State the version")], cwd=copy, check=True)
    text = (copy / name).read_text(encoding="utf-8")
    (copy / name).write_text(re.sub(f"^{pattern}$", new, text, count=1, flags=re.M), encoding="utf-8")
    monkeypatch.setattr(release_notes, "ROOT", copy)
    assert release_notes.main(["v0.2.0"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and re.search(message, printed.err)


def test_the_notes_are_the_section_of_the_release(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["bash", "-ec", _edits("State the version")], cwd=copy, check=True)
    monkeypatch.setattr(release_notes, "ROOT", copy)
    assert release_notes.main(["v0.2.0"]) == 0
    assert capsys.readouterr().out.strip() == release_notes.newest_section(copy)["text"].strip()
