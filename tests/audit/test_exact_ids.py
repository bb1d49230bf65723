"""Does an audit read its own files back, id for id, and say which rows of a sheet it cannot read?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.suspects import suspects
from lossscope.io.csv_tables import format_csv
from lossscope.io.csv_texts import read_csv_texts
from tests.audit.small import vectors
from tests.command_line import lossscope, message
from tests.test_ids import LISTED

pytestmark = pytest.mark.usefixtures("transferred")  # the tests need probabilities
AUDIT = ("audit", "dump", "--out", "out", "--batch-size", "16", "--threshold", "0.0001")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_dump(ids: list[str]) -> None:
    """Write a dump whose items have these ids on both sides."""
    n, folder = len(ids), Path("dump")
    folder.mkdir()
    np.save(folder / "images.npy", vectors(n, 0))
    np.save(folder / "captions.npy", vectors(n, 1))
    columns = {"caption_image": np.arange(n), "image_id": ids, "caption_id": ids}
    pd.DataFrame(columns).to_parquet(folder / "metadata.parquet")


def succeed(*words: str) -> str:
    """Run a command; return what it printed."""
    result = lossscope(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def rows_of(path: str) -> list[tuple[int, int]]:
    """Return the rows of the dump that a file of pairs names."""
    columns = read_csv_texts(path).columns
    return [(LISTED.index(a), LISTED.index(b)) for a, b in zip(columns["image"], columns["caption"], strict=True)]


def test_a_sheet_of_ids_that_look_alike_is_scored_as_rows_of_these_numbers_are() -> None:
    """`" x"` came back with the scores of `"x"`, CR with those of LF, U+202E with those of its escape."""
    write_dump(LISTED)
    succeed(*AUDIT)
    rows = rows_of("out/sheet.csv")
    pd.DataFrame(rows, columns=["image_row", "caption_row"]).to_csv("rows.csv", index=False)
    succeed(*AUDIT, "--pairs", "rows.csv")
    by_row = pd.read_csv("out/scores.csv")
    succeed(*AUDIT, "--pairs", "out/sheet.csv")
    by_id = pd.read_csv("out/scores.csv")
    assert rows == rows_of("out/scores.csv") == list(zip(by_row["image_row"], by_row["caption_row"], strict=True))
    pd.testing.assert_frame_equal(by_id.iloc[:, 2:], by_row.iloc[:, 2:])
    assert len(set(rows)) == len(rows) > 90


def test_answers_come_back_to_their_pairs_and_a_mask_to_its_items() -> None:
    write_dump(LISTED)
    succeed(*AUDIT)
    columns = read_csv_texts("out/sheet.csv").columns
    columns["answer"] = ["yes" if row % 3 else "no" for row in range(len(columns["answer"]))]
    Path("labels.csv").write_text(format_csv(pd.DataFrame(columns), ("image", "caption")), "utf-8", newline="")
    printed = succeed(*AUDIT, "--labels", "labels.csv")
    assert printed.startswith(f"Calibrated: probabilities are fitted on {len(columns['answer'])} labels of labels.csv.")
    assert "Warning" not in printed
    listed = pd.read_parquet("out/suspects.parquet")
    hidden = suspects("out", threshold=0.0001).hidden(LISTED, LISTED).numpy()
    assert [
        (LISTED.index(a), LISTED.index(b)) for a, b in zip(listed["image"], listed["caption"], strict=True)
    ] == list(zip(listed["image_row"], listed["caption_row"], strict=True))
    assert set(zip(*hidden.nonzero(), strict=True)) == set(zip(listed["image_row"], listed["caption_row"], strict=True))


def test_ids_that_a_person_cannot_tell_apart_get_a_notice() -> None:
    write_dump(LISTED)
    for result in (lossscope(*AUDIT), lossscope("eval", "dump", "--run-files", "runs")):
        assert "image ids of dump look like another one, such as ' x' and 'x' (rows 0 and 1)" in message(result)
        assert "caption ids of dump look like another one" in message(result)


def test_ids_that_repeat_are_refused_at_the_start_with_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit ended after all the work, with `pairs of a page must occur once`."""
    write_dump([f"i{row % 20}" for row in range(22)])
    monkeypatch.setattr("lossscope.audit.steps.run.examine", None)
    monkeypatch.setattr("lossscope.retrieval.evaluate.evaluate", None)
    for command in (AUDIT, ("eval", "dump", "--run-files", "runs")):
        result = lossscope(*command)
        assert result.exit_code == 1
        assert "image ids of dump must be unique" in message(result)
        assert "'i0' is the id of rows 0 and 20, and 1 other id repeats. Give each row its own id" in message(result)
        assert not Path("runs").exists() and not list(Path().glob("out/*.*"))


