"""`lossscope render`: does it draw any picture from a file of numbers, and say what a file lacks?"""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lossscope.declarations import declarations
from tests.command_line import lossscope
from tests.each import each

PICTURES = [declared.name for declared in declarations("pictures")]


@pytest.fixture
def field_file() -> str:
    """Write what `diagram --format csv` prints."""
    printed = lossscope("diagram", "--triplet", "cir", "--points", "11", "--format", "csv", "--quiet")
    assert printed.exit_code == 0, printed.stderr
    Path("field.csv").write_text(printed.stdout, encoding="utf-8")
    return "field.csv"


def test_numbers_of_a_command_become_its_picture(field_file: str) -> None:
    result = lossscope("plot", "triplet_field", field_file)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "triplet_field.png\n"
    with Image.open("triplet_field.png") as picture:
        assert "Circle triplet weight, scale τ = 10" in picture.text["Description"]  # type: ignore[attr-defined]


def test_the_style_and_the_kind_of_file_can_be_chosen(field_file: str) -> None:
    for style in ("screen", "paper"):
        assert lossscope("plot", "triplet_field", field_file, "-o", f"{style}.png", "--style", style).exit_code == 0
    with Image.open("screen.png") as screen, Image.open("paper.png") as paper:
        assert paper.size[0] < 0.8 * screen.size[0]
    result = lossscope("plot", "triplet_field", field_file, "-o", "field.pdf")
    assert result.exit_code == 0 and Path("field.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("picture", PICTURES)
def test_a_file_without_the_columns_of_a_picture_says_which(picture: str) -> None:
    Path("other.csv").write_text("colour,number\nred,1\n", encoding="utf-8")
    result = lossscope("plot", picture, "other.csv")
    assert result.exit_code == 1
    assert "must have the columns" in result.stderr and "got colour, number" in result.stderr
    assert not list(Path().glob("*.png"))


def test_of_several_tables_the_one_with_the_columns_is_drawn() -> None:
    """`diagram --objective` prints a field and curves: no picture could be drawn of that file."""
    printed = lossscope("diagram", "--objective", "ntxent", "--points", "5", "--format", "csv", "--quiet").stdout
    first, second = printed.split("\n\n")
    rows = f'{first}\n\n"label",note\n"a ""name"" of\n\ntwo lines",b\n\n{second}'
    Path("rows.csv").write_text(rows, encoding="utf-8")
    for picture in ("triplet_field", "pair_curves"):
        result = lossscope("render", picture, "rows.csv")
        assert result.exit_code == 0, result.stderr
    assert lossscope("render", "hubness", "rows.csv").exit_code == 1


def test_damaged_files_are_refused() -> None:
    Path("empty.csv").touch()
    Path("torn.parquet").write_bytes(b"PAR1torn")
    for name in ("empty.csv", "torn.parquet"):
        result = lossscope("plot", "triplet_field", name)
        assert result.exit_code == 1 and f"{name} must be a readable" in result.stderr


def test_rows_of_which_nothing_can_be_made_are_an_error_with_the_file() -> None:
    """The message named the missing columns, but not the file."""
    Path("rows.csv").write_text("label,mean\na,1\n", encoding="utf-8")
    result = lossscope("plot", "weight_mass", "rows.csv")
    assert result.exit_code == 1 and "rows.csv must be rows of numbers" in result.output


def test_every_picture_is_listed() -> None:
    listed = lossscope("list", "pictures")
    assert listed.exit_code == 0 and all(name in listed.stdout for name in PICTURES)


@each("index", ['{"plots": [1]}', '{"plots": {"a": {}}}', '{"plots": null}', "[1]", "{", "{}"])
def test_a_damaged_index_beside_a_file_of_csv_is_no_error_of_its_own(index: str) -> None:
    """A list in the place of the pictures was a traceback."""
    Path("report/csv").mkdir(parents=True, exist_ok=True)
    Path("report/index.json").write_text(index, encoding="utf-8")
    Path("report/csv/a.csv").write_text("a\n1\n", encoding="utf-8")
    result = lossscope("render", "tangent", "report/csv/a.csv", "-o", "x.png")
    assert isinstance(result.exception, SystemExit) and result.exit_code == 1
    assert result.stderr.startswith("Error: ") and "a.csv must be rows of numbers" in result.stderr
