"""Answer a file of a report's csv/, which is for reading, with the file of numbers/ that makes pictures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lossscope.errors import InputError


@contextmanager
def naming_numbers(path: Path, picture: str | None = None) -> Iterator[None]:
    """Let an error about a file in the csv/ of a report name the files in its numbers/ that work.

    Args:
        path: the file that was given.
        picture: what is drawn; None: a table is made.
    """
    from lossscope.io.reading import naming, reading

    try:
        what = "rows of numbers that can make this"
        with reading(path, what, "Write it again"), naming(path, what):
            yield
    except InputError as error:
        report = path.absolute().parent.parent
        names = _names(report, picture) if path.parent.name == "csv" else []
        if not names:
            raise
        listed = ", ".join(str(path.parent.parent / "numbers" / f"{name}.parquet") for name in names)
        raise InputError(f"{error}. Files in csv/ are tables as a report shows them; give one of {listed}") from error


def _names(report: Path, picture: str | None) -> list[str]:
    """Return the names of the files of a report that a picture, or tables, are made of; none where it has none."""
    from lossscope.io.json_files import member, read_json

    if picture is None:
        names = ["rows", "comparisons"]
    else:
        try:
            plots = member(read_json(report / "index.json"), "plots", dict, str(report / "index.json"))
        except (OSError, InputError):  # no report
            return []
        names = [name for name, plot in plots.items() if plot == picture]
    return [name for name in names if (report / "numbers" / f"{name}.parquet").is_file()]
