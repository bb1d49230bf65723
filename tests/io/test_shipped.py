"""Are files that come with the package found by name, from any folder?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.shipped import find_shipped, require_source, shipped_files
from lossscope.sources.base import find_source
from tests.each import each

ROOT = Path(__file__).parents[2]


def test_the_files_are_those_of_the_repository() -> None:
    assert set(shipped_files("checkpoints")) == {path.stem for path in (ROOT / "checkpoints").glob("*.pt")}
    assert set(shipped_files("studies")) == {path.stem for path in (ROOT / "studies").glob("*.toml")}


@each("name", ["tiny", "tiny.pt", "checkpoints/tiny.pt"])
def test_a_name_is_a_file_in_any_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert require_source(name).read_bytes() == (ROOT / "checkpoints" / "tiny.pt").read_bytes()
    assert find_source(name).path == require_source(name)


def test_what_is_there_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny").mkdir()
    assert require_source("tiny") == Path("tiny")
    assert find_shipped("studies", Path("li2022-small.toml")).is_file()
    for other in ("tiny.npz", "elsewhere/tiny.pt", "nothing"):
        assert find_shipped("checkpoints", Path(other)) == Path(other)


def test_what_is_nowhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"there is nothing at gone.pt \(looked in .*\). Comes with lossscope: tiny"):
        require_source("gone.pt")
