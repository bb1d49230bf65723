"""Keep the suspects of an audit apart in batches of a SentenceTransformerTrainer; imported only when it trains."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from lossscope.core.suspects import TextPairs, require_texts, suspects
from lossscope.core.text_digests import digest_texts
from lossscope.core.types import HIDDEN_FROM, Rows
from lossscope.errors import InputError, needing

from .apart_batches import apart_batches

Unknown = Literal["warn", "error", "ignore"]
_UNKNOWN: tuple[Unknown, ...] = ("warn", "error", "ignore")
_LABELS = ("label", "labels", "score", "scores")  # columns that sentence-transformers takes for labels
_NO_TEXTS = {"dataset_name"}
_PASSES = 2  # further passes over the data where a pass gives too few full batches


def apart(
    audit: Path | str, threshold: float = HIDDEN_FROM, no_duplicates: bool = True, unknown: Unknown = "warn"
) -> ApartBatches:
    """Return a value for `SentenceTransformerTrainingArguments(batch_sampler=...)` that parts suspects.

    Args:
        audit: folder of `lossscope audit`, or its mask.npz, of data whose two sides are texts.
        threshold: probability from which two texts are kept apart; from 0.05, or the audit's own, to 1.
        no_duplicates: whether rows that share a text are kept apart too, as by the trainer's `no_duplicates`.
        unknown: for texts outside the audit: `warn`, raise an `error`, or `ignore` them.

    Raises:
        InputError: a file that is no audit, an audit without the texts of both sides, or a value out of range.
    """
    if unknown not in _UNKNOWN:
        raise InputError(f"unknown must be one of {', '.join(_UNKNOWN)}; got {unknown!r:.60}")
    batches = ApartBatches(str(audit), threshold, no_duplicates, unknown)
    _ = batches.texts  # read at once, to refuse a file that is no audit
    return batches


@dataclass(frozen=True)
class ApartBatches:
    """Build batch samplers. It is pickled with the arguments of a training, without the audit that it reads."""

    audit: str
    threshold: float = HIDDEN_FROM
    no_duplicates: bool = True
    unknown: Unknown = "warn"

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __call__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> Any:
        """Return a batch sampler of a data set, as the trainer calls it.

        Warns of rows whose mined negative is a suspect of their own anchor: no sampler can part these.

        Raises:
            InputError: sentence-transformers is not installed, columns without texts, or swapped sides of the audit.
        """
        rows = self._rows(dataset, valid_label_columns or ())
        conflicts = rows.own_negatives
        if len(conflicts):
            warnings.warn(
                f"{len(conflicts)} of {len(dataset)} rows have a mined negative that is a suspect of the anchor, "
                f"such as row {conflicts[0]}. No order of rows parts them. `own_negatives(dataset)` returns these "
                "rows",
                stacklevel=2,
            )
        sampler = type("ApartBatchSampler", (ApartSampling, _default_sampler()), {})(
            dataset, batch_size=batch_size, drop_last=drop_last, valid_label_columns=valid_label_columns,
            generator=generator, seed=seed,
        )  # fmt: skip
        sampler.texts, sampler.number_of_rows = rows, len(dataset)
        return sampler

    def own_negatives(self, dataset: Any, label_columns: Sequence[str] = _LABELS) -> Rows:
        """Return the rows of a data set whose mined negative is a suspect of their own anchor.

        Args:
            dataset: of columns anchor, positive, and negatives.
            label_columns: columns that are no texts.
        """
        return self._rows(dataset, label_columns).own_negatives

    @cached_property
    def texts(self) -> TextPairs:
        """The texts of the audit. Raises InputError for a file that is no audit, or lacks the texts of both sides."""
        return suspects(self.audit, self.threshold).text_pairs

    def _rows(self, dataset: Any, label_columns: Sequence[str]) -> TextRows:
        names = [name for name in dataset.column_names if name not in {*label_columns, *_NO_TEXTS}]
        if len(names) < 2:
            raise InputError(f"the data must have columns of anchors and positives; got {', '.join(names) or 'none'}")
        columns = [require_texts(dataset[name][:], f"column {name}") for name in names]
        different: dict[str, int] = {}
        values = np.array(
            [[different.setdefault(text, len(different)) for text in column] for column in columns], np.int64
        )
        digests = digest_texts(different).tolist()
        texts = self.texts
        left, right = (
            np.array([side.get(digest, -1) for digest in digests], np.int64) for side in (texts.left, texts.right)
        )
        numbers = np.stack([left[values[0]], *(right[value] for value in values[1:])], 1)
        if (numbers < 0).all() and (right[values[0]] >= 0).any() and (left[values[1]] >= 0).any():
            raise InputError(
                f"column {names[0]} must have texts of the first side of {self.audit}, and {names[1]} of the second; "
                "they are the other way round. Put the columns into the audit's order: dataset.select_columns"
            )
        self._report_unknown(numbers < 0, names, columns)
        return TextRows(numbers, texts, values.T if self.no_duplicates else None)

    def _report_unknown(
        self, unknown: npt.NDArray[np.bool_], names: Sequence[str], columns: Sequence[Sequence[str]]
    ) -> None:
        """Report texts outside the audit, as `unknown` says."""
        if not unknown.any() or self.unknown == "ignore":
            return
        row, column = np.argwhere(unknown)[0].tolist()
        text = (
            f"{int(unknown.sum())} of {unknown.size} texts are of no item of {self.audit}, such as {names[column]} of "
            f"row {row}, {columns[column][row]!r:.60}: nothing is known of them"
        )
        if self.unknown == "error":
            raise InputError(f"{text}. Audit the data that you train on, or unknown='ignore'")
        warnings.warn(
            f"{text}, and the sampler keeps them apart from none. Say unknown='ignore' if you mean it", stacklevel=4
        )


@dataclass(eq=False)
class TextRows:
    """Exclude rows where the anchor of one and a candidate of the other are suspects, or that share a text.

    The keys of a row number its texts: as an anchor, as candidates, and by their words.
    """

    numbers: (
        Rows  # (n, 1 + k) numbers of the anchor (first side) and the candidates (second side); −1: not in the audit
    )
    texts: TextPairs
    values: (
        Rows | None
    )  # (n, 1 + k) numbers of the texts, equal for equal texts; None where texts may repeat in a batch

    def keys(self, row: int) -> list[int]:
        """Return the keys of a row."""
        return self._keys[row]

    def excluded(self, row: int) -> set[int]:
        """Return the keys that no other row of its batch may have."""
        anchor, *candidates = self.numbers[row].tolist()
        start = len(self.texts.left) + len(self.texts.right)  # first key of the words of texts
        excluded = {key for key in self._keys[row] if key >= start}
        if anchor >= 0:
            excluded.update((_of_row(self._candidates_of, anchor) + len(self.texts.left)).tolist())
        for candidate in candidates:
            if candidate >= 0:
                excluded.update(_of_row(self._anchors_of, candidate).tolist())
        return excluded

    @cached_property
    def own_negatives(self) -> Rows:
        """Rows whose mined negative is a suspect of their own anchor."""
        anchors, negatives = self.numbers[:, :1], self.numbers[:, 2:]
        width = len(self.texts.right)
        listed = self.texts.pairs[:, 0] * width + self.texts.pairs[:, 1]
        known = (anchors >= 0) & (negatives >= 0)
        return np.nonzero((known & np.isin(anchors * width + negatives, listed)).any(1))[0].astype(np.int64)

    @cached_property
    def _keys(self) -> list[list[int]]:
        """The keys of each row: anchors from 0 on, then candidates, then the words of texts."""
        left, right = len(self.texts.left), len(self.texts.right)
        starts = np.r_[0, np.full(self.numbers.shape[1] - 1, left)]
        keys = [np.where(self.numbers < 0, -1, self.numbers + starts)]
        if self.values is not None:
            keys.append(self.values + left + right)
        return [[key for key in row if key >= 0] for row in np.concatenate(keys, 1).tolist()]

    @cached_property
    def _candidates_of(self) -> Any:
        """(L, R) sparse bool: which candidates of the data are suspects of an anchor."""
        left, right = self.texts.pairs.T
        here = np.isin(left, self.numbers[:, 0]) & np.isin(right, self.numbers[:, 1:])
        shape = len(self.texts.left), len(self.texts.right)
        return sparse.csr_matrix((np.ones(int(here.sum()), bool), (left[here], right[here])), shape=shape)

    @cached_property
    def _anchors_of(self) -> Any:
        return self._candidates_of.T.tocsr()


class ApartSampling:
    """Draw the batches of an epoch from seed and epoch; a suspect waits for a later batch.

    Each row comes once. With `drop_last` the rows of batches that are not full are dropped. If that leaves fewer
    batches than the trainer expects, a warning says so, and batches of further passes repeat rows.
    """

    texts: TextRows
    number_of_rows: int
    batch_size: int
    drop_last: bool
    generator: torch.Generator | None
    seed: int | None
    epoch: int
    _has_warned = False

    def __len__(self) -> int:
        """Return the number of batches that the trainer expects: the rows divided by the batch size."""
        return (self.number_of_rows + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the rows of each batch."""
        if self.generator is not None and self.seed is not None:
            self.generator.manual_seed(self.seed + self.epoch)
        batches = self._draw()
        self._warn(batches)
        yield from batches
        missing = len(self) - len(batches)
        for _ in range(_PASSES if batches else 0):
            if missing <= 0:
                return
            again = self._draw()[:missing]
            yield from again
            missing -= len(again)

    def _draw(self) -> list[list[int]]:
        """Return the batches of one pass over the rows."""
        if not self.number_of_rows:
            return []
        order = torch.randperm(self.number_of_rows, generator=self.generator).tolist()
        batches = apart_batches(order, self.texts.keys, self.texts.excluded, self.batch_size, len(self))
        return [rows for rows in batches if not self.drop_last or len(rows) == self.batch_size]

    def _warn(self, batches: list[list[int]]) -> None:
        """Warn once that the batches are more or fewer than the trainer expects."""
        expected = len(self)
        if len(batches) == expected or self._has_warned:
            return
        self._has_warned = True
        if len(batches) > expected:
            late = sum(map(len, batches[expected:]))
            result = (
                f"the last {late} rows come behind those that the trainer counts on, which may end the epoch before"
            )
        else:
            result = f"{expected - len(batches)} further ones repeat rows"
        warnings.warn(
            f"suspects and duplicates kept apart give {len(batches)} batches of {self.batch_size}, not {expected}: "
            f"{result}. Take a smaller batch or a higher threshold",
            stacklevel=3,
        )


def _of_row(matrix: Any, row: int) -> Any:
    """Return the columns of a row of a sparse matrix."""
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]


def _default_sampler() -> Any:
    """Return the class of batch samplers of sentence-transformers. Raises InputError where it is not installed."""
    with needing("st", "this sampler needs sentence-transformers"):
        with contextlib.suppress(ImportError):  # where version 6 has it
            return importlib.import_module("sentence_transformers.base.sampler").DefaultBatchSampler
        return importlib.import_module("sentence_transformers.sampler").DefaultBatchSampler
