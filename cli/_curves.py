"""--curve FILE: curves over batches as a picture, or as numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import OptionError

from ._output import notice

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".pdf", ".png", ".svg")


def require_ending(path: Path | None) -> None:
    """Raise OptionError unless the file of --curve is a picture or .csv."""
    if path is not None and path.suffix.lower() not in ENDINGS:
        raise OptionError(f"--curve must end in .csv, .pdf, .png or .svg; got {path.name!r}")


def write_curves(curves: pd.DataFrame, path: Path, draw: Callable[[pd.DataFrame], Any], alt: str | None = None) -> None:
    """Write curves as a picture, or as numbers, and say so.

    Args:
        curves: rows of the picture.
        path: of the file.
        draw: returns the axes or the figure.
        alt: description of the picture.
    """
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_text
    from lossscope.plots import style

    if path.suffix.lower() == ".csv":
        write_text(path, format_csv(curves))
    else:
        with style.screen():
            drawn = draw(curves)
            style.save(getattr(drawn, "figure", None) or drawn, path, alt)
    notice(f"Wrote {path}.")
