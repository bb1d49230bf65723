"""Do the tables show the numbers of the runs and of the papers side by side?"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import (
    bleeker2022_1,
    bleeker2022_2,
    bleeker2022_3,
    bleeker2022_4,
    li2022_3,
    li2022_4,
    li2022_6,
    xuan2023_6,
)
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from lossscope.tables.published import base as published
from tests.each import each
from tests.tables.invented import study

NAMES = [f"bleeker2022_{k}" for k in range(1, 5)] + [f"li2022_{k}" for k in range(1, 8)] + ["xuan2023_2", "xuan2023_6"]
SPECS = {"Triplet": "triplet:margin=0.2", "Triplet SH": "triplet_sh:margin=0.2", "NT-Xent": "ntxent:tau=0.1"}
UNIFIED = "unified:margin=0.2,gamma=60"
LATEX = r"""\begin{table}[htbp]
\centering
\caption{Retrieval by loss and model (Table 1 of Bleeker \& de Rijke (2022)). Recall in \%, rsum (the sum of the six recalls) in points; mAP@5\_hits in {[}0, 1] divides by the hits among the first 5, mAP@5 by min(5, number of relevant). Data scenes, ambiguity 0.1; encoder VSE++; test split. Objectives: Triplet (margin 0.2), Triplet SH (margin 0.2), NT-Xent (tau 0.1), SmoothAP (tau 0.01). Ours: mean $\pm$ sample standard deviation over n = 3 runs (seeds 0, 1, 2). Best of a block bold, second underlined, among ours. No significance test was made.}
\label{tab:bleeker2022-1-t2i}
\footnotesize\setlength{\tabcolsep}{4pt}
\par\smallskip
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrrrr}
\toprule
 & \multicolumn{2}{c}{t2i R@1} & \multicolumn{2}{c}{t2i R@5} & \multicolumn{2}{c}{t2i R@10} \\
\cmidrule(lr){2-3} \cmidrule(lr){4-5} \cmidrule(lr){6-7}
loss & ours & published & ours & published & ours & published \\
\midrule
Triplet & $31.0 \pm 1.0$ & $23.4 \pm 0.3$ & $51.0 \pm 1.0$ & $52.8 \pm 0.1$ & $61.0 \pm 1.0$ & $65.7 \pm 0.3$ \\
Triplet SH & $33.0 \pm 1.0$ & $30.0 \pm 0.3$ & $53.0 \pm 1.0$ & $59.0 \pm 0.2$ & $63.0 \pm 1.0$ & $70.4 \pm 0.4$ \\
NT-Xent & \underline{$35.0 \pm 1.0$} & $27.0 \pm 0.3$ & \underline{$55.0 \pm 1.0$} & $57.3 \pm 0.3$ & \underline{$65.0 \pm 1.0$} & $69.1 \pm 0.2$ \\
SmoothAP & $\mathbf{37.0 \pm 1.0}$ & $29.1 \pm 0.3$ & $\mathbf{57.0 \pm 1.0}$ & $58.1 \pm 0.1$ & $\mathbf{67.0 \pm 1.0}$ & $69.7 \pm 0.2$ \\
\bottomrule
\end{tabular}}
\par\medskip
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrr}
\toprule
 & \multicolumn{2}{c}{t2i average recall} & \multicolumn{2}{c}{rsum} \\
