"""Do the grids of GOAL have every combination in its cell?"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import xuan2023_3, xuan2023_4, xuan2023_5
from lossscope.tables.published import base as published
from tests.each import each
from tests.tables.invented import study

TUNED = {"VSE++ R152": "VSE++ (ResNet152, fine-tuned)"}
PAIRS = ("con", "lin", "sig", "lin-ms", "sig-ms")
GOAL = {
    f"{triplet}, {pair}": f"goal:triplet={triplet},pair={pair},tau=10,margin=0.2"
    for triplet in ("con", "nca", "cir")
    for pair in PAIRS
}
LATEX = r"""\begin{table}[htbp]
\centering
\caption{Triplet weights against pair weights, VSE++ with ResNet152 (Table 3 of Xuan \& Chen (2023)): i2t, VSE++ R152, COCO. R@1 in \%. Rows: pair weight P; columns: triplet weight T. Test split. Objectives: goal (tau 10, margin 0.2). Ours: mean $\pm$ sample standard deviation over n = 2 runs (seeds 0, 1). Best of the grid bold, second underlined, among ours. No significance test was made.}
\label{tab:xuan2023-3-i2t}
\small\setlength{\tabcolsep}{4pt}
\par\smallskip
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrrrr}
\toprule
 & \multicolumn{2}{c}{T con} & \multicolumn{2}{c}{T nca} & \multicolumn{2}{c}{T cir} \\
