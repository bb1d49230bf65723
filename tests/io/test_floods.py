"""Does a small file that unpacks to very much, or is nothing but blank lines, end in a message before it is read?"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lossscope.datasets.formats.tar_index import list_members
from lossscope.datasets.rows.row_files import READERS
from lossscope.errors import InputError
from lossscope.io import limits, line_blocks
from lossscope.io.arrays import read_npz
from lossscope.io.line_blocks import iter_lines
from lossscope.io.locations import list_files, open_location, suffix_of
from lossscope.io.parquet_tables import read_parquet
from lossscope.io.trec_files import iter_judgements, iter_run
from tests.each import each

ROW = b'{"query": "a red car", "positive": "a car that is red"}\n'
UNPACKS = r"must unpack to at most \d+ times its size; its first \d+ bytes unpack to more than \d+\. If you trust"
BLANK = r"must have a row on most lines; \d+ of its first \d+ lines are blank. Remove them: grep -v"


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a test need not write gigabytes."""
    monkeypatch.setattr(limits, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "MAX_RATIO", 100)
    monkeypatch.setattr(limits, "FREE_BLANKS", 1 << 12)
    monkeypatch.setattr(line_blocks, "MAX_LINE_BYTES", 1 << 19)


def read_rows(location: str) -> int:
    """Return the number of rows that the reader of a location yields."""
    readers: dict[str, Callable[[str], Iterator[Any]]] = {
        ".txt": iter_lines, ".qrels": iter_judgements, ".trec": iter_run,
    }  # fmt: skip
    suffix = suffix_of(location)
    if suffix in READERS:
        return sum(len(block.lines) for block in READERS[suffix](location, lambda _: True, None))
    return sum(1 for _ in readers[suffix](location))


@pytest.mark.usefixtures("low")
@each("name, blank", product(["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt", "a.trec"], [b"\n", b"\r\n", b"\t \r\n"]))
def test_blank_lines_end_in_a_message_packed_or_not(name: str, blank: bytes, tmp_path: Path) -> None:
    """4.6 MB of .gz that unpacked to 1 GB of line breaks took 37 seconds, without a word."""
    content = blank * (1 << 18)
    (tmp_path / name).write_bytes(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content, 1))
    for file in (tmp_path / name, tmp_path / f"{name}.gz"):
        with pytest.raises(InputError, match=f"{file.name} {BLANK}|{file.name} {UNPACKS}"):
            read_rows(str(file))


@pytest.mark.usefixtures("low")
def test_blank_lines_behind_the_rows_are_counted() -> None:
    fsspec.filesystem("memory").pipe("/floods/a.jsonl", ROW * 10 + b"\n" * (1 << 20))
    with pytest.raises(InputError, match=BLANK):
        read_rows("memory://floods/a.jsonl")


