"""Are lines of any size read once, in order, within limits?"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.io import line_blocks
from lossscope.io.line_blocks import iter_line_blocks
from tests.each import each


def lines_of(path: Path) -> list[str]:
    lines: list[str] = []
    for block in iter_line_blocks(str(path)):
        assert block.first == len(lines) + 1
        lines += block.lines
    return lines


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\0", codec="utf-8")), max_size=20),
    size=st.integers(1, 40),
)
def test_blocks_of_any_size_have_the_lines_of_the_file(
    lines: list[str], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "_BLOCK", size)
        assert lines_of(path) == [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else not lines_of(path)
        path.write_bytes("\n".join([*lines, "end"]).encode())
        assert lines_of(path)[1:] == [*lines, "end"][1:]


def test_a_mark_at_the_beginning_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}\r\n\n{}")
    assert lines_of(tmp_path / "a") == ["{}\r", "", "{}"]


@each("content, says", [
    (b"one\ntwo\nth\xffree\n", r"a must be UTF-8 text; got the byte 0xff in line 3"),
    (b"one\nt\0wo\n", r"a must be text; got a NUL byte in line 2"),
])  # fmt: skip
def test_bytes_that_are_no_text_are_refused_by_line(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=says):
        lines_of(tmp_path / "a")


def test_a_huge_line_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "MAX_LINE_BYTES", 1 << 20)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * (1 << 25)))  # 32 MB in 32 kB
    with pytest.raises(InputError, match=r"lines of .*a\.gz must be of at most 1048576 bytes; a line is longer"):
        lines_of(tmp_path / "a.gz")


def test_a_cut_off_gz_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n" * 1000)[:-9])
    with pytest.raises(InputError, match=r"a\.gz must be a readable file; got EOFError"):
        lines_of(tmp_path / "a.gz")
