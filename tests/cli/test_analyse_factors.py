"""Does `lossscope analyse factors` print factors and nearest unified losses, and write cells that render draws?"""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from tests.command_line import document, lossscope, message


def test_factors_are_printed_drawn_and_drawn_again() -> None:
    line = "analyse factors --objective ntxent --objective circle --points 12 --low 0"
    result = lossscope(f"{line} -o a.png --cells cells.csv")
    assert result.exit_code == 0, result.stderr
    assert "12 × 12 similarities from 0 to 1" in result.stdout and "Nearest unified" not in result.stdout
    assert Path("a.png").stat().st_size > 1000
    assert lossscope("render weight_factors cells.csv -o b.png").exit_code == 0
    Path("rows.csv").write_text(lossscope(f"{line} --format csv -q").stdout)
    assert pd.read_csv("rows.csv")["factorises"].tolist() == [True, True]
    assert lossscope("render factors rows.csv").stdout.startswith("Weights of a query")


def test_a_source_adds_the_nearest_unified_loss(dump: Path) -> None:
    line = "analyse factors dump.npz --objective unified:gamma=20 --objective triplet-sh --points 12 --batch-size 12"
    result = lossscope(line)
    assert result.exit_code == 0, result.stderr
    assert "Nearest unified loss: source dump.npz; all entries of W of 2 batches of 12 (pairs)" in result.stdout
    rows = document(lossscope(f"{line} --format json"))["rows"]
    assert abs(rows[0]["gamma"] - 20) < 0.01 and rows[1]["border"] == "gamma = 1000"


def test_what_has_no_field_is_refused_or_of_all_named() -> None:
    typed = lossscope("analyse factors --objective goal:pair=lin-ms --points 12")
    assert typed.exit_code == 1 and "Give its relative terms" in message(typed)
    everything = lossscope("analyse factors --objective all --points 6 --format csv")
    assert everything.exit_code == 0, everything.stderr
    assert len(pd.read_csv(io.StringIO(everything.stdout))) > 20
    several = lossscope("analyse factors a.npz b.npz --objective ntxent")
    assert several.exit_code != 0
