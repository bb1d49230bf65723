"""`lossscope render`: any picture or table again, from a file of the numbers it shows."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lossscope.core.choices import Choice
from lossscope.declarations import declarations

from ._app import command
from ._options import require_declared, usage
from ._output import print_path, print_tables
from ._report_numbers import naming_numbers
from ._running import is_typed

if TYPE_CHECKING:
    import pandas as pd

_PICTURES = (".png", ".pdf", ".svg")
_Name = Annotated[str, Choice(None, "Picture or table; `lossscope list pictures` and `list tables`.", argument=True)]
_Rows = Annotated[Path | None, Choice(None, "Numbers: .csv or .parquet; xuan2023_1 needs none.", argument=True)]
_File = Annotated[Path, Choice(None, "Numbers: .csv or .parquet.", argument=True)]
_Out = Annotated[
    Path | None, Choice(None, "File to write; a picture ends in .png, .pdf or .svg.", shown=False, flags="--out,-o")
]
_Format = Annotated[Literal["table", "csv", "markdown", "latex"], Choice(None, "Format of a table.")]
_Style = Annotated[Literal["screen", "paper"], Choice(None, "Style of a picture; paper: 8 pt, 3.3 inches wide.")]


@dataclass(frozen=True)
class Beside:
    """What a paper's table shows beside ours."""

    dataset: Annotated[
        str | None,
        Choice(None, "The data's name in the paper's table, for an evaluation file: flickr30k, mscoco, msrvtt."),
    ] = None
    model: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "The model's name in the paper's table, for an evaluation file: NAME, or SOURCE=NAME; repeat for several.",
            flags="--model",
        ),
    ] = ()
    literature: Annotated[
        bool, Choice(None, "Also show the rows that the paper prints and no run measures.", flags="--literature")
    ] = False

    @property
    def typed(self) -> list[str]:
        """The options that were given."""
        return [f"--{name}" for name, value in vars(self).items() if value]


_NOTHING = Beside()


@command()
def render(
    name: _Name,
    rows: _Rows = None,
    out: _Out = None,
    format: _Format = "table",
    style: _Style = "screen",
    beside: Beside = _NOTHING,
) -> None:
    """Draw a picture or print a table again, from its numbers.

    **Examples**

    `lossscope diagram --triplet cir --format csv > field.csv`

    `lossscope render triplet_field field.csv --style paper -o field.pdf`

    `lossscope cocos checkpoints/tiny.pt --format csv > rows.csv`

    `lossscope render cocos_softmax rows.csv --format latex`

    `lossscope render retrieval report/numbers/rows.parquet --format markdown`

    `lossscope eval saf.pt sgr.pt --ensemble --format csv > eval.csv`

    `lossscope render li2022_1 eval.csv --dataset flickr30k --model "SGRAF*" --literature`

    `lossscope render xuan2023_1`

    `lossscope list pictures` and `lossscope list tables` show the names. Numbers are summary rows (--format csv), an
    evaluation, a report's numbers/, or your own. The command refuses a file without the columns that a name needs,
    and lists them. Where a picture and a table share a name, --out FILE.png asks for the picture.
    """
    name = require_declared(name, "NAME", "pictures", "tables")
    drawn, printed = ({item.name for item in declarations(kind)} for kind in ("pictures", "tables"))
    asked = is_typed("style") or (out is not None and out.suffix.lower() in _PICTURES)  # for a picture
    if name in drawn and (asked or name not in printed):
        if is_typed("format"):
            raise usage(f"--format is for tables; {name} is a picture: name a file, --out {name}.png, .pdf or .svg")
        if beside.typed:
            raise usage(f"{', '.join(beside.typed)} must be for a paper's table; {name} is a picture")
        if rows is None:
            raise usage(f"ROWS must be a file with the numbers of {name}")
        _draw(name, rows, out, style)
        return
    if asked:
        raise usage(f"{name} is a table: leave --style out, and write text, as --format latex --out {name}.tex")
    _print(name, rows, format, out, beside)


