"""Which columns of the tables of a report are shown; CSV files keep all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lossscope.errors import InputError

from .base import Table

_PUBLISHED = "published"  # heading of columns, and begin of footnotes


@dataclass(frozen=True)
class Choice:
    """Columns that are wanted; words that name the rows are always shown."""

    columns: tuple[str, ...] = ()  # `R@1` of every group, or `i2t R@1`; empty: all
    published: bool = True  # whether numbers that a paper printed are shown beside ours

    def apply(self, table: Table) -> Table:
        """Return a table that shows the chosen columns; one that has none of them shows all."""
        numbers = range(table.shown.labels, len(table.shown.columns))
        shown = [(*table.shown.columns[place], table.shown.headings[place]) for place in numbers]
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
        """Whether a column is wanted, by its heading or by a word of it: `R@1` is also in `i2t R@1 ours`."""
        return any(heading in self.columns or set(heading.split()) & set(self.columns) for heading in headings)

    def require_known(self, tables: Iterable[Table]) -> None:
        """Raise InputError, listing the columns that there are, for one that no table has."""
        known: dict[str, None] = {}
        for table in tables:
            known |= dict.fromkeys([*(column for _, column in table.columns), *table.headings])
        words = {word for name in known for word in name.split()}
        unknown = [name for name in self.columns if name not in known and name not in words]
        if unknown:
            raise InputError(
                f"columns must be among {', '.join(known)}; got {', '.join(unknown)}. Separate them by commas"
            )
