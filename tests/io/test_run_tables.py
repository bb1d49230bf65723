"""Is a lost row that a checkpoint counts on noticed, and damage named?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.run_tables import RunTable
from tests.each import each

PLACES = [(1, 1), (1, 2), (2, 1)]


def table(tmp_path: Path) -> RunTable:
    run_table = RunTable(tmp_path / "trajectory.csv")
    run_table.append([{"epoch": epoch, "step": step, "loss": 0.5} for epoch, step in PLACES])
    run_table.sync()
    return run_table


def test_a_whole_table_has_its_rows(tmp_path: Path) -> None:
    table(tmp_path).require(PLACES, tmp_path / "last.pt")
    RunTable(tmp_path / "none.csv").require([], tmp_path / "last.pt")


@each("text, says", [
    ("epoch,step,loss\n1,1,0.5\n1,2,0.5\n", "got none in place of epoch 2 step 1 as row 3"),
    ("epoch,step,loss\n1,1,0.5\n2,1,0.5\n", "got epoch 2 step 1 in place of epoch 1 step 2 as row 2"),
    ("epoch,step,loss\n1,1,0.5\n1,2,0.5\n2,1,0.5\n2,1,0.5\n", "got epoch 2 step 1 in place of none as row 4"),
    ("", "got none in place of epoch 1 step 1 as row 1"),
    ("epoch,step,loss\n1,1,0.5\n1,2,0.5\n2,1,0.", "got none in place of epoch 2 step 1"),
])  # fmt: skip
def test_rows_that_were_lost_are_missed(tmp_path: Path, text: str, says: str) -> None:
    """Rows lost from the end at a power cut changed the epoch's loss."""
    run_table = table(tmp_path)
    run_table.path.write_text(text)
    with pytest.raises(InputError, match=rf"trajectory\.csv must have the rows that .*last\.pt counts on; {says}"):
        run_table.require(PLACES, tmp_path / "last.pt")


@each("content, says", [
    (b"epoch,step\n1\n", "must have 2 values, as its header; got 1 in line 2"),
    (b"epoch,step\n1,2,3\n", "must have 2 values, as its header; got 3 in line 2"),
    (b"epoch,step\n1,x\n", "without whole numbers in epoch and step"),
    (b"epoch,step\n1,-1\n", "without whole numbers"),
    (b"epoch,step\n1," + b"9" * 5000 + b"\n", "without whole numbers"),
    (b"a,b\n1,2\n", "without whole numbers"),
    (b"epoch,step\n1,\xff\n", "foreign byte"),
    (b'epoch,step\n1,"2\n', "unexpected end of data"),
])  # fmt: skip
def test_a_damaged_table_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    run_table = RunTable(tmp_path / "probes.csv")
    run_table.path.write_bytes(content)
    with pytest.raises(InputError, match=rf"probes\.csv .*{says}.*\. Copy it back, or train anew"):
        run_table.keep(lambda position: position <= (1, 1))
    assert run_table.path.read_bytes() == content