@command(hidden=True)
def plot(name: _Name, rows: _File, out: _Out = None, style: _Style = "screen") -> None:
    """Draw a picture from a file of its numbers, as `lossscope render` does.

    **Examples**

    `lossscope plot triplet_field field.csv --style paper -o field.pdf`
    """
    _draw(require_declared(name, "PICTURE", "pictures"), rows, out, style)


@command(hidden=True)
def table(
    name: _Name,
    rows: _Rows = None,
    format: _Format = "table",
    out: _Out = None,
    beside: Beside = _NOTHING,
) -> None:
    """Print a table from a file of its numbers, as `lossscope render` does.

    **Examples**

    `lossscope table cocos_softmax rows.csv --format latex`
    """
    _print(require_declared(name, "TABLE", "tables"), rows, format, out, beside)


def _draw(name: str, rows: Path, out: Path | None, style: str) -> None:
    """Draw the picture of a name into a file, and print the file's name."""
    from lossscope.io.frames import read_rows
    from lossscope.plots import style as styles

    module: Any = importlib.import_module(f"lossscope.plots.{name}")
    frame = read_rows(rows, getattr(module, "COLUMNS", ()))
    with naming_numbers(rows, name), styles.paper() if style == "paper" else styles.screen():
        drawn = getattr(module, "draw_many", module.draw)(frame)
        path = styles.save(getattr(drawn, "figure", drawn), out or Path(f"{name}.png"), module.alt(frame))
    print_path(path)


def _print(name: str, rows: Path | None, format: str, out: Path | None, beside: Beside) -> None:
    """Print the table of a name, or write it to a file."""
    from lossscope.io.frames import read_rows
    from lossscope.tables.base import Table
    from lossscope.tables.published.base import require_names

    module: Any = importlib.import_module(f"lossscope.tables.{name}")
    is_of_paper = "all_printed" in inspect.signature(module.build).parameters
    if beside.typed and not is_of_paper:
        raise usage(f"{', '.join(beside.typed)} must be for a paper's table of printed numbers; {name} is none")
    if beside.dataset or beside.model:
        require_names(name, beside.dataset, [text.rpartition("=")[2] for text in beside.model])
    if rows is None:
        built = module.build(_made(name, getattr(module, "MADE_BY", None)))
    else:
        with naming_numbers(rows):
            numbers = read_rows(rows)
        numbers = _with_names(numbers, rows, beside)
        with naming_numbers(rows):
            built = module.build(numbers, **({"all_printed": True} if beside.literature else {}))
    print_tables([built] if isinstance(built, Table) else list(built), format, out)


def _made(name: str, made_by: str | None) -> pd.DataFrame:
    """Return the rows of a table that needs no model; the others need a file."""
    if made_by is None:
        raise usage(f"ROWS must be a file with the numbers of {name}, such as --format csv writes")
    made: pd.DataFrame = getattr(importlib.import_module(made_by), made_by.rpartition(".")[2])()
    return made


def _with_names(rows: pd.DataFrame, file: Path, beside: Beside) -> pd.DataFrame:
    """Return the rows of a file; those of an evaluation get the published names that were typed."""
    from lossscope.io.frames import require_columns
    from lossscope.tables.runs import from_sources

    if not beside.dataset and not beside.model:
        return rows
    if "run" in rows:
        raise usage(f"--dataset and --model are for an evaluation file; {file} has runs, which state their own")
    require_columns(rows, ("source", "objective"), f"rows of {file}")
    pairs = [text.rpartition("=") for text in beside.model]
    sources = list(map(str, rows["source"].unique()))
    models = {source: model for source, equals, model in pairs if equals}
    whole = [model for _, equals, model in pairs if not equals]
    if len(whole) > 1 or (whole and models) or not models.keys() <= set(sources):
        raise usage(f"--model must be one NAME, or SOURCE=NAME of {', '.join(sources)}; got {', '.join(beside.model)}")
    return from_sources(rows, beside.dataset, whole[0] if whole else models)
