"""Does a printed number stand beside ours only where both rank alike, and does the table say why it does not?"""

from __future__ import annotations

import pandas as pd
import pytest

from lossscope.declarations import declarations
from lossscope.errors import InputError
from lossscope.tables import li2022_1, li2022_2, li2022_4, li2022_6, xuan2023_1, xuan2023_3
from lossscope.tables.base import Table
from lossscope.tables.published import base as published
from tests.each import each
from tests.tables.invented import study

UNIFIED = {"Unified": "unified:margin=0.2,gamma=50"}
BUTD = {"VSE++": "VSE++ (BUTD)"}
COCO = {"COCO": "mscoco"}


def in_five_folds(frame: pd.DataFrame, of: str = "COCO") -> pd.DataFrame:
    """Return the rows with those of a data set again, as means over 5 folds, 40 points higher."""
    recall = frame[(frame["probe"] == "recall") & (frame["data"] == of)]
    return pd.concat([frame, recall.assign(sampling="5 folds", n=5, n_defined=5, mean=recall["mean"] + 40)])


def numbers(table: Table, column: str) -> list[str]:
    return [row[table.headings.index(column)].plain() for row in table.rows]


def apart(table: Table) -> list[str]:
    return [note for note in table.notes if note.startswith("Not beside ours")]


def test_whole_split_recall_does_not_stand_beside_means_over_folds() -> None:
    (i2t, _) = li2022_1.build(study(UNIFIED, BUTD, COCO))
    assert numbers(i2t, "i2t R@1 published") == ["–"]
    (note,) = apart(i2t)
    assert "VSE++ (BUTD), mscoco (5-fold 1K)" in note and "means over 5 folds of 1,000 images" in note
    assert "`folds = 5`" in note and "eval --folds 5" in note


def test_means_over_folds_stand_beside_those_of_the_paper_and_the_whole_split_in_its_own_table() -> None:
    frame = in_five_folds(study(UNIFIED, BUTD, {"Flickr30k": "flickr30k", **COCO}, seeds=(0,)))
    (i2t, _) = li2022_1.build(frame)
    assert numbers(i2t, "i2t R@1 ours") == ["30.0", "70.0"] and numbers(i2t, "i2t R@1 published") == ["70.7", "74.0"]
    assert numbers(i2t, "sampling") == ["test split", "5 folds"] and not apart(i2t)
    (whole, _) = li2022_6.build(frame)
    assert numbers(whole, "i2t R@1 ours") == ["30.0"] and numbers(whole, "i2t R@1 published") == ["50.6"]


def test_folds_of_another_size_and_splits_of_another_size_stand_apart() -> None:
    frame = study(UNIFIED, BUTD, {"Flickr30k": "flickr30k", **COCO}, seeds=(0,))
    recall = frame["probe"] == "recall"
    frame.loc[recall, "n"] = frame.loc[recall, "n"] // 2
    flickr, coco = apart(li2022_1.build(in_five_folds(frame))[0])
    assert "the paper ranks 1,000 images, ours 500" in flickr
    assert "the paper ranks 1,000 images of a fold, ours 500" in coco
    other = study(UNIFIED, BUTD, {"scenes": "flickr30k"}, seeds=(0,)).assign(n=50)
    assert not apart(li2022_1.build(other)[0])  # other data, as a footnote says
    assert any("only give an orientation" in note for note in li2022_1.build(other)[0].notes)


def test_means_over_folds_are_not_tested() -> None:
    frame = in_five_folds(study({**UNIFIED, "Triplet-HN": "triplet_sh:margin=0.2"}, BUTD, COCO, seeds=(0,)))
    row = {"data": "COCO", "encoder": "VSE++", "statistic": "R@1", "direction": "i2t", "test": "images"}
    tests = pd.DataFrame([{**row, "objective_label": "Unified", "baseline": "Triplet-HN", "p_holm": 0.001}])
    (folds, _), (whole, _) = li2022_1.build(frame, tests), li2022_6.build(frame, tests)
    assert [row[1].mark for row in folds.rows] == ["", ""] and any("not tested" in note for note in folds.notes)
    assert "†" in "".join(cell.mark for row in whole.rows for cell in row)


@each("members, method, reason", [
    (None, "SGRAF*", "the mean of two models, ours is a single model"),
    ("SAF, SGR", "VSE++ (BUTD)", "a single model, ours by the mean of SAF, SGR"),
])  # fmt: skip
def test_a_single_model_does_not_stand_beside_an_ensemble(members: str | None, method: str, reason: str) -> None:
    frame = study(UNIFIED, {"model": method}, {"Flickr30k": "flickr30k"}, seeds=(0,)).assign(members=members)
    (i2t, _) = li2022_1.build(frame)
    assert numbers(i2t, "i2t R@1 published") == ["–"] and reason in apart(i2t)[0]


def test_an_ensemble_stands_beside_the_papers_and_names_its_members() -> None:
    frame = study(UNIFIED, {"SGRAF*": "SGRAF*"}, {"Flickr30k": "flickr30k"}, seeds=(0,)).assign(members="SAF, SGR")
    (i2t, _) = li2022_1.build(frame)
    assert numbers(i2t, "i2t R@1 published") == ["78.3"]
    assert "SGRAF* ranks by the mean of the similarities of SAF, SGR." in i2t.notes


