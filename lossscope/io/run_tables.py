"""A CSV table that grows row by row while a run trains, and is cut back to a checkpoint when the run resumes."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError

from .csv_rows import decode_csv
from .files import write_text
from .temporary_files import sync_file
from .text_files import read_utf8
from .write_errors import explain_write_errors

_ADVICE = "Copy it back, or train anew"
Place = tuple[int, ...]  # of a row: (epoch, step), or (epoch,)


@dataclass(frozen=True)
class RunTable:
    """A table whose rows have a place in the run, in ascending order."""

    path: Path
    columns: tuple[str, ...] = ("epoch", "step")  # whose numbers are the place of a row

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows; the first ones bring the header, later ones write its columns alone. Raises WriteError."""
        rows = list(rows)
        if rows:
            new = not self.path.exists()
            with explain_write_errors(self.path), open(self.path, "a", encoding="utf-8", newline="") as file:
                file.write(_csv(rows, list(rows[0]) if new else self._columns() or list(rows[0]), header=new))

    def sync(self) -> None:
        """Wait until the rows are on the disk. Raises WriteError."""
        if self.path.is_file():
            with explain_write_errors(self.path):
                sync_file(self.path)

    def keep(self, wanted: Callable[[Place], bool]) -> None:
        """Write the table again with the rows at the places that are wanted, in place of all.

        A last line that a kill cut off is dropped; a table of which there is only half a header is removed.
        Raises InputError for a table that is damaged.
        """
        if not self.path.exists():
            return
        names, rows = self._read()
        if not names:  # killed while the header was written: the next row brings it again
            self.path.unlink()
            return
        write_text(self.path, _csv([row for row in rows if wanted(self._place(row))], names, header=True))

    def require(self, expected: Iterable[Place], checkpoint: Path) -> None:
        """Raise InputError unless the table has a row at every place, in this order, and no others.

        Args:
            expected: where the run has been, as its checkpoint says.
            checkpoint: its file, for the message.
        """
        rows = self._read()[1] if self.path.exists() else []
        pairs = itertools.zip_longest(expected, (self._place(row) for row in rows))
        for number, (key, got) in enumerate(pairs):
            if key != got:
                raise InputError(
                    f"{self.path} must have the rows that {checkpoint} counts on; got {self._describe(got)} in place "
                    f"of {self._describe(key)} as row {number + 1}. Rows are missing or different: copy the table "
                    "back, or train anew"
                )

    def _read(self) -> tuple[list[str], list[dict[str, str]]]:
        """Return the columns and the rows of whole lines; none of a file without any. Raises InputError for damage."""
        try:
            text = read_utf8(self.path)
            lines = io.StringIO(text[: text.rfind("\n") + 1], newline="")
            names, rows = decode_csv(lines, str(self.path)) if "\n" in text else ([], iter(()))
            return names, [dict(zip(names, row, strict=True)) for _, row in rows]
        except InputError as error:
            raise InputError(f"{error}. {_ADVICE}") from error

    def _columns(self) -> list[str]:
        """Return the columns of the header: a run of an earlier version resumes with those that it began with."""
        with open(self.path, encoding="utf-8", newline="") as file:
            return next(csv.reader(file), [])

    def _place(self, row: Mapping[str, str]) -> Place:
        if not all(row.get(name, "").isdecimal() and len(row[name]) < 10 for name in self.columns):
            what = f"got a row without whole numbers in {' and '.join(self.columns)}"
            raise InputError(f"{self.path} must be a whole CSV table; {what}. {_ADVICE}")
        return tuple(int(row[name]) for name in self.columns)

    def _describe(self, key: Place | None) -> str:
        if key is None:
            return "none"
        return " ".join(f"{name} {number}" for name, number in zip(self.columns, key, strict=True))


def _csv(rows: Iterable[Mapping[str, Any]], names: list[str], header: bool) -> str:
    """Write rows as CSV text."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n", extrasaction="ignore")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
