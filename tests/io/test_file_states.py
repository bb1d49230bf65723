"""Is a file that changes while lossscope reads it one message, whatever the writer does and whoever reads?"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from lossscope_cli import app
from safetensors.torch import save_file
from typer.testing import CliRunner

from lossscope.datasets.rows.column_names import ColumnNames
from lossscope.datasets.rows.row_files import READERS, RowFiles
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from lossscope.io import arrays
from lossscope.io.file_states import FileState, unchanged, watch_mapped_files
from lossscope.io.row_shards import RowShards
from lossscope.io.rows_on_disk import RowsOnDisk, checksum_file, write_rows
from lossscope.sources import _arrays, _dump_split
from lossscope.sources.base import load
from tests.each import each
from tests.rewriting import STAYS, WRITERS, Writer, append, replace, rewrite, truncate

N = 5000
ROWS = [{"query": f"query {row}", "positive": f"positive {row}"} for row in range(N)]
SUFFIXES = [*READERS, ".jsonl.gz"]


def write_table(folder: Path, suffix: str) -> Path:
    """Write the rows in a format."""
    file, table = folder / f"rows{suffix}", pa.Table.from_pylist(ROWS)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    separator = "\t" if suffix == ".tsv" else ","
    texts = {
        ".json": json.dumps(ROWS), ".jsonl": lines, ".ndjson": lines,
        **dict.fromkeys((".csv", ".tsv"), "\n".join(separator.join(row) for row in (ROWS[0], *map(dict.values, ROWS)))),
    }  # fmt: skip
    if suffix == ".parquet":
        pq.write_table(table, file, write_page_checksum=True)
    elif suffix == ".arrow":
        with pa.OSFile(str(file), "w") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=500)
    elif suffix == ".jsonl.gz":
        file.write_bytes(gzip.compress(lines.encode()))
    else:
        file.write_text(texts[suffix], encoding="utf-8")
    return file


def changed(file: Path, got: str) -> Any:
    return pytest.raises(InputError, match=STAYS.format(name=file.name.replace(".", r"\."), got=got))


@each("suffix", SUFFIXES, "writer, got", WRITERS)
def test_rows_that_change_between_two_readings_are_refused(
    suffix: str, writer: Writer, got: str, tmp_path: Path
) -> None:
    """Lint, doctor and audit read rows several times: the second time gave those of another file."""
    file = write_table(tmp_path, suffix)
    files = RowFiles.parse(str(file), ColumnNames.parse(""))
    assert sum(map(len, files.blocks())) == N
    assert sum(map(len, files.blocks({(0, 0)}))) > 0
    writer(file)
    with changed(file, got):
        list(files.blocks({(0, 0)}))
    with changed(file, got):
        list(files.blocks())


@each("suffix", [suffix for suffix in SUFFIXES if suffix != ".json"], "writer, got", WRITERS)
def test_rows_that_change_while_they_are_read_are_refused(
    suffix: str, writer: Writer, got: str, tmp_path: Path
) -> None:
    """A split had the first rows of a file and the last ones of another, or named a damage that was none."""
    file = write_table(tmp_path, suffix)
    blocks = RowFiles.parse(str(file), ColumnNames.parse("")).blocks()
    next(blocks)
    writer(file)
    with changed(file, got):
        list(blocks)


def test_rows_whose_reading_ends_early_are_not_compared(tmp_path: Path) -> None:
    blocks = RowFiles.parse(str(write_table(tmp_path, ".jsonl")), ColumnNames.parse("")).blocks()
    next(blocks)
    append(tmp_path / "rows.jsonl")
    blocks.close()


def test_a_file_of_ids_that_changes_while_their_texts_are_read_is_refused(tmp_path: Path) -> None:
    """The ids were those of the first reading, the rows those of the second."""
    file, corpus = tmp_path / "rows.jsonl", tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps({"query": f"q{n}", "pos": ["d0"]}) + "\n" for n in range(3)))
    corpus.write_text('{"_id": "d0", "text": "text 0"}\n{"_id": "d1", "text": "text 1"}\n')
    data = TextRows(str(file), corpus=str(corpus))
    assert len(data.split("all").captions) == 1
    files = data._files("all")
    blocks = files.blocks()
    next(blocks)
    replace(file)
    with changed(file, "was written again"):
        list(blocks)


@each("writer, got", WRITERS)
def test_shards_that_change_between_two_blocks_are_refused(writer: Writer, got: str, tmp_path: Path) -> None:
    """A sweep over shards had the vectors of two files."""
    file = tmp_path / "images.npy"
    np.save(file, np.ones((100, 8), np.float32))
    shards = RowShards.open([str(file)])
    assert shards.take(np.arange(3)).shape == (3, 8)
    writer(file)
    for read in (lambda: shards.take(np.arange(3)), lambda: list(shards.blocks(0, 100))):
        with changed(file, got):
            read()


WRITERS_IN_PLACE = [(writer, got) for writer, got in WRITERS if writer in (append, truncate, rewrite)]


@each("has_checksums", [True, False], "writer, got", WRITERS_IN_PLACE)
def test_features_that_are_written_again_are_refused(
    has_checksums: bool, writer: Writer, got: str, tmp_path: Path
) -> None:
    """Rows are compared when they are first read: later epochs had other numbers, and a short file ended Python."""
    file = tmp_path / "train_ims.npy"
    write_rows(file, (100, 8), [np.ones((100, 8), np.float32)])
    if not has_checksums:
        checksum_file(file).unlink()
    rows = RowsOnDisk.open(file)
    half = rows.select(slice(50, None))
    for part in (rows, half):
        part.take(slice(None))
    writer(file)
    for part in (rows, half):
        with pytest.raises(
            InputError, match=rf"it {got}" if got != "was written again" or not has_checksums else "row"
        ):
            part.take(np.array([len(part) - 1]))


@each("writer", [replace, Path.unlink])
def test_features_that_are_replaced_stay_those_that_were_opened(writer: Writer, tmp_path: Path) -> None:
    file = tmp_path / "train_ims.npy"
    np.save(file, np.ones((100, 8), np.float32))
    rows = RowsOnDisk.open(file)
    writer(file)
    assert (rows.take(slice(None)) == 1).all()


def test_features_of_the_same_numbers_may_be_written_again(tmp_path: Path) -> None:
    file = tmp_path / "train_ims.npy"
    write_rows(file, (100, 8), [np.ones((100, 8), np.float32)])
    rows = RowsOnDisk.open(file)
    rows.take(slice(None))
    rewrite(file)
    rewrite(file)  # back
    assert (rows.take(slice(None)) == 1).all()


def write_dump(folder: Path, kind: str) -> Path:
    """Write a dump, and return the file that changes."""
    x = torch.nn.functional.normalize(torch.randn(400, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    sides, file = {"images": x, "captions": x.clone()}, folder / f"dump{kind}"
    match kind:
        case ".npz":
            np.savez(file, **{name: side.numpy() for name, side in sides.items()})
        case ".safetensors":
            save_file(sides, file)
        case ".pt":
            torch.save(sides, file)
        case ".npy":
            np.save(file, (x @ x.T).numpy() * 0.9)
        case _:
            for name, side in sides.items():
                np.save(folder / f"{name}.npy", side.numpy())
            file = folder / "captions.npy"
    return file


KINDS = [".npz", ".safetensors", ".pt", ".npy", "folder"]


@each("kind", KINDS, "writer, got", WRITERS)
def test_a_dump_that_changes_before_its_fingerprint_is_taken_is_refused(
    kind: str, writer: Writer, got: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of the numbers that were read would have been those of another file, on --resume too."""
    file = write_dump(tmp_path, kind)

    def late(path: Path) -> str:
        if path == file:
            writer(file)
        return "0" * 64

    monkeypatch.setattr(_arrays, "fingerprint", late)
    monkeypatch.setattr(_dump_split, "fingerprint", late)
    with changed(file, got):
        load(tmp_path if kind == "folder" else file)