\cmidrule(lr){2-3} \cmidrule(lr){4-5} \cmidrule(lr){6-7}
pair weight & ours & published & ours & published & ours & published \\
\midrule
con & $30.5 \pm 0.7$ & $40.8 \pm 0.3$\textsuperscript{a} & $40.5 \pm 0.7$ & $41.0 \pm 0.3$ & $50.5 \pm 0.7$ & $41.2 \pm 0.1$ \\
lin & $32.5 \pm 0.7$ & $41.3 \pm 0.2$ & $42.5 \pm 0.7$ & $42.6 \pm 0.3$ & $52.5 \pm 0.7$ & $42.3 \pm 0.5$ \\
sig & $34.5 \pm 0.7$ & $42.2 \pm 0.2$ & $44.5 \pm 0.7$ & $43.4 \pm 0.1$ & $54.5 \pm 0.7$ & $43.3 \pm 0.0$ \\
lin-ms & $36.5 \pm 0.7$ & $41.8 \pm 0.3$ & $46.5 \pm 0.7$ & $42.6 \pm 0.6$ & \underline{$56.5 \pm 0.7$} & $42.8 \pm 0.2$ \\
sig-ms & $38.5 \pm 0.7$ & $43.6 \pm 0.3$ & $48.5 \pm 0.7$ & $43.8 \pm 0.5$ & $\mathbf{58.5 \pm 0.7}$ & $43.8 \pm 0.5$\textsuperscript{b} \\
\bottomrule
\end{tabular}}
\par\smallskip{\footnotesize\raggedright {[}a] Table 2 prints 41.0 $\pm$ 0.3 for the same experiment.\par}
\par\smallskip{\footnotesize\raggedright {[}b] Table 6 prints 44.3 for the same experiment.\par}
\par\smallskip{\footnotesize\raggedright Published, Xuan \& Chen (2023): $\pm$ deviation over 3 runs, its kind is not stated.\par}
\par\smallskip{\footnotesize\raggedright Published rows: mscoco (5K test), VSE++ (ResNet152, fine-tuned) beside COCO, VSE++ R152.\par}
\end{table}
"""  # noqa: E501


def _grid(**more: object) -> pd.DataFrame:
    return study(**{"specs": GOAL, "encoders": TUNED, "data": {"COCO": "mscoco"}, "seeds": (0, 1), **more})


def test_latex_of_a_grid_is_golden() -> None:
    assert xuan2023_3.build(_grid())[0].to_latex() == LATEX


def test_the_best_is_of_the_whole_grid_whatever_the_order() -> None:
    mixed = _grid().sample(frac=1.0, random_state=0)
    i2t, t2i = xuan2023_3.build(mixed)
    assert [table.rows for table in xuan2023_3.build(_grid())] == [i2t.rows, t2i.rows]
    assert [cell.best for row in i2t.rows for cell in row].count(True) == 1
    assert [cell.second for row in i2t.rows for cell in row].count(True) == 1


def test_combinations_without_a_run_are_dashes() -> None:
    frame = _grid()
    table, _ = xuan2023_3.build(frame[frame["objective_label"].isin(["con, con", "cir, sig-ms"])])
    dashes = [
        (row[0].text, head)
        for row in table.rows
        for cell, head in zip(row, table.headings, strict=True)
        if cell.missing
    ]
    assert len(dashes) == 13 and ("con", "T con ours") not in dashes
    assert all(head.endswith("ours") for _, head in dashes)


@each("build, number", [(xuan2023_3.build, 3), (xuan2023_4.build, 4), (xuan2023_5.build, 5)])
def test_all_printed_grids_are_there_on_request(build: Callable[..., list], number: int) -> None:
    tables = build(_grid(encoders={"mine": None}), all_printed=True)
    cells = [
        c for t in tables for row in t.rows for c, (_, who) in zip(row, t.columns, strict=True) if who == "published"
    ]
    printed = published.load("xuan2023_goal", number)["mean"]
    assert sorted(cell.mean for cell in cells if not cell.missing) == sorted(printed)
    assert len(tables) == 6 and len({table.name for table in tables}) == 6


def test_models_of_another_table_are_refused_or_named() -> None:
    with pytest.raises(
        InputError, match=r"table xuan2023_4 must have its own models .*; got VSE\+\+ \(ResNet152, fine-tuned\)"
    ):
        xuan2023_4.build(_grid())
    both = _grid(encoders={**TUNED, "mine": None})
    assert all("VSE++ R152" not in table.caption for table in xuan2023_4.build(both))


def test_other_parameters_make_another_grid() -> None:
    more = {f"{name}, 5": spec.replace("tau=10", "tau=5") for name, spec in GOAL.items()}
    tables = xuan2023_3.build(_grid(specs={**GOAL, **more}))
    assert [table.name for table in tables] == [
        "xuan2023_3-1-i2t",
        "xuan2023_3-1-t2i",
        "xuan2023_3-2-i2t",
        "xuan2023_3-2-t2i",
    ]
    assert "goal (tau 5, margin 0.2)" in tables[2].caption
    assert all(sum(cell.best for row in table.rows for cell in row) == 1 for table in tables)


def test_two_objectives_for_one_cell_are_refused() -> None:
    with pytest.raises(
        InputError, match="each cell of table xuan2023_3 must be of one objective; got con, con and again"
    ):
        xuan2023_3.build(_grid(specs={**GOAL, "again": GOAL["con, con"]}))


def test_a_missing_seed_marks_its_cell() -> None:
    frame = _grid()
    table, _ = xuan2023_3.build(frame[frame["run"] != "COCO/VSE++ R152/nca, sig/1"])
    assert (table.rows[2][3].plain(), table.rows[2][3].mark) == ("44.0", "a")
    assert "[a] seed 1 of COCO, VSE++ R152, nca, sig missing: n = 1." in table.notes


def test_tests_mark_cells_of_the_grid() -> None:
    where = {"data": "COCO", "encoder": "VSE++ R152", "statistic": "R@1", "direction": "i2t", "baseline": "cir, sig-ms"}
    tests = pd.DataFrame([{**where, "objective_label": name, "p_holm": 0.01} for name in GOAL if name != "cir, sig-ms"])
    i2t, t2i = xuan2023_3.build(_grid(), tests)
    assert sum("†" in cell.mark for row in i2t.rows for cell in row) == 14
    assert "Differs from the best" in i2t.caption and "No significance test of these" in t2i.caption
