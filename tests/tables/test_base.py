"""Are tables written correctly in every format, with marks and escapes?"""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.tables import _latex_text, formats
from lossscope.tables._grid import one_line
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell, mark_best
from tests.each import each

# the expected float, character by character
LATEX = r"""\begin{table}[htbp]
\centering
\caption{100\% of A \& B: \$5, a\_b, \#1, \{x\}, \textasciitilde{}\textasciicircum{}\textbackslash{}$\tau$}
\label{tab:my-table}
\small\setlength{\tabcolsep}{4pt}
\par\smallskip
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrr}
\toprule
 & \multicolumn{2}{c}{i2t} &  \\
\cmidrule(lr){2-3}
loss & R@1 & medr & rsum \\
\midrule
a\_b & $\mathbf{65.2 \pm 0.4}$ & \underline{$3.0$} & -- \\
c & $\mathbf{65.2}$ & $\mathbf{2.0}$ & $300.0$ \\
d & \underline{$61.0 \pm 0.0$} & $4.0$ & -- \\
\bottomrule
\end{tabular}}
\par\smallskip{\footnotesize\raggedright See 50\%.\par}
\end{table}
"""


def _table(caption="100% of A & B: $5, a_b, #1, {x}, ~^\\τ", first="a_b"):
    rows = [
        [Cell(text=first), Cell(mean=65.21, std=0.38), Cell(mean=3.0), Cell()],
        [Cell(text="c"), Cell(mean=65.18), Cell(mean=2.0), Cell(mean=300.0)],
        [Cell(text="d"), Cell(mean=61.0, std=0.0), Cell(mean=4.0, std=math.nan), Cell(mean=math.nan)],
    ]
    columns = (("", "loss"), ("i2t", "R@1"), ("i2t", "medr"), ("", "rsum"))
    body = mark_best(rows, (None, "higher", "lower", "higher"))
    return Table("my_table", caption, columns, body, ("See 50%.",))


def test_latex_is_golden():
    assert _table().to_latex() == LATEX


def test_text_aligns_and_marks():
    lines = _table("Short").to_text().splitlines()
    assert lines[0] == "Short"
    assert lines[3].split() == ["loss", "R@1", "medr", "rsum"]
    assert lines[5].split() == ["a_b", "65.2", "±", "0.4*", "3.0+", "–"]
    assert "* best, + second" in lines
    assert lines[-1] == "See 50%."


def test_markdown_escapes_pipes():
    lines = _table("A|B", first="x|<y>").to_markdown().splitlines()
    assert lines[0] == "**A\\|B**"
    assert lines[2] == "| loss | i2t R@1 | i2t medr | rsum |"
    assert lines[3] == "|:--|--:|--:|--:|"
    assert lines[4] == "| x\\|&lt;y> | **65.2 ± 0.4** | <u>3.0</u> | – |"


def test_csv_and_frame_are_raw():
    table = _table()
    frame = pd.read_csv(io.StringIO(table.to_csv()))
    assert list(frame.columns) == ["loss", "i2t R@1", "i2t R@1 std", "i2t medr", "rsum"]
    np.testing.assert_allclose(frame["i2t R@1"], [65.21, 65.18, 61.0])
    assert math.isnan(table.to_frame()["rsum"][0])


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.data = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.data.append(data)


def test_html_is_accessible_and_escaped():
    reader = _Reader()
    reader.feed(_table("<script>", first='<b>"x"&').to_html())
    tags = [tag for tag, _ in reader.tags]
    assert "script" not in tags
    assert "b" not in tags
    assert tags.count("caption") == 1
    assert "<script>" in reader.data
    scopes = [attrs.get("scope") for tag, attrs in reader.tags if tag == "th"]
    assert scopes == ["col", "colgroup", "col", "col", "col", "row", "row", "row"]
    values = [attrs["data-value"] for _, attrs in reader.tags if "data-value" in attrs]
    assert values == ["65.21", "3.0", "65.18", "2.0", "300.0", "61.0", "4.0"]


def test_html_without_groups_has_one_head_row():
    html = Table("t", "c", (("", "a"), ("", "b")), ((Cell(text="x"), Cell(mean=1.0)),)).to_html()
    head = html[html.index("<thead>") : html.index("</thead>")]
    assert head.count("<tr>") == 1
    assert "rowspan" not in head


def test_ties_as_printed_are_marked_alike():
    rows = [[Cell(mean=1.04)], [Cell(mean=0.98)], [Cell(mean=0.5)], [Cell(mean=0.52)], [Cell()]]
    done = mark_best(rows, ("higher",))
    assert [row[0].best for row in done] == [True, True, False, False, False]
    assert [row[0].second for row in done] == [False, False, True, True, False]


