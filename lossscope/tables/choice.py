"""Choose the columns that the tables of a report show; CSV files keep all columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lossscope.errors import InputError

from .base import Table

_PUBLISHED = "published"  # heading of columns, and start of footnotes


@dataclass(frozen=True)
class Choice:
    """The wanted columns; columns that name the rows are always shown."""

    columns: tuple[str, ...] = ()  # `R@1` of every group, or `i2t R@1`; empty: all
    published: bool = True  # whether to show a paper's printed numbers beside ours

    def apply(self, table: Table) -> Table:
        """Return a table that shows the chosen columns; a table without any of them shows all."""
        numbers = range(table.shown.labels, len(table.shown.columns))
        shown = [(*table.shown.columns[index], table.shown.headings[index]) for index in numbers]
        wanted = [heading for *names, heading in shown if self._names(heading, *names)]
        hidden = {heading for *_, heading in shown if heading not in wanted} if wanted else set()
        if self.published:
            return replace(table, hidden=(*table.hidden, *hidden))
        hidden |= {
            heading for (_, name), heading in zip(table.columns, table.headings, strict=True) if name == _PUBLISHED
        }
        notes = tuple(note for note in table.notes if not note.lower().startswith(_PUBLISHED))
        return replace(table, hidden=(*table.hidden, *hidden), notes=notes)

    def _names(self, *headings: str) -> bool:
        """Return whether a column is wanted, by its heading or a word of it: `R@1` is in `i2t R@1 ours`."""
        return any(heading in self.columns or set(heading.split()) & set(self.columns) for heading in headings)

    def require_known(self, tables: Iterable[Table]) -> None:
        """Raise InputError, which lists the known columns, for a column that no table has."""
        known: dict[str, None] = {}
        for table in tables:
            known |= dict.fromkeys([*(column for _, column in table.columns), *table.headings])
        words = {word for name in known for word in name.split()}
        unknown = [name for name in self.columns if name not in known and name not in words]
        if unknown:
            raise InputError(
                f"columns must be among {', '.join(known)}; got {', '.join(unknown)}. Separate them by commas"
            )
