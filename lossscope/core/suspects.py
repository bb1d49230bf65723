"""The suspects of an audit for a training loop of one's own: which pairs of a batch to leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.errors import InputError

from .known_pairs import KnownPairs, numbered, read_known_pairs
from .relations import Relations
from .text_digests import digest_texts
from .types import HIDDEN_FROM, Rows

Unknown = Literal["error", "ignore"]
_UNKNOWN: tuple[Unknown, ...] = ("error", "ignore")


@dataclass(frozen=True, eq=False)
class TextPairs:
    """Pairs of texts: the suspects, by numbers of the different texts of each side."""

    left: Mapping[int, int]  # digest -> number, of the first side
    right: Mapping[int, int]  # of the second
    pairs: Rows  # (n, 2) numbers, each pair once
    of_positive: npt.NDArray[np.bool_]  # (n,) whether a positive has the same two texts


@dataclass(frozen=True, eq=False)
class Suspects:
    """hidden = the audit gives query and candidate a probability of at least `threshold` to match.

    Queries are of the audit's first side, candidates of its second: of images and captions the rows are images, and the
    other direction is the transpose. Known positives are no suspects. Raises InputError for a threshold below which
    the audit lists no pairs, 0.05 unless its own was lower.
    """

    known: KnownPairs
    threshold: float = HIDDEN_FROM  # probability from which a pair is left out

    def __post_init__(self) -> None:
        self.known.require_threshold(self.threshold)

    def hidden(self, query_ids: Sequence[str], candidate_ids: Sequence[str], unknown: Unknown = "error") -> Tensor:
        """Return (b, c) bool: pairs to leave out, as in `scores.masked_fill(hidden, -torch.inf)`.

        Args:
            query_ids: b ids of the first side, as the data set gives them; of a source without ids "0", "1", ...
            candidate_ids: c ids of the second.
            unknown: what an id is that no audited item has: an `error`, or `ignore`d, so that its pairs stay.

        Raises:
            InputError: an id of no item.
        """
        left, right = self._ids
        rows = self._numbers(require_texts(query_ids, "query ids"), query_ids, left, unknown)
        columns = self._numbers(require_texts(candidate_ids, "candidate ids"), candidate_ids, right, unknown)
        return torch.from_numpy(_block(self._pairs_of_items, rows, columns))

    def hidden_texts(
        self,
        queries: Sequence[str],
        candidates: Sequence[str],
        positives: Tensor | None = None,
        unknown: Unknown = "error",
    ) -> Tensor:
        """Return (b, c) bool: pairs to leave out, by their texts, but for case, blanks and forms of letters.

        Where several items share a text, a pair is left out if any of them is a suspect. Such a pair of texts can also
        be a positive, as where an unlabelled copy of it is: it is then left out everywhere but at the positive's place.

        Args:
            queries: b texts of the first side.
            candidates: c texts of the second.
            positives: (b, c) bool, places that are never left out; None: candidate i is the positive of query i, and
                stays where its two texts are those of a positive.
            unknown: what a text is that no audited item has: an `error`, or `ignore`d, so that its pairs stay.

        Raises:
            InputError: a text of no item, or an audit without the texts of both sides.
        """
        texts = self.text_pairs
        rows = self._numbers(digests_of(queries, "queries"), queries, texts.left, unknown)
        columns = self._numbers(digests_of(candidates, "candidates"), candidates, texts.right, unknown)
        hidden = _block(self._pairs_of_texts, rows, columns)
        if positives is not None:
            if positives.shape != hidden.shape or positives.dtype != torch.bool:
                got = f"{positives.dtype} {tuple(positives.shape)}"
                raise InputError(f"positives must be torch.bool of {hidden.shape}, queries and candidates; got {got}")
            hidden &= ~positives.cpu().numpy()
        else:
            diagonal = np.arange(min(hidden.shape))
            hidden[diagonal, diagonal] &= ~_block(self._positive_texts, rows, columns)[diagonal, diagonal]
        return torch.from_numpy(hidden)

    @cached_property
    def text_pairs(self) -> TextPairs:
        """The suspects as pairs of texts. Raises InputError for an audit without the texts of both sides."""
        texts = self.known.texts
        if texts is None or texts.left is None or texts.right is None or texts.of_positive is None:
            raise InputError(
                f"{self.known.name} must name the texts of both sides; it does not. One of its sides has no texts, "
                "as pictures have none, or an earlier version wrote it: take ids, or audit again with --data"
            )
        (left, rows), (right, columns) = (
            np.unique(digests, return_inverse=True) for digests in (texts.left, texts.right)
        )
        chosen = self._chosen
        keys = rows[self.known.left[chosen]] * len(right) + columns[self.known.right[chosen]]
        keys, first = np.unique(keys, return_index=True)  # of one pair of texts the flag is the same
        pairs = np.stack([keys // max(len(right), 1), keys % max(len(right), 1)], 1)
        numbers = [{digest: number for number, digest in enumerate(digests.tolist())} for digests in (left, right)]
        return TextPairs(numbers[0], numbers[1], pairs, texts.of_positive[chosen][first])

    @cached_property
    def _chosen(self) -> Rows:
        """Places of the pairs that are probable enough."""
        return np.nonzero(self.known.probability >= self.threshold)[0]

    @cached_property
    def _ids(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The row of each id, of both sides."""
        name = f"{self.known.name}, looked up by ids,"
        left, right = (numbered(ids, name) for ids in (self.known.left_ids, self.known.right_ids))
        return left, right

    @cached_property
    def _pairs_of_items(self) -> Relations:
        pairs = np.stack([self.known.left[self._chosen], self.known.right[self._chosen]], 1)
        return Relations(len(self.known.left_ids), len(self.known.right_ids), pairs)

    @cached_property
    def _pairs_of_texts(self) -> Relations:
        return Relations(len(self.text_pairs.left), len(self.text_pairs.right), self.text_pairs.pairs)

    @cached_property
    def _positive_texts(self) -> Relations:
        texts = self.text_pairs
        return Relations(len(texts.left), len(texts.right), texts.pairs[texts.of_positive])

    def _numbers(self, keys: Sequence[Any], texts: Sequence[str], known: Mapping[Any, int], unknown: Unknown) -> Rows:
        """Return (n,) the number of each key; −1 of one that is not known, where these are ignored."""
        if unknown not in _UNKNOWN:
            raise InputError(f"unknown must be one of {', '.join(_UNKNOWN)}; got {unknown!r:.60}")
        numbers = np.fromiter((known.get(key, -1) for key in keys), np.int64, len(keys))
        missing = np.nonzero(numbers < 0)[0]
        if len(missing) and unknown == "error":
            what, example = ("id", f" such as {next(iter(known))!r:.60}") if keys is texts and known else ("text", "")
            raise InputError(
                f"each {what} must be of an item of {self.known.name}, which has {len(known)}{example}; got "
                f"{texts[int(missing[0])]!r:.60}, and {len(missing)} of {len(keys)} are of no item. Take the split "
                'of the audit, its first side as queries; or unknown="ignore", which leaves no pair of theirs out'
            )
        return numbers