\cmidrule(lr){2-3} \cmidrule(lr){4-5}
loss & ours & published & ours & published \\
\midrule
Triplet & $47.7 \pm 1.0$ & $47.3 \pm 0.1$ & $286.0 \pm 6.0$ & $309.4 \pm 0.9$ \\
Triplet SH & $49.7 \pm 1.0$ & $53.1 \pm 0.2$ & $298.0 \pm 6.0$ & $353.8 \pm 1.6$ \\
NT-Xent & \underline{$51.7 \pm 1.0$} & $51.1 \pm 0.2$ & \underline{$310.0 \pm 6.0$} & $337.1 \pm 1.3$ \\
SmoothAP & $\mathbf{53.7 \pm 1.0}$ & $52.3 \pm 0.2$ & $\mathbf{322.0 \pm 6.0}$ & $350.4 \pm 1.7$ \\
\bottomrule
\end{tabular}}
\par\smallskip{\footnotesize\raggedright Published, Bleeker \& de Rijke (2022): $\pm$ population standard deviation over 5 runs.\par}
\par\smallskip{\footnotesize\raggedright Published rows: flickr30k (1K test), VSE++ (ResNet50, frozen) beside scenes, ambiguity 0.1, VSE++.\par}
\par\smallskip{\footnotesize\raggedright Published numbers are for other data and models than ours; they only give an orientation.\par}
\end{table}
"""  # noqa: E501


def _build(name: str) -> Callable[..., list[Table]]:
    build: Callable[..., list[Table]] = importlib.import_module(f"lossscope.tables.{name}").build
    return build


def _cell(table: Table, row: int | str, heading: str) -> Cell:
    index = row if isinstance(row, int) else [line[table.headings.index("loss")].text for line in table.rows].index(row)
    return table.rows[index][table.headings.index(heading)]


def test_latex_of_table_1_is_golden() -> None:
    assert bleeker2022_1.build(study())[1].to_latex() == LATEX


def test_seeds_become_mean_and_sample_deviation() -> None:
    i2t, t2i = bleeker2022_1.build(study(seeds=(0, 1, 5)))
    cell = _cell(i2t, "Triplet", "i2t R@1 ours")
    assert (cell.mean, cell.std) == (32.0, pytest.approx(math.sqrt(7)))  # 30, 31, 35
    assert _cell(t2i, "Triplet", "rsum ours").mean == 2 * (3 * 32 + 50)
    assert _cell(i2t, "Triplet", "i2t average recall ours").mean == pytest.approx(32 + 50 / 3)
    assert "sample standard deviation over n = 3 runs (seeds 0, 1, 5)" in i2t.caption


def test_one_run_has_no_deviation() -> None:
    for name in ("bleeker2022_1", "bleeker2022_2"):
        table = _build(name)(study(seeds=(7,)))[0]
        assert not any(cell.has_std for row in table.rows for cell in row[1::2] if cell.std_digits is None)
        assert "one run (seed 7)" in table.caption and "no deviation" in table.caption


def test_published_numbers_stand_as_printed() -> None:
    i2t, t2i = bleeker2022_2.build(study())
    assert _cell(i2t, "Triplet SH", "i2t C_q published").plain() == "1 ± 0.0"
    assert _cell(i2t, "Triplet", "i2t C_B published").plain() == "768.92 ± 96.87"
    assert _cell(t2i, "Triplet SH", "t2i C_0 published").plain() == "29.75 ± 4.62"


@each("name", NAMES)
def test_every_printed_number_is_there_on_request(name: str) -> None:
    paper = next(paper for paper in published.PAPERS if name.startswith(paper.partition("_")[0]))
    printed = published.load(paper, int(name[-1])).dropna(subset=["mean"])
    objective = next(o for o in printed["objective"].dropna() if o != "goal")
    spec = {"smoothap": "smoothap:tau=0.01"}.get(objective, f"{objective}:margin=0.2")
    frame = study({"own": spec}, {"none": None}, {"own data": None}, (0,))
    frame = frame.assign(eps=frame["eps"].where(frame["probe"] == "cocos"))
    cells = [
        cell
        for table in _build(name)(frame, all_printed=True)
        for row in table.rows
        for cell, (_, who) in zip(row, table.columns, strict=True)
        if who == "published" and not cell.missing
    ]
    assert sorted(cell.mean for cell in cells) == sorted(printed["mean"])
    assert not any(cell.best or cell.second for cell in cells)


def test_conventions_stand_side_by_side_and_the_wrong_counters_are_marked() -> None:
    i2t, t2i = bleeker2022_2.build(study())
    assert i2t.headings[1:4] == ("i2t C_q corrected", "i2t C_q released", "i2t C_q published")
    assert [_cell(i2t, 0, f"i2t C_q {who}").mark for who in ("corrected", "released", "published")] == ["", "", ""]
    assert [_cell(t2i, 0, f"t2i C_q {who}").mark for who in ("corrected", "released", "published")] == ["", "a", "a"]
    assert [_cell(t2i, 0, f"t2i C_0 {who}").mark for who in ("corrected", "released", "published")] == ["", "a", "a"]
    assert _cell(t2i, 0, "t2i C_B released").mark == ""
    assert _cell(t2i, "Triplet SH", "t2i C_q published").mark == ""
    assert t2i.notes[0].startswith("[a] The released counter sums t2i counts of the triplet loss per image")
    (_, smooth) = bleeker2022_4.build(study())
    assert smooth.headings[1:5] == tuple(f"t2i C_q {who}" for who in ("corrected", "released", "text", "published"))
    assert [_cell(smooth, 0, f"t2i C_0 {who}").mark for who in ("released", "text", "published")] == ["a", "", "a"]
    assert "at least 614 of 640" in smooth.notes[0]


def test_the_wrong_counter_is_marked_without_a_published_row() -> None:
    _, t2i = bleeker2022_2.build(study(data={"mine": None}))
    assert _cell(t2i, "Triplet", "t2i C_q released").mark == "a"
    assert _cell(t2i, "Triplet", "t2i C_q published").plain() == "–"


def test_numbers_known_to_be_wrong_are_marked() -> None:
    frame = study({"NT-Xent": "ntxent:tau=0.1"}, {"VSRN": "VSRN"}, {"COCO": "mscoco"})
    _, t2i = bleeker2022_1.build(frame)
    assert _cell(t2i, 0, "t2i average recall published") == Cell(mean=54.6, std=0.1, std_digits=1, mark="a")
    assert "54.8" in t2i.notes[0]
    frame = study({"Unified": "unified:margin=0.2,gamma=50"}, {"SGRAF": "SGRAF*"}, {"COCO": "mscoco"})
    _, t2i = li2022_6.build(frame.assign(members="SAF, SGR"))
    assert _cell(t2i, 0, "rsum published").mark == "a"
    assert t2i.notes[0] == "[a] 429.5 is printed; the printed recalls add up to 435.8."


def test_the_papers_map_is_compared_with_the_same_quantity() -> None:
    i2t, _ = bleeker2022_1.build(study())
    assert _cell(i2t, 0, "i2t mAP@5_hits ours").mean == pytest.approx(0.4)
    assert _cell(i2t, 0, "i2t mAP@5_hits published").plain() == "0.41 ± 0.00"
    assert "i2t mAP@5 ours" in i2t.headings and "i2t mAP@5 published" not in i2t.headings


def test_own_objectives_stand_in_table_1_only() -> None:
    frame = study({"Triplet": "triplet:margin=0.2", "Mine": "./mine.py:Loss", "NT-Xent": "ntxent:tau=0.1"})
    i2t, _ = bleeker2022_1.build(frame)
    assert [row[0].text for row in i2t.rows] == ["Triplet", "NT-Xent", "Mine"]
    assert _cell(i2t, "Mine", "i2t R@1 published").missing and "–: not printed, or not measured." in i2t.notes
    assert [row[0].text for row in bleeker2022_3.build(frame)[0].rows] == ["NT-Xent"]


def test_best_and_second_are_of_ours_and_of_a_block() -> None:
    frame = study(encoders={"VSE++": "VSE++ (ResNet50, frozen)", "VSRN": "VSRN"})
    i2t, _ = bleeker2022_1.build(frame)
    column = [row[i2t.headings.index("i2t R@1 ours")] for row in i2t.rows]
    assert [cell.best for cell in column] == [False, False, False, True] * 2
    assert [cell.second for cell in column] == [False, False, True, False] * 2


def test_data_other_than_the_papers_is_named() -> None:
    orientation = "only give an orientation"
    assert any(orientation in note for note in bleeker2022_1.build(study())[0].notes)
    same = bleeker2022_1.build(study(data={"Flickr30k": "flickr30k", "MS-COCO": "mscoco"}))[0]
    assert not any(orientation in note for note in same.notes)
    none = bleeker2022_1.build(study(data={"Flickr8k": None}))[0]
    assert any(note.startswith("Bleeker & de Rijke (2022) has no row for these") for note in none.notes)


def test_parameters_that_differ_are_named() -> None:
    i2t, _ = bleeker2022_3.build(study({"NT-Xent": "ntxent:tau=0.05"}))
    assert "NT-Xent (tau 0.05)" in i2t.caption
    assert any("NT-Xent: tau 0.05, printed 0.1" in note for note in i2t.notes)
    small = study({"NT-Xent": "ntxent:tau=0.1"}).replace({"batch_size": {128: 64}, "eps": {0.01: 0.05}})
    (note,) = [note for note in bleeker2022_3.build(small)[0].notes if note.startswith("Parameters")]
    assert note.endswith("NT-Xent: eps 0.05, printed 0.01, batch size 64, printed 128.")
    margin = bleeker2022_1.build(study({"Triplet": "triplet:margin=0.3"}))[0]
    assert any("Triplet: margin 0.3, printed 0.2" in note for note in margin.notes)


def test_a_loss_that_is_not_the_papers_says_so_beside_its_number() -> None:
    """rsp and ncr, bit-equal to triplet_sh, stood beside 66.5 and 77.3 without a word."""
    at_defaults = "Rsp at its defaults equals triplet_sh: the coefficients of its polynomial are not published; give "
    cases = {
        "rsp:margin=0.2,a1=1,a2=0,a3=0": at_defaults + "rsp:a1=A,a2=B,a3=C.",
        "rsp": at_defaults + "rsp:a1=A,a2=B,a3=C.",
        "rsp:a2=0.3": None,
        "ncr": "The labels of ncr come from one network; in the paper two networks label for each other.",
        "unified": None,
    }
    for spec, sentence in cases.items():
        method = "SGRAF*" if spec == "ncr" else "SCAN T2I AVG"
        frame = study({"L": spec}, {"M": method}, seeds=(0,)).assign(members="SAF, SGR" if "*" in method else None)
        table = li2022_3.build(frame)[0]
        printed = {"ncr": "77.3", "unified": "70.7"}.get(spec, "66.5")
        assert printed in table.to_text(300), spec
        names = ("Rsp at its defaults", "The labels of ncr", "The size and")
        assert [note for note in table.notes if note.startswith(names)] == ([sentence] if sentence else [])


def test_learnt_scales_are_counted_and_named() -> None:
    frame = study({"NT-Xent": "ntxent:tau=0.1"}, seeds=(0,)).replace(
        {"objective": {"ntxent:tau=0.1": "ntxent:tau=0.07"}}
    )
    i2t, _ = bleeker2022_3.build(frame)
    assert _cell(i2t, 0, "i2t C_neg corrected").mean == 10.0
    assert "tau 0.07" in i2t.caption
    assert any(note.endswith("NT-Xent/0: ntxent:tau=0.07.") for note in i2t.notes)


def test_counts_with_another_objective_are_not_taken() -> None:
    frame = study({"NT-Xent": "ntxent:tau=0.1"}, seeds=(0,))
    other = frame[frame["probe"] == "cocos"].assign(objective="ntxent:tau=0.05", mean=99.0)
    table = bleeker2022_3.build(pd.concat([frame, other], ignore_index=True))[0]
    assert _cell(table, 0, "i2t C_neg corrected").mean == 10.0


def test_video_directions_are_ours() -> None:
    frame = study({"Unified": "unified:margin=0.2,gamma=50"}, {"CE": "CE"}, {"MSR-VTT": "msrvtt"})
    i2t, t2i = li2022_4.build(frame)
    printed = published.load("li2022_unified", 4).set_index(["row_id", "direction", "metric"])["mean"]
    assert _cell(i2t, 0, "i2t R@1 published").mean == printed["T4r02", "v2t", "R@1"]
    assert _cell(t2i, 0, "t2i R@10 published").mean == printed["T4r02", "t2v", "R@10"]
    assert "rsum ours" in t2i.headings and "rsum published" not in t2i.headings


def test_the_best_combination_of_each_block_is_added() -> None:
    goal = {
        f"{t}/{p}": f"goal:triplet={t},pair={p},tau=10" for t, p in (("con", "con"), ("cir", "sig-ms"), ("nca", "sig"))
    }
    frame = study(
        {"SH": "triplet_sh:margin=0.2", **goal}, {"BUTD": "VSE∞ (BUTD)", "WSL": "VSE∞ (WSL)"}, {"COCO": "mscoco"}
    )
    frame.loc[(frame["encoder"] == "WSL") & (frame["objective_label"] == "con/con"), "mean"] += 50
    i2t, _ = xuan2023_6.build(frame)
    assert [(row[0].text, row[1].text) for row in i2t.rows] == [
        ("BUTD", "SH"), ("BUTD", "cir/sig-ms"), ("BUTD", "nca/sig"),
        ("WSL", "SH"), ("WSL", "cir/sig-ms"), ("WSL", "con/con"),
    ]  # fmt: skip
    assert _cell(i2t, 1, "i2t R@1 published").plain() == "63.2"


def test_runs_of_other_data_are_named() -> None:
    frame = study({"Unified": UNIFIED}, {"VSE++": "VSE++ (BUTD)"}, {"Flickr30k": "flickr30k", "COCO": "mscoco"})
    table = li2022_6.build(frame)[0]
    assert len(table.rows) == 1 and "Not in this table: Unified on Flickr30k." in table.notes
    with pytest.raises(InputError, match=r"table li2022_6 must have runs of .* on mscoco .*got Unified on flickr30k"):
        li2022_6.build(frame[frame["dataset"] == "flickr30k"])


def test_thresholds_that_every_run_has_get_lines_of_their_own() -> None:
    frame = study({"NT-Xent": "ntxent:tau=0.1"})
    other = frame[frame["probe"] == "cocos"].assign(eps=0.05, mean=frame["mean"] - 5)
    table = bleeker2022_3.build(pd.concat([frame, other], ignore_index=True))[0]
    assert [row[1].text for row in table.rows] == ["0.01", "0.05"] and table.headings[1] == "eps"
    assert [_cell(table, k, "i2t C_neg corrected").mean for k in (0, 1)] == [11.0, 6.0]
    assert "eps" not in table.caption.partition("; C_0")[2].replace("above eps", "")


@each("seed", range(2))
def test_the_order_of_rows_moves_blocks_only(seed: int) -> None:
    specs = {name: SPECS[name] for name in ("Triplet SH", "Triplet", "NT-Xent")}
    frame = study(specs, {"VSE++": "VSE++ (ResNet50, frozen)", "VSRN": "VSRN"}, seeds=(0, 1))
    mixed = frame.sample(frac=1.0, random_state=seed)
    for build in (bleeker2022_1.build, bleeker2022_2.build):
        for table, shuffled in zip(build(frame), build(mixed), strict=True):
            assert sorted(map(str, table.rows)) == sorted(map(str, shuffled.rows))
            assert table.columns == shuffled.columns and table.caption == shuffled.caption
            first = [row[0].text for row in shuffled.rows]
            assert list(dict.fromkeys(first)) == list(mixed["encoder"].unique())
            assert [row[1].text for row in shuffled.rows[: len(shuffled.rows) // 2]] == _losses(table)


def _losses(table: Table) -> list[str]:
    return list(dict.fromkeys(str(row[1].text) for row in table.rows))
