"""Does `lossscope analyse alignment` print cosines, draw them, and refuse what it cannot compare?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.command_line import document, lossscope, message

LINE = "analyse alignment dump.npz --objective ntxent --objective triplet-sh --batch-size 8"


def test_cosines_are_printed_drawn_and_drawn_again(dump: Path) -> None:
    result = lossscope(f"{LINE} -o a.png")
    assert result.exit_code == 0, result.stderr
    assert "3 full batches of 8 (pairs), seed 0" in result.stdout and "95 % interval" in result.stdout
    assert "gradients of parameters need a model; dump.npz has none. Use a checkpoint" in message(result)
    assert Path("a.png").stat().st_size > 1000
    Path("rows.csv").write_text(lossscope(f"{LINE} --format csv").stdout)
    drawn = lossscope("render alignment rows.csv -o b.svg")
    assert drawn.exit_code == 0, drawn.stderr
    assert lossscope("render alignment rows.csv").stdout.startswith("Cosines of rows of W")
    assert set(pd.read_csv("rows.csv")["space"]) == {"similarities", "queries"}


def test_all_objectives_are_compared_and_a_document_says_how(dump: Path) -> None:
    result = lossscope("analyse alignment dump.npz --objective all --batch-size 8 --batches 2 --format json")
    found = document(result)
    assert found["command"]["objectives"]["ntxent"] == "ntxent:tau=0.1"
    assert {row["batches"] for row in found["rows"]} <= {0, 1, 2}
    text = lossscope("analyse alignment dump.npz --objective all --batch-size 8 --batches 1 -q").stdout
    assert "in hundredths" in text and "No interval: a single batch has no deviation." in text


def test_a_model_has_layers(tiny_run: Path) -> None:
    result = lossscope(
        "analyse", "alignment", tiny_run, "--objective", "ntxent", "--objective", "triplet", "--batches", 2, "-q"
    )
    assert result.exit_code == 0, result.stderr
    assert "Cosines of dL/dθ by layer" in result.stdout


def test_what_cannot_be_compared_is_refused(dump: Path) -> None:
    unknown = lossscope("analyse alignment dump.npz --objective nothing")
    assert unknown.exit_code == 2 and "objective must be one of" in message(unknown)
    picture = lossscope(f"{LINE} -o a.gif")
    assert picture.exit_code == 2 and "-o must end in" in message(picture)