def test_captions_of_one_id_are_said() -> None:
    write_dump([f"i{row % 20}" for row in range(22)])
    text = message(lossscope("cocos", "dump"))
    assert "2 of 22 rows of dump have the caption_id of an earlier row, such as 'i0' (rows 0 and 20)" in text


def test_a_sheet_with_some_rows_that_cannot_be_read_keeps_the_others_and_lists_the_rest() -> None:
    """A person's hundred answers were lost for one of them."""
    write_dump([f"i{row}" for row in range(40)])
    succeed(*AUDIT)
    lines = Path("out/sheet.csv").read_text("utf-8").splitlines()
    answered = [line.replace(",,", f",{'yes' if row % 3 else 'no'},", 1) for row, line in enumerate(lines[1:])]
    answered[2] = answered[2].replace("i", "j", 1)
    answered[3] = f"{answered[3]},more"
    answered[5] = answered[5].replace("yes", "perhaps").replace("no", "perhaps")
    answered[9] = answered[9].replace("i", "j", 1)
    Path("labels.csv").write_text("\n".join([lines[0], *answered]) + "\n", "utf-8")
    first, *_ = succeed(*AUDIT, "--labels", "labels.csv").split("\n\n")
    text = " ".join(first.split())
    assert text.startswith(f"Calibrated: probabilities are fitted on {len(answered) - 4} labels of labels.csv.")
    assert f"Warning: 4 of {len(answered)} rows of labels.csv cannot be read and are left out: rows of" in text
    assert "line 5 has 6; answer of labels.csv must be yes, no or unsure, and line 7 has 'perhaps'" in text
    assert "column image of labels.csv must name an image of these data, and lines 4 and 11 do not (line 4" in text
    assert len(json.loads(Path("out/audit.json").read_text())["labels_left_out"]) == 1


def test_a_sheet_of_other_data_is_refused() -> None:
    write_dump([f"i{row}" for row in range(40)])
    succeed(*AUDIT)
    sheet = Path("out/sheet.csv").read_text("utf-8").replace(",,", ",yes,")
    lines = [line if row < 9 else f"j{line[1:]}" for row, line in enumerate(sheet.splitlines())]
    Path("labels.csv").write_text("\n".join(lines) + "\n", "utf-8")
    result = lossscope(*AUDIT, "--labels", "labels.csv")
    assert result.exit_code == 1 and "line 10 of labels.csv must name an image of this split" in message(result)
    assert "more that name none. Is it a file of another split, or of other data?" in message(result)


def test_blanks_around_an_id_belong_to_it_unless_the_header_has_some() -> None:
    write_dump([f"i{row}" for row in range(40)])
    Path("a.csv").write_text("image, caption\ni0, i1\ni2, i3\n")
    succeed(*AUDIT, "--pairs", "a.csv")
    Path("a.csv").write_text("image,caption\ni0, i1\ni2,i3\n")
    result = lossscope(*AUDIT, "--pairs", "a.csv")
    assert result.exit_code == 1
    assert "got ' i1': take away the blanks around it, which belong to an id" in message(result)