def test_files_beside_those_of_a_dump_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dump(tmp_path, "folder")
    for name in ("notes.npy", "log.parquet", "captions.txt"):
        (tmp_path / name).write_bytes(bytes(200))
    (tmp_path / "gone.npy").symlink_to(tmp_path / "none")
    (tmp_path / "old.index").mkdir()

    def late(_path: Path) -> str:
        for name in ("notes.npy", "log.parquet", "captions.txt"):
            append(tmp_path / name)
        return "0" * 64

    monkeypatch.setattr(_arrays, "fingerprint", late)
    assert load(tmp_path).images is not None


@each("kind", KINDS, "writer", [truncate, rewrite])
def test_a_dump_that_changes_after_it_was_read_is_what_was_read(kind: str, writer: Writer, tmp_path: Path) -> None:
    """Its tensors were mapped into memory: their numbers changed, and a shorter file ended Python."""
    file = write_dump(tmp_path, kind)
    first = load(tmp_path if kind == "folder" else file)
    tensor = first.similarity if first.similarity is not None else first.captions
    assert tensor is not None
    before = tensor.clone()
    writer(file)
    assert torch.equal(tensor, before)


@each("kind", [".npy", "folder"], "writer, got", WRITERS_IN_PLACE[:1] + WRITERS_IN_PLACE[2:])
def test_a_dump_too_large_for_memory_that_changes_meanwhile_is_refused_at_the_end(
    kind: str, writer: Writer, got: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGE", 100)
    file = write_dump(tmp_path, kind)
    with changed(file, got), watch_mapped_files():
        load(tmp_path if kind == "folder" else file, raw=True)
        writer(file)
    for harmless in (replace, Path.unlink):
        file = write_dump(tmp_path, kind)
        with watch_mapped_files():
            load(tmp_path if kind == "folder" else file, raw=True)
            harmless(file)


def test_a_command_says_that_its_mapped_dump_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LARGE", 100)
    write_dump(tmp_path, "folder")
    run = _dump_split.caption_image_of

    def late(*given: Any) -> Any:
        rewrite(tmp_path / "captions.npy")
        return run(*given)

    monkeypatch.setattr(_dump_split, "caption_image_of", late)
    result = CliRunner().invoke(app, ["eval", str(tmp_path)])
    assert result.exit_code == 1
    assert "captions.npy must stay as it is while lossscope reads it" in result.stderr


SHORTER = """
import os, sys
from pathlib import Path
from lossscope.io import arrays
arrays.LARGE = 100
from lossscope.sources import _dump_split
run = _dump_split.caption_image_of
def late(*given):
    os.truncate(Path(sys.argv[2]) / "captions.npy", 200)
    return run(*given)
_dump_split.caption_image_of = late
from lossscope_cli import main
main()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="Windows has no SIGBUS")
def test_a_mapped_file_that_becomes_shorter_ends_in_one_message(tmp_path: Path) -> None:
    """The system ended Python by SIGBUS, without a word."""
    write_dump(tmp_path, "folder")
    done = subprocess.run(
        [sys.executable, "-c", SHORTER, "eval", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LOSSSCOPE_CACHE": str(tmp_path / "cache")},
    )
    assert done.returncode == 1, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("Error: ")] == done.stderr.splitlines()[-1:]
    if sys.platform == "linux":
        assert f"{tmp_path / 'captions.npy'} must stay as it is while lossscope reads it" in done.stderr


def test_a_file_that_stays_is_no_error_and_other_errors_pass(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    state = FileState.of(tmp_path / "a")
    with unchanged(tmp_path / "a"):
        state.require_same()
    with pytest.raises(InputError, match="of the reader"), unchanged(tmp_path / "a"):
        raise InputError("of the reader")
    with pytest.raises(InputError, match="must exist"):
        FileState.of(tmp_path / "b")
