"""`lossscope table`: any table, from a file of summary rows."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

from lossscope.core.choices import Choice

from ._app import command
from ._options import require_declared
from ._output import print_tables
from ._report_numbers import naming_numbers


@command()
def table(
    name: Annotated[
        str, Choice(None, "Name of a file of lossscope/tables.", names="tables", metavar="TABLE", argument=True)
    ],
    rows: Annotated[Path, Choice(None, "Summary rows: .csv or .parquet.", argument=True)],
    format: Annotated[Literal["table", "csv", "markdown", "latex"], Choice(None, "Of the table.")] = "table",
    out: Annotated[Path | None, Choice(None, "File to write instead of stdout.")] = None,
) -> None:
    """Make a table from a file of summary rows, of an evaluation, of a report's numbers/ or of --format csv.

    **Examples**

    `lossscope cocos checkpoints/tiny.pt --format csv > rows.csv`

    `lossscope table cocos_softmax rows.csv --format latex`

    `lossscope table retrieval report/numbers/rows.parquet --format markdown`

    `lossscope list tables` names them; one whose rows the file does not have says which it needs.
    """
    from lossscope.io.frames import read_rows
    from lossscope.tables.base import Table

    module: Any = importlib.import_module(f"lossscope.tables.{require_declared('tables', name, 'TABLE')}")
    with naming_numbers(rows):
        built = module.build(read_rows(rows))
    print_tables([built] if isinstance(built, Table) else list(built), format, out)