def packed_many_times(content: bytes) -> dict[str, bytes]:
    """Return name -> a `.gz` file of much of that content: in one member, and in many."""
    of_member = content * ((1 << 18) // len(content))
    return {"one": gzip.compress(of_member * 32), "many": gzip.compress(of_member) * 32}


@pytest.mark.usefixtures("low")
@each("suffix, content", product([".jsonl", ".csv"], [ROW, b"\n", b"\0", b'["a"],']))
def test_a_gz_file_beyond_the_ratio_is_refused_wherever_it_lies(suffix: str, content: bytes, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for name, packed in packed_many_times(content).items():
        (tmp_path / f"{name}{suffix}.gz").write_bytes(packed)
        memory.pipe(f"/floods/{name}{suffix}.gz", packed)
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}{suffix}.gz", packed)
        for location in (
            f"{tmp_path}/{name}{suffix}.gz",
            f"memory://floods/{name}{suffix}.gz",
            f"simplecache::memory://floods/{name}{suffix}.gz",
            f"zip://{name}{suffix}.gz::file://{tmp_path}/{name}.zip",
        ):
            with pytest.raises(InputError, match=rf"{name}{suffix}\.gz.* {UNPACKS}"), open_location(location) as file:
                file.read()
            with pytest.raises(InputError, match=rf"{name}{suffix}\.gz"):
                read_rows(location)


@pytest.mark.usefixtures("low")
@each("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_in_an_archive_behind_a_url_is_bounded_as_a_gz_file_is(method: int, tmp_path: Path) -> None:
    """bzip2 packs equal bytes 20,000 times; a copy of such a file, or an archive in an archive, would fill the disk."""
    for name, member, content in (("a", "a.jsonl", ROW * (1 << 18)), ("b", "c.zip", b"\n" * (1 << 24))):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", method) as archive:
            archive.writestr(member, content)
    for link in ("zip://a.jsonl::", "simplecache::zip://a.jsonl::", "zip://a.jsonl::simplecache::"):
        with pytest.raises(InputError, match=UNPACKS):
            read_rows(f"{link}file://{tmp_path}/a.zip")
    for link in ("zip://a::zip://c.zip::", "zip://a::simplecache::zip://c.zip::", "filecache::zip://a::zip://c.zip::"):
        with pytest.raises(InputError, match=UNPACKS):
            list_files(f"{link}file://{tmp_path}/b.zip")


@each("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_a_packed_tar_behind_a_url_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must lead into a tar that is not packed.*unpack it with gunzip"):
        read_rows(f"tar://a.jsonl::file://{tmp_path}/{name}")
    with pytest.raises(InputError, match="must lead into a tar that is not packed"):
        read_rows(f"tar://a.jsonl::simplecache::https://host/{name}")


def test_tar_files_of_pictures_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(gzip.compress(bytes(1 << 20)))
    with pytest.raises(InputError, match="must be a whole tar, not compressed"):
        list(list_members(tmp_path / "a.tar"))


def test_repetitive_data_of_honest_users_are_read(tmp_path: Path) -> None:
    """Equal lines pack 350 times; lines with an empty one between them are ordinary."""
    for name, content, rows in (("equal", ROW * 200_000, 200_000), ("spaced", (ROW + b"\n\r\n") * 200_000, 200_000)):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(content))
        assert read_rows(f"{tmp_path}/{name}.jsonl.gz") == rows
    assert len(gzip.compress(ROW * 200_000)) * limits.MAX_RATIO > len(ROW) * 200_000


def test_the_end_of_a_packed_file_is_found_within_the_limit(tmp_path: Path, low: None) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 1000))
    (tmp_path / "b.gz").write_bytes(gzip.compress(bytes(1 << 24)))
    with open_location(f"{tmp_path}/a.gz") as file:
        assert (file.seek(0, io.SEEK_END), file.seek(-3, io.SEEK_CUR), file.read()) == (1000, 997, b"xxx")
    with pytest.raises(InputError, match=UNPACKS), open_location(f"{tmp_path}/b.gz") as file:
        file.seek(0, io.SEEK_END)


@pytest.mark.usefixtures("low")
@each("rows, stored", product([512, 1 << 16], [True, False]))
def test_rows_that_share_a_long_text_are_bounded_before_each_has_a_copy(
    rows: int, stored: bool, tmp_path: Path
) -> None:
    """1 kB of parquet took 8 GB: 512 rows of one text of 16 MB."""
    text = pa.array(["x" * (5 << 20)])
    table = pa.table({"query": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), text)})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=stored)
    with pytest.raises(InputError, match=UNPACKS):
        read_rows(f"{tmp_path}/a.parquet")
    with pytest.raises(InputError, match=UNPACKS):
        read_parquet(tmp_path / "a.parquet")
    with pa.OSFile(f"{tmp_path}/a.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table.slice(0, 2048))
    if stored:
        with pytest.raises(InputError, match=UNPACKS):
            read_rows(f"{tmp_path}/a.arrow")


def test_long_texts_that_few_rows_share_are_read_as_all_others(tmp_path: Path) -> None:
    texts = [f"{number % 3}" * (5 << 20) for number in range(9)]
    pq.write_table(pa.table({"query": texts, "n": range(9)}), tmp_path / "a.parquet", dictionary_pagesize_limit=1 << 26)
    (block,) = READERS[".parquet"](f"{tmp_path}/a.parquet", lambda _: True, None)
    assert block.columns == {"query": texts, "n": list(range(9))}
    assert read_parquet(tmp_path / "a.parquet")["query"].tolist() == texts


def test_more_equal_rows_than_a_file_can_hold_are_refused(tmp_path: Path) -> None:
    """Parquet writes how often a value follows itself; 10^10 rows are a few bytes."""
    rows = 1 << 27
    pq.write_table(pa.table({"n": pa.array(np.zeros(rows, np.int8))}), tmp_path / "a.parquet", compression="zstd")
    for read in (lambda: read_rows(f"{tmp_path}/a.parquet"), lambda: read_parquet(tmp_path / "a.parquet")):
        with pytest.raises(InputError, match=f"must hold the rows that it states; it states {rows}"):
            read()


@each("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_array_that_packs_more_than_deflate_does_is_refused(method: int, tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros(1 << 21))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("images.npy", content.getvalue())
    with pytest.raises(InputError, match=r"'images\.npy' of .*a\.npz must be plain and of a possible size"):
        read_npz(tmp_path / "a.npz")
