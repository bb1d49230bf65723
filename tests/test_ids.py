"""Does each file that names items by their ids give the same ids back, whatever text they are?

A kind of file is a function that writes ids and reads them. A new one is a row of `KINDS`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lossscope.audit.estimate.pair_file import read_pair_file
from lossscope.audit.output.page import PageItem, PagePair, write_page
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.sides import Sides
from lossscope.core.similarity import normalise
from lossscope.datasets.conversion.feature_extraction import lines_of_ids
from lossscope.datasets.formats.feature_rows import read_ids
from lossscope.datasets.judgements.pairs_csv import read_pairs_csv
from lossscope.io.arrays import read_npz, text_array
from lossscope.io.csv_tables import format_csv
from lossscope.io.exact_texts import IN_ARRAYS, IN_CSV, IN_LINES, IN_RUNS, TextForm
from lossscope.io.frames import read_rows
from lossscope.io.parquet_tables import read_parquet, write_parquet
from lossscope.io.trec_files import iter_judgements, iter_run
from lossscope.retrieval.trec import write_run_files
from lossscope.sources._dump_arrays import read_ids as read_ids_of_dump
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each

Ids = Sequence[str]
PAIRS_THAT_LOOK_ALIKE = (
    (" x", "x"), ("x ", "x"), ("\xa0x", "x"), ("a\rb", "a\nb"), ("a\r\nb", "a\nb"), ("\u202e", r"\u202e"),
    ("\x1b", r"\x1b"), ("a\xadb", "ab"), ("\u200ex", "x"), ("\ufeffx", "x"), ("\x85", r"\x85"), ("\u2028", r"\u2028"),
    ("x\0", "x"), ("", " "), ('"x"', "x"), ('" x"', " x"), ("'=x", "=x"), ("e\u0301", "\xe9"), ("007", "7"),
    ("NA", "nan"), ("1e3", "1000"), ("a%20b", "a b"), ("x\u3000", "x"), ("\tx", "x"), ("x\n", "x"),
)  # fmt: skip
"""Ids that were read as each other, or that a reader of other programs takes for each other."""
LISTED = list(dict.fromkeys(text for pair in PAIRS_THAT_LOOK_ALIKE for text in pair))
LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("".join(LISTED) + "\"\\',;#@+-%0u"))
TEXTS = st.lists(st.text(LETTERS, max_size=8), min_size=2, max_size=60, unique=True)


def sheet(ids: Ids, folder: Path) -> Ids:
    """Write a sheet of pairs, and read it as the labels of an audit are read."""
    rows = pd.DataFrame({"image": ids, "caption": ids, "answer": "yes"}, dtype=object)
    (folder / "sheet.csv").write_text(format_csv(rows, ("image", "caption")), encoding="utf-8", newline="")
    file = read_pair_file(folder / "sheet.csv", Sides())
    assert list(file.left) == list(file.right)
    return file.left


def labels_of_a_page(ids: Ids, folder: Path) -> Ids:
    """Write a page, and read the labels.csv that its script puts together."""
    shown = ids[:100]
    pairs = [PagePair(PageItem(id), PageItem(id), 0.5, ()) for id in shown]
    page = write_page(folder / "page.html", pairs, "pairs", Sides(), []).read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    data = json.loads(found[1])
    text = data["header"] + "".join(f"{pair['row']},yes{pair['cells']}\n" for pair in data["pairs"])
    (folder / "labels.csv").write_text(text, encoding="utf-8", newline="")
    return [*read_pair_file(folder / "labels.csv", Sides()).left, *ids[len(shown) :]]


def judgements(ids: Ids, folder: Path) -> Ids:
    """Write pairs, and read them as judgements."""
    rows = pd.DataFrame({"image": ids, "caption": ids}, dtype=object)
    (folder / "pairs.csv").write_text(format_csv(rows, ("image", "caption")), encoding="utf-8", newline="")
    return read_pairs_csv(str(folder / "pairs.csv")).second


def rows_of_csv(ids: Ids, folder: Path) -> Ids:
    """Write rows of queries as CSV, and read them as `lossscope render` does."""
    rows = pd.DataFrame({"query_id": ids, "candidate_id": ids, "weight": 0.5}, dtype=object)
    (folder / "rows.csv").write_text(format_csv(rows), encoding="utf-8", newline="")
    read = read_rows(folder / "rows.csv")
    assert read["query_id"].tolist() == read["candidate_id"].tolist() and (read["weight"] == 0.5).all()
    return read["query_id"].tolist()


def rows_of_parquet(ids: Ids, folder: Path) -> Ids:
    """Write suspects, or rows of queries, as parquet."""
    write_parquet(folder / "rows.parquet", pd.DataFrame({"image": list(ids)}, dtype=object))
    return read_parquet(folder / "rows.parquet", {"image": "text"})["image"].tolist()


def mask(ids: Ids, folder: Path) -> Ids:
    """Write the mask of an audit."""
    rows = np.arange(len(ids))
    KnownPairs(rows, rows, np.ones(len(ids), np.float32), tuple(ids), tuple(ids)).write(folder / "mask.npz")
    read = read_known_pairs(folder / "mask.npz")
    assert read.left_ids == read.right_ids
    return read.left_ids


def dump(ids: Ids, folder: Path) -> Ids:
    """Write ids into a dump, as the flight recorder does."""
    np.savez(folder / "dump.npz", image_id=text_array(ids))
    return read_ids_of_dump(read_npz(folder / "dump.npz"), "image_id", len(ids), folder / "dump.npz")


def lines(ids: Ids, folder: Path) -> Ids:
    """Write ids beside extracted features."""
    (folder / "test_ids.txt").write_text(lines_of_ids(ids), encoding="utf-8", newline="")
    return read_ids(folder / "test_ids.txt", "test", len(ids), 1)


def run_files(ids: Ids, folder: Path) -> Ids:
    """Write run files and judgements, of 500 items each, as each query ranks all of them."""
    if len(ids) > 500:
        return [*run_files(ids[:500], folder), *run_files(ids[500:], folder)]
    sides = [normalise(torch.randn(len(ids), 4, generator=torch.Generator().manual_seed(k))) for k in range(2)]
    source = SplitEmbeddings("x", *sides, None, np.arange(len(ids)), list(ids), list(ids), "f")
    write_run_files(source, folder / "runs", 1, "a\tb")
    ranked = list(iter_run(str(folder / "runs" / "t2i.run")))
    judged = list(iter_judgements(str(folder / "runs" / "i2t.qrels")))
    assert [entry.query for entry in judged] == [entry.document for entry in judged] == [e.query for e in ranked]
    assert {entry.document for entry in ranked} <= set(ids)
    return [entry.query for entry in ranked]


def table(ids: Ids, folder: Path) -> Ids:
    """Write a table of a report, such as that of the heaviest negatives, as CSV."""
    rows = tuple((Cell(text=id), Cell(mean=1.0)) for id in ids)
    text = Table("t", "title", (("", "query"), ("", "weight")), rows, ()).to_csv()
    return [IN_CSV.read(row[0]) for row in list(csv.reader(io.StringIO(text, newline="")))[1:]]


KINDS: list[Callable[[Ids, Path], Ids]] = [
    sheet, labels_of_a_page, judgements, rows_of_csv, rows_of_parquet, mask, dump, lines, run_files, table,
]  # fmt: skip


@each("kind", KINDS)
@given(ids=TEXTS)
@example(ids=LISTED)
@settings(max_examples=25)
def test_ids_come_back_from_every_kind_of_file(kind: Callable[[Ids, Path], Ids], ids: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert list(kind(ids, Path(folder))) == ids


@each("kind", KINDS)
def test_ten_thousand_random_ids_come_back_from_every_kind_of_file(
    kind: Callable[[Ids, Path], Ids], tmp_path: Path
) -> None:
    ids = random_ids()
    assert list(kind(ids, tmp_path)) == ids


@cache
def random_ids() -> list[str]:
    """Return 10,000 different texts of valid UTF-8, half of their letters hostile ones."""
    random, known = np.random.default_rng(0), "".join(LISTED) + "\"\\',;#@+-% \r\n\t0u"
    ids = dict[str, None]()
    while len(ids) < 10_000:
        letters = [
            known[random.integers(len(known))] if random.random() < 0.5 else chr(random.integers(0x110000))
            for _ in range(random.integers(1, 10))
        ]
        text = "".join(letter for letter in letters if not "\ud800" <= letter <= "\udfff")
        ids.setdefault(text)
    return list(ids)


@each("form", [IN_CSV, IN_RUNS, IN_LINES, IN_ARRAYS])
@given(text=st.text(LETTERS))
def test_a_text_that_another_program_wrote_is_read_as_it_stands(form: TextForm, text: str) -> None:
    """A text that `write` never returns stands for itself, so that reading loses nothing either."""
    assert form.write(form.read(text)) == text or form.read(text) in (text, "")
    assert form.read(form.write(form.write(text))) == form.write(text)


@each("form", [IN_CSV, IN_RUNS, IN_LINES])
@given(text=st.text(LETTERS))
def test_what_stands_in_a_file_steers_no_terminal_and_loses_no_blanks(form: TextForm, text: str) -> None:
    written = form.write(text)
    assert written == written.strip()
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]", written)


@pytest.mark.parametrize("text", ["half\ud800", "\udcff"])
def test_half_of_a_surrogate_pair_stays_an_escape(text: str) -> None:
    """No file of text can hold it; it must not come back as another text that was there."""
    written = IN_CSV.write(text)
    assert written.isascii() and IN_CSV.read(written) == written