@each("sense", ["higher", None])
def test_no_winner_without_a_contest(sense):
    assert not any(row[0].best for row in mark_best([[Cell(mean=1.0)], [Cell(mean=1.0)]], (sense,)))


def test_unknown_letters_are_named_not_fatal():
    table = Table("t", "été 猫", (("", "a"),), ((Cell(text="[x]*"),),))
    assert r"été \texttt{U+732B}" in table.to_latex()
    assert "{[}x]{*}" in table.to_latex()


def test_ragged_rows_are_refused():
    with pytest.raises(InputError, match="row 0 of table 't' must have 1 cells; got 0"):
        Table("t", "c", (("", "a"),), ((),))


def test_marks_are_raised_or_bracketed_and_have_a_column():
    cells = ((Cell(text="a_b", mark="a"), Cell(mean=1.0, std=0.5, std_digits=2, best=True, mark="b,†")),)
    table = Table("t", "c", (("", "loss"), ("", "R@1")), cells, ("[a] a note",))
    assert r"a\_b\textsuperscript{a} & $\mathbf{1.0 \pm 0.50}$\textsuperscript{b,$\dagger$} \\" in table.to_latex()
    assert "<sup>a</sup></th>" in table.to_html() and "<strong>1.0 ± 0.50</strong><sup>b,†</sup>" in table.to_html()
    assert "| a\\_b\\[a\\] | **1.0 ± 0.50**\\[b,†\\] |" in table.to_markdown()
    assert "a_b[a]  1.0 ± 0.50*[b,†]" in table.to_text()
    frame = pd.read_csv(io.StringIO(table.to_csv()))
    assert frame.iloc[0].to_dict() == {"loss": "a_b", "loss mark": "a", "R@1": 1.0, "R@1 std": 0.5, "R@1 mark": "b,†"}


def test_a_notebook_shows_the_html():
    assert _table()._repr_html_() == _table().to_html()


_ESCAPED = sorted({*_latex_text._LATEX.values(), r"\allowbreak{}"}, key=len, reverse=True)
_LATEX_TOKEN = re.compile(
    "|".join(
        [
            *map(re.escape, _ESCAPED),
            r"\\texttt\{U\+[0-9A-F]{4,6}\}",
            r"\$[CWNs]_\{[\\{}a-zB0,]+\}\$",
            r"[^\\{}$&#^_~%<>|\"`*]",
        ]
    )
)


@settings(deadline=None, max_examples=60)
@given(label=st.text(min_size=1) | st.text("\\{}$&#^_~%<>|\"'`*[]-–†∞ ab", min_size=1))
@example(label="a\rb")  # csv readers take a carriage return without quotes for the end of a row
def test_no_label_breaks_a_format(label):
    """In each format a label's character is escaped or harmless, and comes back where the format allows it."""
    table = Table("t", label, (("", "loss"), ("", "R@1")), ((Cell(text=label), Cell(mean=1.0)),), (label,))
    assert re.fullmatch(f"(?:{_LATEX_TOKEN.pattern})*", formats.latex_text(label), re.S)
    latex = table.to_latex().splitlines()
    written = latex[latex.index(r"\midrule") + 1].removesuffix(r" & $1.0$ \\")
    assert formats.latex_text(label) in (written, *re.findall(r"\\raggedright\\strut (.*)\\strut\}$", written))
    reader = _Reader()
    reader.feed(table.to_html())
    reader.close()
    made = {"div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p"}
    assert {tag for tag, _ in reader.tags} <= made
    assert "".join(reader.data).count(one_line(label)) >= 3
    (row,) = [line for line in table.to_markdown().splitlines() if line.endswith("| 1.0 |")]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
    assert pd.read_csv(io.StringIO(table.to_csv()), keep_default_na=False, dtype=str).shape == (1, 2)


@each("format", ["text", "markdown", "html"])
def test_the_sign_of_a_number_is_a_minus_and_zero_has_none(format):
    """Intervals had a minus, numbers a hyphen, and a number rounded to 0 kept its sign."""
    row = (Cell(text="triplet-sh"), Cell(mean=-0.093, digits=2), Cell(mean=-0.04, std=0.1), Cell(text="[−1, 2]"))
    printed = getattr(Table("t", "C.", tuple(("", name) for name in "abcd"), (row,)), f"to_{format}")()
    assert "−0.09" in printed and "triplet-sh" in printed
    assert not re.search(r">-\d|[ |]-\d|[-−]0\.0\b", re.sub(r'data-value="[^"]*"', "", printed))