def suspects(audit: Path | str, threshold: float = HIDDEN_FROM) -> Suspects:
    """Return the suspects of an audit: `suspects("audit").hidden(query_ids, candidate_ids)`.

    Args:
        audit: folder of `lossscope audit`, or its mask.npz.
        threshold: probability from which a pair is left out; from 0.05, or the audit's own, to 1.

    Raises:
        InputError: a file that is none of an audit, or a threshold out of range.
    """
    return Suspects(read_known_pairs(audit), threshold)


def digests_of(texts: Sequence[str], what: str) -> list[int]:
    """Return the digest of each text. Raises InputError for what is no text.

    Args:
        texts: n.
        what: they are, in messages.
    """
    digests: list[int] = digest_texts(require_texts(texts, what)).tolist()
    return digests


def require_texts(texts: Sequence[str], what: str) -> Sequence[str]:
    """Return texts as they are. Raises InputError for others, and for one text.

    Args:
        texts: n.
        what: they are, in messages.
    """
    if isinstance(texts, str):
        raise InputError(f"{what} must be a list of texts; got the text {texts!r:.60}")
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{what} must be texts; got {text!r:.60}, of type {type(text).__name__}")
    return texts


def _block(pairs: Relations, rows: Rows, columns: Rows) -> npt.NDArray[np.bool_]:
    """Return (b, c) whether each is one of the pairs; −1 is in none."""
    block = np.zeros((len(rows), len(columns)), bool)
    first, others = np.nonzero(rows >= 0)[0], np.nonzero(columns >= 0)[0]
    block[np.ix_(first, others)] = pairs.is_positive(rows[first], columns[others])
    return block
