"""Do names of others reach the terminal as text: in messages, bars and tables, and names of files that are no UTF-8?"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lossscope_cli import _errors, _output, _progress
from lossscope_cli.app import app
from rich.console import Console
from typer.testing import CliRunner

from lossscope.errors import InputError, Interrupted, SpecError
from tests.hostile_names import CONTROLS, HOSTILE


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize("kind", [InputError, SpecError, Interrupted, OSError])
def test_no_message_steers_the_terminal(kind: type[Exception], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _errors.explain(kind(f"key of {name} must be known"))
    written = capsys.readouterr().err
    assert "must be known" in written and not set(written) & set(CONTROLS)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_label_of_a_bar_steers_the_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _progress.progress_lines(every=0)(name, 1, 2)
    written = capsys.readouterr().err
    assert "1/2" in written and not set(written) & set(CONTROLS)


def test_brackets_of_a_label_are_no_style_of_a_bar() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=160, _environ={"TERM": "xterm"}, color_system=None)
    with _progress._bars(console) as report:
        report("[link=https://example.com]a[/] \x1b]0;b\x07", 1, 2)
    assert "[link=https://example.com]a[/] \\x1b]0;b\\x07" in stream.getvalue()


def test_csv_has_no_formulas_and_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    _output.print_csv(pd.DataFrame({"name": ["=1+1", "\x1b[31mred"], "mean": [-1.0, 2.0]}))
    assert capsys.readouterr().out == "name,mean\n'=1+1,-1.0\n\\x1b[31mred,2.0\n"


@pytest.mark.parametrize("format", ["table", "json", "csv", "markdown", "latex"])
def test_a_file_whose_name_is_no_utf8_is_evaluated(tmp_path: Path, format: str) -> None:
    """It was a traceback of pyarrow's: `surrogates not allowed`."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\x1b[31m.npz")
    vectors = np.eye(4, dtype=np.float32)
    with open(path, "wb") as stream:
        np.savez(stream, images=vectors, captions=vectors, caption_image=np.arange(4))
    done = CliRunner().invoke(app, ["eval", path, "--format", format])
    assert done.exit_code == 0, done.output
    assert not set(done.stdout) & set(CONTROLS)
    assert "xff" in done.stdout or format not in ("json", "csv")


def test_rows_of_a_csv_with_a_formula_give_the_name_back(tmp_path: Path) -> None:
    rows = "label,direction,statistic,mean\n'=a,i2t,W_neg,0.5\n'=a,i2t,W_low,0.2\n'=a,i2t,N_eff,7\n"
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    out = tmp_path / "a.svg"
    done = CliRunner().invoke(app, ["plot", "weight_mass", str(tmp_path / "rows.csv"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "=a" in out.read_text(encoding="utf-8") and "&apos;=a" not in out.read_text(encoding="utf-8")


def test_rows_of_which_nothing_can_be_made_are_an_error_with_the_file(tmp_path: Path) -> None:
    """The message said which columns there must be, and not of which file."""
    (tmp_path / "rows.csv").write_text("label,mean\na,1\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["plot", "weight_mass", str(tmp_path / "rows.csv")])
    assert done.exit_code == 1 and f"{tmp_path / 'rows.csv'} must be rows of numbers" in done.output
