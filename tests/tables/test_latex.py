"""Is a table readable in print: no wider than a line, in letters of at least the least size, with any columns?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.report.latex import PREAMBLE
from lossscope.tables._latex_layout import HEIGHT, WIDTH, arrange_latex, float_height, floats
from lossscope.tables._latex_text import latex_text
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each
from tests.pdflatex import compile_latex, keep_basic_packages, overfull

DOCUMENT = rf"""\documentclass{{article}}
{PREAMBLE}\usepackage[textwidth=397pt,textheight=650pt]{{geometry}}
\begin{{document}}
\input{{tables}}
\end{{document}}
"""


def table(columns: int, rows: int = 3, label: str = "loss", group: str = "") -> Table:
    heads = tuple((group and f"{group} {k // 4}", f"C_{name}") for k, name in enumerate(["neg", "q"] * columns))[
        :columns
    ]
    body = [
        (Cell(text=f"{label} {row}"), *(Cell(mean=12.345, std=0.5, digits=2) for _ in heads)) for row in range(rows)
    ]
    return Table("t", "Counts.", (("", "loss"), *heads), tuple(body))


@each("columns, size", [(3, "small"), (6, "footnotesize"), (7, "scriptsize")])
def test_letters_become_smaller_before_a_table_is_split(columns: int, size: str) -> None:
    text = table(columns, rows=9).to_latex()
    assert rf"\{size}\setlength" in text and text.count(r"\begin{tabular}") == 1


def test_a_wide_table_is_split_and_labels_are_repeated() -> None:
    text = table(16, rows=7, group="i2t").to_latex()
    assert text.count(r"\begin{tabular}") > 1 and r"\footnotesize\setlength" in text
    assert text.count("loss 6 & ") == text.count(r"\begin{tabular}")
    assert text.count(r"\caption") == 1


def test_a_long_table_becomes_several_floats() -> None:
    text = table(3, rows=95).to_latex()
    assert text.count(r"\begin{table}") == 3 == text.count(r"\end{table}")
    assert text.count(r"\label{tab:t}") == 1 and text.count(r"(continued from Table~\ref{tab:t})") == 2
    assert all(len(part.splitlines()) < 60 for part in text.split(r"\end{table}"))


def test_a_long_text_is_a_paragraph_of_its_cell() -> None:
    text = table(2, label="a run with a long name that says which data and model it has").to_latex()
    assert text.count(r"\parbox[t]{") == 3 and r"\raggedright\strut a run" in text


def test_long_labels_become_narrow_paragraphs_before_letters_become_tiny() -> None:
    heads = tuple(("", f"label {number}") for number in range(6))
    rows = [
        (
            *(Cell(text=f"name {row} {number} with as many words as a line of a table has") for number in range(6)),
            Cell(mean=row),
        )
        for row in range(30)
    ]
    grid = Table("t", "Counts.", (*heads, ("", "C_neg")), tuple(rows))
    layout = arrange_latex(grid.shown)
    assert layout.width <= WIDTH and layout.scale == 0.8


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 200), st.integers(0, 1200), st.integers(0, 3000))
def test_floats_are_no_higher_than_a_page_and_lose_no_row(rows: int, letters: int, caption: int, note: int) -> None:
    whole = table(3, rows, "word " * (letters // 5))
    grid = replace(whole, caption="word " * (caption // 5), notes=("note " * (note // 5),)).shown
    layout = arrange_latex(grid)
    pages = floats(grid, layout)
    assert [row for page in pages for sheet in page for row in sheet.rows] == list(layout.sheets[0].rows)
    assert all(len(sheet.rows) > 0 for page in pages for sheet in page)
    assert all(float_height(grid, layout, page, is_last=page is pages[-1]) <= HEIGHT or len(page[0].rows) <= 3
               for page in pages)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 120), st.sampled_from(["", "i2t"]))
def test_no_sheet_is_wider_than_a_line(columns: int, rows: int, letters: int, group: str) -> None:
    layout = arrange_latex(table(columns, rows, "x" * letters, group).shown)
    assert layout.width <= WIDTH and layout.scale >= 0.7


@each("text, latex", [
    ("C_neg", r"$C_{\mathrm{neg}}$"),
    ("C_q_all", r"$C_{q,\mathrm{all}}$"),
    ("C_0, N_eff", r"$C_{0}$, $N_{\mathrm{eff}}$"),
    ("W_low: s_pos", r"$W_{\mathrm{low}}$: $s_{\mathrm{pos}}$"),
    ("mAP@5_hits hub_skewness C_negative", r"mAP@5\_hits hub\_skewness C\_negative"),
    ("runs/scenes/ntxent-tau-0.1-seed0", r"runs/\allowbreak{}scenes/\allowbreak{}ntxent-tau-0.1-seed0"),
])  # fmt: skip
def test_statistics_are_formulas_and_long_words_can_be_broken(text: str, latex: str) -> None:
    assert latex_text(text) == latex


@pytest.mark.parametrize("packages", ["all", "basic"])
def test_what_latex_makes_of_it_is_no_wider_than_a_page(packages: str, tmp_path: Path) -> None:
    long = "checkpoints/" * 12 + "unified:gamma=60,joint=false,partition_mode=sum"
    tables = [table(columns, rows, group=group) for columns, rows, group in
              ((3, 3, ""), (7, 9, ""), (16, 9, "i2t"), (3, 95, ""), (12, 2, "i2t"))]  # fmt: skip
    many = "a run with a long name that says which data and model it has, and under which rule it was stopped"
    tables += [replace(table(5, rows, many), notes=("what is below the table, " * notes,)) for rows, notes in
               ((12, 8), (31, 40), (14, 90), (70, 3))]  # fmt: skip
    tables += [Table("u", f"Of {long}.", (("", "run"), ("", "rsum")), ((Cell(text=long), Cell(mean=1.0)),), (long,))]
    (tmp_path / "tables.tex").write_text("\n".join(each_table.to_latex() for each_table in tables), encoding="utf-8")
    (tmp_path / "main.tex").write_text(DOCUMENT, encoding="utf-8")
    if packages == "basic":
        keep_basic_packages(tmp_path)
    assert overfull(compile_latex(tmp_path)) < 5
