"""Are text files read strictly?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.decode import read_toml
from lossscope.io.json_files import read_json, read_json_value
from lossscope.io.run_folder import Run
from lossscope.io.run_tables import RunTable
from lossscope.io.text_files import read_utf8
from lossscope.text.subwords import Subwords
from lossscope.text.vocabulary_files import is_vocabulary
from tests.each import each


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_text_comes_back_as_it_is(tmp_path: Path) -> None:
    assert read_utf8(write(tmp_path / "a", "\ufeffdrie\r\n\u00e9".encode())) == "\ufeffdrie\r\n\u00e9"


@each("content, says", [(b"ab\xff", "foreign byte at 2"), (b"ab\0c", "NUL byte at 2")])
def test_bytes_that_are_no_text_are_refused_by_place(content: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        read_utf8(write(tmp_path / "a", content))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(InputError, match="a must be an ordinary file; it is a pipe"):
        read_utf8(tmp_path / "a")


def test_a_name_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(InputError, match="embedded null byte"):
        read_utf8("a\0b")


@each("content, says", [
    (b"[" * 100_000, "nested levels"),
    (b"[" * 150 + b"]" * 150, "at most 100 nested levels"),
    (b'{"a": 1, "b": 2, "a": 3}', "each key of an object once; got 'a' twice"),
    (b'{"a": ' + b"9" * 5000 + b"}", "ordinary numbers"),
    (b'{"a": 1', "must be whole JSON"),
    (b"[]", "must be an object"),
    (rb'{"a": ["\ud83d x"]}', r"must be of letters of Unicode; got \\ud83d, half of a pair"),
    (rb'{"\udcFF": 1}', r"got \\udcff, half of a pair"),
])  # fmt: skip
def test_json_is_read_strictly(content: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says) as problem:
        read_json(write(tmp_path / "a.json", content))
    assert "a.json" in str(problem.value)


def test_a_pair_of_halves_is_a_letter(tmp_path: Path) -> None:
    assert read_json(write(tmp_path / "a.json", rb'{"a": "\ud83d\ude00"}')) == {"a": "\U0001f600"}


def test_nan_is_read_as_json_writes_it(tmp_path: Path) -> None:
    assert str(read_json_value(write(tmp_path / "a.json", b"[NaN, Infinity]"))) == "[nan, inf]"


@each("content", [b"a = " + b"[" * 3000 + b"]" * 3000, b"a = " + b"9" * 5000, b"[x\0]"])
def test_toml_beyond_the_limits_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.toml must be a readable TOML file"):
        read_toml(write(tmp_path / "a.toml", content))


def test_a_file_of_holes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Texts of 3 GB were read as a whole; the zeros behind a packed file were skipped one by one, for 25 seconds."""
    for name in ("a.txt", "merges.txt.gz"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(3 << 30)
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "a.txt")
    (tmp_path / "probes.csv").symlink_to(tmp_path / "a.txt")
    readers: dict[str, Callable[[Path], object]] = {
        "a.txt": read_utf8,
        "merges.txt.gz": Subwords.from_merges,
        "events.jsonl": lambda path: Run(path.parent).events(),
        "probes.csv": lambda path: RunTable(path).require([], path),
    }
    for name, read in readers.items():
        with pytest.raises(InputError, match=rf"{name} must be of at most \d+ bytes; got 3221225472"):
            read(tmp_path / name)
    assert not is_vocabulary(tmp_path / "a.txt")


def test_a_text_of_zeros_is_refused_at_the_first(tmp_path: Path) -> None:
    with open(tmp_path / "a.txt", "wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(InputError, match="got a NUL byte at 0"):
        read_utf8(tmp_path / "a.txt")
