"""What does `lossscope data lint` cost? Linting a million rows, against merely decoding the same file.

A row has a query, a positive and a mined negative, 500 bytes of JSON; 1 row in 13 has a planted fault. Merely decoding
is `json.loads` of each line, `csv.reader`, and pyarrow's batches as Python texts, and keeps nothing. lint hashes the
normal form of all texts, and must count each fault as often as it was planted. Blocks that may hold near-duplicates are
decoded again: here all blocks, as near-duplicates are spread over the file. Medians of CPU time, in turns; memory is
the peak above the level before.
"""

from __future__ import annotations

import csv
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from measuring import machine, medians, peak, table

from lossscope.datasets.lint.suite import LintReport, lint
from lossscope.datasets.lint.targets import lint_sources

ROWS = 1_000_000
EVERY = {  # fault -> rows from one case to the next
    "positive-as-negative": 50,
    "other-positive-as-negative": 60,
    "empty-text": 70,
    "no-positive": 80,
    "long-text": 1000,
    "duplicates": 90,
    "near-copies": 110,
    "near-duplicates": 120,
    "short-text": 130,
}
COLUMNS = ("query", "positive", "negative")
BATCH = 1024

Row = tuple[str, str | None, str]


def main() -> None:
    """Print times, their ratio, memory and counts for each format."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planted = write_files(folder)
        lines = [measure(folder / f"rows.{suffix}", plain, planted) for suffix, plain in PLAIN.items()]
    heads = ("a million rows", "MB", "decode", "lint", "ratio", "bytes a row")
    print(table(heads, lines))
    print(f"counted as planted: {', '.join(f'{id} {number:,}' for id, number in planted.items())}")
    print(machine())


def measure(file: Path, plain: Callable[[Path], None], planted: dict[str, int]) -> tuple[str, ...]:
    """Return the line of a file. Raises ValueError if a count differs from the planted number."""
    report = look_at(file)
    if (counts := {finding.id: finding.count for finding in report.findings}) != planted:
        raise ValueError(f"counts of {file.name} must be {planted}; got {counts}")
    memory = 1e6 * peak(lambda: look_at(file)) / report.rows
    decoding, linting = medians([partial(plain, file), partial(look_at, file)], repeats=3)
    size = file.stat().st_size / 1e6
    ratio = f"{linting / decoding:.2f}"
    return file.suffix[1:], f"{size:.0f}", f"{decoding:.2f} s", f"{linting:.2f} s", ratio, f"{memory:.0f}"


def look_at(file: Path) -> LintReport:
    """Return the lint report of a file."""
    return lint(lint_sources(str(file)))


def write_files(folder: Path) -> dict[str, int]:
    """Write the same rows in each format, and return the number of rows with each fault."""
    planted = dict.fromkeys(EVERY, 0)
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    with (
        open(folder / "rows.jsonl", "w", encoding="utf-8") as lines,
        open(folder / "rows.csv", "w", encoding="utf-8", newline="") as cells,
        pq.ParquetWriter(folder / "rows.parquet", schema) as groups,
    ):
        writer = csv.writer(cells)
        writer.writerow(COLUMNS)
        block: list[Row] = []
        for row in draw_rows(planted):
            block.append(row)
            if len(block) == 50_000:
                records = [dict(zip(COLUMNS, cells_of_row, strict=True)) for cells_of_row in block]
                lines.writelines(json.dumps(record) + "\n" for record in records)
                writer.writerows(block)
                groups.write_table(pa.Table.from_pylist(records, schema))
                block.clear()
    return planted


def draw_rows(planted: dict[str, int]) -> Iterator[Row]:
    """Yield rows of random words with planted faults, and count the faults."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
    older = earlier = draw_texts(rng, words, -1)
    for number in range(ROWS):
        query, positive, negative = draw_texts(rng, words, number)
        fault = next(
            (id for remainder, (id, period) in enumerate(EVERY.items()) if number % period == remainder + 1), None
        )
        if fault:
            planted[fault] += 1
        if fault == "positive-as-negative":
            yield query, positive, f"  {positive.upper()}"
        elif fault == "other-positive-as-negative":
            yield f"{earlier[0]}!", positive, earlier[1]
        elif fault == "empty-text":
            yield query, positive, " "
        elif fault == "no-positive":
            yield query, None, negative
        elif fault == "long-text":
            yield query, f"{positive} " * 20, negative
        elif fault == "duplicates":
            yield earlier[0].title(), earlier[1], negative
        elif fault == "near-copies":
            yield query, positive, f"Answer: {positive}"
        elif fault == "near-duplicates":
            yield query, f"{older[1]}.", negative
        elif fault == "short-text":
            yield query, positive, "x"
        else:
            older, earlier = earlier if number else (query, positive, negative), (query, positive, negative)
            yield earlier


def draw_texts(rng: random.Random, words: list[str], number: int) -> tuple[str, str, str]:
    """Return a query, a positive and a negative that no other row has."""
    return (
        f"What is {' '.join(rng.choices(words, k=6))} {number}?",
        f"It is {' '.join(rng.choices(words, k=30))} {number}.",
        f"It is not {' '.join(rng.choices(words, k=27))} {number}.",
    )


def decode_jsonl(file: Path) -> None:
    """Decode all lines."""
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            json.loads(line)


def decode_csv(file: Path) -> None:
    """Decode all rows."""
    with open(file, encoding="utf-8", newline="") as lines:
        for _ in csv.reader(lines):
            pass


def decode_parquet(file: Path) -> None:
    """Decode all batches."""
    for batch in pq.ParquetFile(file).iter_batches(BATCH, use_threads=False):
        batch.to_pydict()


PLAIN = {"jsonl": decode_jsonl, "csv": decode_csv, "parquet": decode_parquet}

if __name__ == "__main__":
    main()
