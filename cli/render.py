"""`lossscope render`: any picture or table again, from a file of the numbers it shows."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

from lossscope.core.choices import Choice
from lossscope.declarations import declarations

from ._app import command
from ._options import require_declared, usage
from ._output import print_path, print_tables
from ._report_numbers import naming_numbers
from ._running import is_typed

_PICTURES = (".png", ".pdf", ".svg")
_Name = Annotated[str, Choice(None, "Picture or table; `lossscope list pictures` and `list tables`.", argument=True)]
_Rows = Annotated[Path, Choice(None, "Numbers: .csv or .parquet.", argument=True)]
_Out = Annotated[
    Path | None, Choice(None, "File to write; a picture ends in .png, .pdf or .svg.", shown=False, flags="--out,-o")
]
_Format = Annotated[Literal["table", "csv", "markdown", "latex"], Choice(None, "Format of a table.")]
_Style = Annotated[Literal["screen", "paper"], Choice(None, "Style of a picture; paper: 8 pt, 3.3 inches wide.")]


@command()
def render(name: _Name, rows: _Rows, out: _Out = None, format: _Format = "table", style: _Style = "screen") -> None:
    """Draw a picture or print a table again, from its numbers.

    **Examples**

    `lossscope diagram --triplet cir --format csv > field.csv`

    `lossscope render triplet_field field.csv --style paper -o field.pdf`

    `lossscope cocos checkpoints/tiny.pt --format csv > rows.csv`

    `lossscope render cocos_softmax rows.csv --format latex`

    `lossscope render retrieval report/numbers/rows.parquet --format markdown`

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
        _draw(name, rows, out, style)
        return
    if asked:
        raise usage(f"{name} is a table: leave --style out, and write text, as --format latex --out {name}.tex")
    _print(name, rows, format, out)


@command(hidden=True)
def plot(name: _Name, rows: _Rows, out: _Out = None, style: _Style = "screen") -> None:
    """Draw a picture from a file of its numbers, as `lossscope render` does.

    **Examples**

    `lossscope plot triplet_field field.csv --style paper -o field.pdf`
    """
    _draw(require_declared(name, "PICTURE", "pictures"), rows, out, style)


@command(hidden=True)
def table(name: _Name, rows: _Rows, format: _Format = "table", out: _Out = None) -> None:
    """Print a table from a file of its numbers, as `lossscope render` does.

    **Examples**

    `lossscope table cocos_softmax rows.csv --format latex`
    """
    _print(require_declared(name, "TABLE", "tables"), rows, format, out)


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


def _print(name: str, rows: Path, format: str, out: Path | None) -> None:
    """Print the table of a name, or write it to a file."""
    from lossscope.io.frames import read_rows
    from lossscope.tables.base import Table

    module: Any = importlib.import_module(f"lossscope.tables.{name}")
    with naming_numbers(rows):
        built = module.build(read_rows(rows))
    print_tables([built] if isinstance(built, Table) else list(built), format, out)
