"""Are text files read strictly?"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lossscope.datasets.formats.feature_rows import read_lines
from lossscope.datasets.rows.row_files import READERS
from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError
from lossscope.io.csv_tables import read_csv
from lossscope.io.decode import read_toml
from lossscope.io.json_files import read_json, read_json_value
from lossscope.io.json_runs import is_json_run
from lossscope.io.line_blocks import iter_lines
from lossscope.io.locations import suffix_of
from lossscope.io.number_tables import is_number_table
from lossscope.io.run_folder import Run
from lossscope.io.run_tables import RunTable
from lossscope.io.text_files import MARK, read_utf8
from lossscope.io.trec_files import iter_judgements, iter_run
from lossscope.sources._arrays import read_rows
from lossscope.text.subwords import Subwords
from lossscope.text.vocabulary_files import is_vocabulary, read_vocabulary
from tests.each import each


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_text_comes_back_as_it_is_without_a_mark(tmp_path: Path) -> None:
    assert read_utf8(write(tmp_path / "a", "\ufeffdrie\r\n\ufeff\u00e9".encode())) == "drie\r\n\ufeff\u00e9"


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


JSON, TABLE = b'{"a": 1}', b"a,b\n1,2\n"
RUN, QRELS = b"q1 Q0 d1 1 0.5 t\n", b"q1\td1\t1\n"
PAIR = b'{"query": "q", "positive": "p"}'
READERS_OF_TEXT: dict[str, tuple[Callable[[Path], object], str, bytes]] = {
    "text": (read_utf8, "a.txt", b"one\ntwo"),
    "lines": (lambda path: list(iter_lines(str(path))), "a.txt", b"one\ntwo"),
    "captions": (read_lines, "dev_caps.txt", b"one\ntwo"),
    "JSON": (read_json, "a.json", JSON),
    "TOML": (read_toml, "a.toml", b"a = 1"),
    "CSV": (lambda path: read_csv(path).to_dict("list"), "a.csv", TABLE),
    "rows of CSV": (lambda path: _rows(path), "a.csv", TABLE),
    "rows of TSV": (lambda path: _rows(path), "a.tsv", b"a\tb\n1\t2\n"),
    "JSON lines": (lambda path: _rows(path), "a.jsonl", PAIR),
    "JSON array": (lambda path: _rows(path), "a.json", b"[" + PAIR + b"]"),
    "packed rows": (lambda path: _rows(path), "a.jsonl.gz", PAIR),
    "table of numbers": (lambda path: is_number_table(path), "a.csv", b"label,x,y\n1,2,3\n"),
    "TREC run": (lambda path: list(iter_run(str(path))), "a.trec", RUN),
    "TREC qrels": (lambda path: list(iter_judgements(str(path))), "a.qrels", QRELS),
    "JSON run": (lambda path: list(iter_run(str(path))), "run.json", b'{"q": {"d": 1.5}}'),
    "sign of a JSON run": (is_json_run, "run.json", b'{"q": {"d": 1.5}}'),
    "rows of captions": (lambda path: read_rows(path).tolist(), "rows.txt", b"0\n0\n1\n"),
    "vocabulary": (
        lambda path: repr(read_vocabulary(path)), "vocab.json",
        b'{"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3},'
        b' "idx2word": {"0": "<pad>", "1": "<start>", "2": "<end>", "3": "<unk>"}, "idx": 4}',
    ),
    "WordPiece": (
        lambda path: Subwords.from_folder(path.parent).content, "vocab.txt",
        b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
    ),
    "log of pairs": (lambda path: read_log(path), "a.log", b"epoch 1 loss 0.5\nepoch 2 loss 0.4\n"),
    "log of CSV": (lambda path: read_log(path), "a.csv", b"step,loss\n1,0.5\n2,0.4\n"),
    "log of JSON lines": (
        lambda path: read_log(path), "a.jsonl", b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n'
    ),
    "trainer_state.json": (
        lambda path: read_log(path), "trainer_state.json",
        b'{"log_history": [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}]}',
    ),
}  # fmt: skip


def _rows(path: Path) -> list[tuple[list[int], dict[str, list[object]]]]:
    reader = READERS[suffix_of(str(path))]
    return [(list(block.lines), dict(block.columns)) for block in reader(str(path), lambda _: True, None)]


@each("kind", list(READERS_OF_TEXT))
def test_a_mark_of_byte_order_is_left_out_by_every_reader(kind: str, tmp_path: Path) -> None:
    """CSV and JSON lines were read with a mark; JSON and TOML were refused, and --caption-image said ValueError."""
    read, name, content = READERS_OF_TEXT[kind]
    pack = gzip.compress if name.endswith(".gz") else bytes
    path = write(tmp_path / name, pack(content))
    expected = repr(read(path))
    write(path, pack(MARK + content))
    assert repr(read(path)) == expected