def test_table_4_has_both_halves() -> None:
    losses = {"Triplet": "triplet:margin=0.09", **UNIFIED}
    (i2t, _) = li2022_4.build(study(losses, {"CE": "CE"}, {"MSR-VTT": "msrvtt"}, seeds=(0,)))
    assert numbers(i2t, "loss") == ["Triplet", "Unified"]
    assert numbers(i2t, "i2t R@1 published") == ["15.6", "17.4"]
    assert "does not name the loss of CE and MMT alone" in i2t.notes[0]


def test_a_model_as_it_came_stands_beside_the_row_without_a_loss() -> None:
    losses = {"none": "vlc:gamma=50", **UNIFIED}
    frame = study(losses, {"CLIP": "CLIP"}, {"Flickr30k": "flickr30k"}, seeds=(0,))
    frame = frame.assign(epochs=[0 if name == "none" else 10 for name in frame["objective_label"]])
    (i2t, _) = li2022_2.build(frame)
    assert dict(zip(numbers(i2t, "loss"), numbers(i2t, "i2t R@1 published"), strict=True)) == {
        "none": "88.0", "Unified": "89.1",
    }  # fmt: skip
    assert "none (" not in i2t.caption


def test_a_table_names_every_run_that_it_leaves_out() -> None:
    losses = {"VLC": "vlc:gamma=50", **{f"NT-Xent {k}": f"ntxent:tau=0.{k}" for k in range(1, 10)}, **UNIFIED}
    (i2t, _) = li2022_1.build(study(losses, BUTD, {"Flickr30k": "flickr30k"}, seeds=(0,)))
    (note,) = [note for note in i2t.notes if note.startswith("Not in this table")]
    assert note.startswith("Not in this table: VLC on Flickr30k; NT-Xent 1") and note.endswith("2 more.")


def test_a_grid_of_goal_of_another_size_has_no_printed_numbers() -> None:
    specs = {"con": "goal:triplet=con,pair=con", "cir": "goal:triplet=cir,pair=con"}
    frame = study(specs, {"VSE++": "VSE++ (ResNet152)"}, COCO, seeds=(0,))
    (whole, _), (small, _) = xuan2023_3.build(frame), xuan2023_3.build(frame.assign(n=1000))
    assert any(cell != "–" for cell in numbers(whole, "T nca published"))
    assert all(cell == "–" for cell in numbers(small, "T nca published")) and apart(small)


def evaluation(**columns: object) -> pd.DataFrame:
    """Return the rows of an evaluation file of two sources."""
    rows = study({**UNIFIED, "Triplet-HN": "triplet_sh:margin=0.2"}, BUTD, {"f": "flickr30k"}, seeds=(0,))
    rows = rows[rows["probe"] == "recall"].assign(source=rows["objective_label"], **columns)
    return rows.drop(columns=["run", "data", "encoder", "objective_label", "spec", "dataset", "method"])


def test_the_rows_of_an_evaluation_file_are_rows_of_a_papers_table() -> None:
    from lossscope.tables.runs import from_sources

    (i2t, _) = li2022_1.build(evaluation())
    assert numbers(i2t, "encoder") == ["Unified", "Triplet-HN"] and len(set(numbers(i2t, "i2t R@1 ours"))) == 2
    (i2t, _) = li2022_1.build(from_sources(evaluation(), "flickr30k", {"Unified": "VSE++ (BUTD)"}))
    assert numbers(i2t, "i2t R@1 published") == ["70.7", "–"]
    (i2t, _) = li2022_1.build(from_sources(evaluation(members="a, b"), "flickr30k", "BFAN*"))
    assert numbers(i2t, "i2t R@1 published") == ["68.1", "74.3"]


def test_names_that_a_table_does_not_print_are_refused_with_those_it_does() -> None:
    published.require_names("li2022_6", "mscoco", ["SGRAF*"])
    with pytest.raises(InputError, match=r"model of li2022_6 must be one of SCAN\*, .*SGRAF\*; got 'SGRAF'"):
        published.require_names("li2022_6", "mscoco", ["SGRAF"])
    with pytest.raises(InputError, match=r"dataset of li2022_6 must be one of mscoco; got 'flickr30k'"):
        published.require_names("li2022_6", "flickr30k", [])


def test_every_numbered_table_of_the_papers_is_a_table() -> None:
    numbered = {f"bleeker2022_{k}" for k in range(1, 5)} | {f"li2022_{k}" for k in range(1, 8)}
    numbered |= {f"xuan2023_{k}" for k in range(1, 7)}
    names = {item.name for item in declarations("tables")}
    assert {name for name in names if name[-2] == "_" and name[-1].isdecimal()} == numbered
    printed = {
        f"{paper.partition('_')[0]}_{table}" for paper in published.PAPERS for table in published.load(paper)["table"]
    }
    assert printed == numbered


def test_table_1_of_goal_needs_its_own_rows() -> None:
    with pytest.raises(
        InputError, match="`lossscope render xuan2023_1` alone makes, must have the columns triplet, pair"
    ):
        xuan2023_1.build(study())


def test_data_sets_have_their_own_test_splits_but_none_stands_beside_a_validation_split() -> None:
    frame = study(UNIFIED, BUTD, {"Flickr30k": "flickr30k", **COCO}, seeds=(0,))
    of_coco = frame["data"] == "COCO"
    (i2t, _) = li2022_1.build(frame.assign(sampling=frame["sampling"].where(~of_coco, "testall split")))
    assert numbers(i2t, "sampling") == ["test split", "testall split"]
    with pytest.raises(InputError, match=r"sampling of the runs in one table must be the same; got test split .*val"):
        li2022_1.build(frame.assign(sampling=frame["sampling"].where(~of_coco, "val split")))
