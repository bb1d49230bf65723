"""Are temporary files of killed writers removed, and those of living writers left alone?"""

from __future__ import annotations

import threading
from pathlib import Path

from lossscope.io.files import write_atomically, write_text
from lossscope.io.temporary_files import remove_leftovers, reserve, temporary_file
from tests.each import each


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    for name in (".last.pt.abcdefgh.part", ".last.pt.mine.part", ".best.pt.abcdefgh.part", ".last.ptx.abcdefgh.part"):
        (tmp_path / name).touch()
    write_text(tmp_path / "last.pt", "x")
    assert names(tmp_path) == [".best.pt.abcdefgh.part", ".last.pt.mine.part", ".last.ptx.abcdefgh.part", "last.pt"]


@each("name", ["a[1].csv", "a*.csv", "a?.csv"])
def test_names_with_the_signs_of_patterns_are_names(tmp_path: Path, name: str) -> None:
    (tmp_path / f".{name}.abcdefgh.part").touch()
    (tmp_path / ".a1.csv.abcdefgh.part").touch()
    write_text(tmp_path / name, "x")
    assert names(tmp_path) == sorted([".a1.csv.abcdefgh.part", name])


def test_the_file_of_a_writer_at_work_is_kept(tmp_path: Path) -> None:
    with write_atomically(tmp_path / "a") as part:
        part.write_text("first")
        assert remove_leftovers(tmp_path) == []
        write_text(tmp_path / "a", "second")
        assert part.read_text() == "first"
    assert (tmp_path / "a").read_text() == "first" and names(tmp_path) == ["a"]


def test_leftovers_are_returned(tmp_path: Path) -> None:
    (tmp_path / ".a.abcdefgh.part").touch()
    (tmp_path / ".b.abcdefgh.part").mkdir()
    (tmp_path / ".c.abcdefgh.part").symlink_to(tmp_path / "elsewhere")
    assert remove_leftovers(tmp_path) == [tmp_path / ".a.abcdefgh.part"]
    assert names(tmp_path) == [".b.abcdefgh.part", ".c.abcdefgh.part"]


def test_many_writers_of_one_file_end_with_one_of_theirs(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def write(text: str) -> None:
        try:
            for _ in range(30):
                write_text(tmp_path / "a", text * 1000)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and names(tmp_path) == ["a"] and len(set((tmp_path / "a").read_text())) == 1


def test_reserving_keeps_content_and_size(tmp_path: Path) -> None:
    with temporary_file(tmp_path / "a") as part:
        part.write_bytes(b"abc" + b"\0" * 10_000)
        reserve(part)
        assert part.read_bytes() == b"abc" + b"\0" * 10_000
        assert part.stat().st_blocks * 512 >= 10_003
