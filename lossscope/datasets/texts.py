"""Rows of text data: JSON lines, CSV or parquet files with a query, its positives and mined negatives."""

from __future__ import annotations

from dataclasses import dataclass

from lossscope.errors import InputError
from lossscope.io.reading import show_path

from .base import Split, require_split
from .rows.column_names import ColumnNames
from .rows.held_out import HeldOut
from .rows.id_texts import IdTexts
from .rows.row_files import RowFiles
from .rows.row_source import CutRows, RowSource
from .rows.text_split import split_of_files


@dataclass(frozen=True)
class TextRows:
    """The rows of `file`, and of `val` and `test` where they are given; else a share of the queries is held out.

    A file is a path, a URL that fsspec opens, a folder, a pattern, or several of these with commas between (in quotes).
    Columns are `query` (or anchor, question), `positive` (pos, answer) and `negative` (neg), each a text or a list, as
    `positives`, or as negative_1, negative_2, ...; and `id` (query_id) of the query. In CSV files a value may be a JSON
    list. `columns` has other names: columns="query=title,positive=body". Passages of Tevatron and DPR are lists of
    `{"docid", "title", "text"}`.

    Pairs may have a score or a label instead: sentence1, sentence2 (or sentence_A, text1, question1, premise, ...) and
    label, score or similarity_score. Rows of label 1, or with a score of at least `cut`, are positives, all others
    negatives of their query.

    With `corpus`, positives and negatives (`pos`, `neg`) are ids of its documents, and with `queries` a row's `qid` is
    the id of a query: the files of msmarco-hard-negatives.

    Queries of equal text are one query with the positives of all its rows, unless they have ids, which then decide.
    Documents of exactly equal text are one document. Notices count both, and what is left out of
    the negatives because it is a positive of the query. Without val and test, the split `all` has every row: commands
    that do not train read it, unless a share is given. A training holds out val_share and test_share of the queries, by
    a hash of the query.
    Raises InputError, naming file and line, for a row that cannot be read and for a query without positives.
    """

    file: str  # rows of train: path, URL, folder or pattern
    val: str | None = None  # rows of val
    test: str | None = None  # rows of test
    val_share: float | None = None  # of the queries that are val; without it 0.1, where neither val nor test is given
    test_share: float | None = None  # of the queries that are test; without it 0.1, there
    seed: int = 0  # of the hash that holds them out
    columns: str = ""  # names of columns: query=...,positive=...,negative=...,score=...,id=...
    negatives: int = 0  # number of negatives of each query, the first ones; 0: all
    cut: float | None = None  # score from which on a pair is a positive; None: by the scale of the scores
    corpus: str | None = None  # file of documents by id, where rows name ids
    queries: str | None = None  # file of queries by id, where rows name ids

    def __post_init__(self) -> None:
        if self.negatives < 0:
            raise InputError(f"texts:negatives must be at least 1, or 0 for all; got {self.negatives}")
        for name, file in (("val", self.val), ("test", self.test)):
            if file is not None and not file.strip():
                raise InputError(
                    f"texts:{name} must name files of rows; got {file!r}. Leave it out where there are none"
                )
        if self.queries is not None and self.corpus is None:
            raise InputError("texts:queries=FILE needs the documents, too: corpus=FILE")
        _ = self._names, self._cut

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, train first."""
        files = {"train": self.file, "val": self.val, "test": self.test}
        if self._is_cut:
            return self._cut.splits
        return tuple(name for name, file in files.items() if file is not None)

    def split(self, name: str) -> Split:
        """Return the split of a name."""
        require_split(name, self.splits(), "texts")
        cut = self._cut if self._is_cut else None
        return split_of_files(name, self._files(name), cut, show_path(self._file(name)), self.negatives)

    def row_source(self, name: str) -> RowSource:
        """Return the rows of the split of a name."""
        require_split(name, self.splits(), "texts")
        files = self._files(name)
        return CutRows(files, self._cut, name) if self._is_cut else files

    @property
    def is_one_file(self) -> bool:
        """Whether it is one file, or several, that nobody asked to cut: all but a training read all of its rows."""
        return self._is_cut and self.val_share is None and self.test_share is None

    @property
    def _is_cut(self) -> bool:
        return self.val is None and self.test is None

    def _files(self, name: str) -> RowFiles:
        return RowFiles.parse(self._file(name), self._names, self.cut, self._ids)

    def _file(self, name: str) -> str:
        named = {"val": self.val, "test": self.test}.get(name)
        return self.file if named is None else named

    @property
    def _ids(self) -> IdTexts | None:
        return None if self.corpus is None else IdTexts(self.corpus, self.queries, self.negatives)

    @property
    def _names(self) -> ColumnNames:
        return ColumnNames.parse(self.columns)

    @property
    def _cut(self) -> HeldOut:
        return HeldOut.asked(self.val_share, self.test_share, self.seed)
