"""`lossscope plot`: any picture, from a file of the numbers it shows."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

from lossscope.core.choices import Choice

from ._app import command
from ._options import require_declared
from ._output import print_path
from ._report_numbers import naming_numbers


@command()
def plot(
    picture: Annotated[str, Choice(None, "Name of a file of lossscope/plots.", names="pictures", argument=True)],
    rows: Annotated[Path, Choice(None, "Numbers: .csv or .parquet.", argument=True)],
    out: Annotated[
        Path | None, Choice(None, "Picture: .png, .pdf or .svg.", shown="PICTURE.png", flags="--out,-o")
    ] = None,
    style: Annotated[Literal["screen", "paper"], Choice(None, "paper: 8 pt, 3.3 inches wide.")] = "screen",
) -> None:
    """Draw a picture from a file of numbers, of a report's numbers/ or of your own.

    **Examples**

    `lossscope diagram --triplet cir --format csv > field.csv`

    `lossscope plot triplet_field field.csv --style paper -o field.pdf`

    `lossscope plot tangent report/numbers/tangent-1.parquet --style paper -o tangent.pdf`

    `lossscope list pictures` names them; one whose columns the file does not have says which it needs. Of a report's
    pictures `separation` is trajectory, and weights of losses are those of `lossscope diagram --format csv`.
    """
    from lossscope.io.frames import read_rows
    from lossscope.plots import style as styles

    name = require_declared("pictures", picture, "PICTURE")
    module: Any = importlib.import_module(f"lossscope.plots.{name}")
    frame = read_rows(rows)
    with naming_numbers(rows, name), styles.paper() if style == "paper" else styles.screen():
        drawn = getattr(module, "draw_many", module.draw)(frame)
        path = styles.save(getattr(drawn, "figure", drawn), out or Path(f"{name}.png"), module.alt(frame))
    print_path(path)
