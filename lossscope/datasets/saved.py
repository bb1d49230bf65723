"""Data sets of Hugging Face that were saved on disk: the folder of `save_to_disk`, with its columns of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lossscope.errors import InputError
from lossscope.io.reading import show_path
from lossscope.io.saved_datasets import saved_files, saved_splits

from .base import Split, order_splits, require_split
from .rows.column_names import ColumnNames
from .rows.held_out import HeldOut
from .rows.row_files import RowFiles
from .rows.row_source import CutRows, RowSource
from .rows.text_split import split_of_files

_ALIASES = {"validation": "val", "valid": "val", "dev": "val"}


@dataclass(frozen=True)
class Saved:
    """The rows of a Dataset or a DatasetDict in a folder, read without the package `datasets`.

    Columns, and what becomes of equal texts, are those of `texts`. `validation` and `dev` are `val`. Of a single
    Dataset the split `all` has every row: commands that do not train read it, unless a share is given. A training holds
    out val_share and test_share of its queries, by a hash of the query.
    Raises InputError for anything missing or malformed.
    """

    root: str  # folder that save_to_disk wrote: path or URL
    val_share: float | None = None  # of the queries that are val; without it 0.1, where there is one split
    test_share: float | None = None  # of the queries that are test; without it 0.1, there
    seed: int = 0  # of the hash that holds them out
    columns: str = ""  # names of columns: query=...,positive=...,negative=...,score=...,id=...
    negatives: int = 0  # number of negatives of each query, the first ones; 0: all
    cut: float | None = None  # score from which on a pair is a positive; None: by the scale of the scores

    def __post_init__(self) -> None:
        if self.negatives < 0:
            raise InputError(f"saved:negatives must be at least 1, or 0 for all; got {self.negatives}")
        _ = ColumnNames.parse(self.columns), self._cut

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, train first."""
        names = self._folders()
        if len(names) == 1:
            return self._cut.splits
        return order_splits(names.keys())

    def split(self, name: str) -> Split:
        """Return the split of a name."""
        stem, cut = _ALIASES.get(name, name), self._cut if len(self._folders()) == 1 else None
        where = show_path(self.root) if cut else f"split {name} of {show_path(self.root)}"
        return split_of_files(stem, self._files(name), cut, where, self.negatives)

    def row_source(self, name: str) -> RowSource:
        """Return the rows of the split of a name."""
        files = self._files(name)
        return CutRows(files, self._cut, _ALIASES.get(name, name)) if len(self._folders()) == 1 else files

    @property
    def is_one_file(self) -> bool:
        """Whether it is a single Dataset that nobody asked to cut: all but a training read all of its rows."""
        return len(self._folders()) == 1 and self.val_share is None and self.test_share is None

    def _files(self, name: str) -> RowFiles:
        folders, stem = self._folders(), _ALIASES.get(name, name)
        if stem not in self.splits():
            require_split(name, self.splits(), show_path(self.root))
        folder = folders[stem] if len(folders) > 1 else next(iter(folders.values()))
        return RowFiles(tuple(saved_files(folder)), ColumnNames.parse(self.columns), self.cut)

    def _folders(self) -> Mapping[str, str]:
        folders: dict[str, str] = {}
        for name, folder in saved_splits(self.root).items():
            stem = _ALIASES.get(name, name)
            if stem in folders:
                raise InputError(f"splits of {show_path(self.root)} must be different; {name!r} is {stem!r} twice")
            folders[stem] = folder
        if not folders:
            raise InputError(f"{show_path(self.root)} must have splits; it has none")
        return folders

    @property
    def _cut(self) -> HeldOut:
        return HeldOut.asked(self.val_share, self.test_share, self.seed)
