"""Pairs of items with the probability that they match, as an audit writes them into mask.npz, looked up by ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.arrays import read_npz, text_array
from lossscope.io.exact_texts import IN_ARRAYS
from lossscope.io.files import fingerprint_of, write_atomically
from lossscope.io.json_files import read_json
from lossscope.io.reading import naming, show_path
from lossscope.io.write_errors import explain_write_errors

from .pair import Pair
from .text_digests import PairTexts, digest_texts
from .types import LEAST_SUSPECT, Rows

SCHEMA = "lossscope.pairs/1"
_ARRAYS = ("left", "right", "probability", "left_ids", "right_ids", "left_fingerprint", "right_fingerprint", "least",
           "schema")  # fmt: skip
# digests of the texts of each side that has any, and what is of both; absent where there are none
_TEXT_ARRAYS = ("left_texts", "right_texts", "texts_of_positive")
Floats32 = npt.NDArray[np.float32]
ReadTexts = Callable[[], Pair[Mapping[str, str] | None]]  # -> id -> text, of each side that has texts


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """Which items of the first side probably match which of the second.

    Raises InputError for rows out of range, a pair that is there twice, probabilities outside 0..1, and texts that are
    not one an item.
    """

    left: Rows  # (n,) rows of the first side, such as images
    right: Rows  # (n,) rows of the second, such as captions
    probability: Floats32  # (n,) that the two match
    left_ids: tuple[str, ...]  # N
    right_ids: tuple[str, ...]  # M
    name: str = "pairs"  # in messages
    texts: PairTexts | None = None  # of the items, where a side has texts
    least: float = LEAST_SUSPECT  # probability from which pairs are listed: of what is less probable nothing is known
    status: str = ""  # where the probabilities come from, in words; empty: the file does not say
    _tables: dict[tuple[int, int], tuple[Sequence[str], Sequence[str], Any]] = field(
        default_factory=dict, init=False, repr=False
    )
    _of_same_texts: set[tuple[int, int]] = field(default_factory=set, init=False, repr=False)  # keys of tables

    def __post_init__(self) -> None:
        sizes = {len(self.left), len(self.right), len(self.probability)}
        if len(sizes) != 1:
            raise InputError(f"left, right and probability of {self.name} must be of one length; got {sorted(sizes)}")
        for rows, ids, what in ((self.left, self.left_ids, "left"), (self.right, self.right_ids, "right")):
            if len(rows) and not (int(rows.min()) >= 0 and int(rows.max()) < len(ids)):
                got = f"{int(rows.min())}..{int(rows.max())}"
                raise InputError(f"{what} of {self.name} must be rows 0..{len(ids) - 1}; got {got}")
        if not bool(((self.probability >= 0) & (self.probability <= 1)).all()):  # NaN is neither
            raise InputError(f"probability of {self.name} must be numbers in 0..1; it holds others")
        if len(np.unique(self.left * max(len(self.right_ids), 1) + self.right)) != len(self.left):
            raise InputError(f"pairs of {self.name} must occur once; it holds one twice")
        if self.texts is not None:
            lengths = len(self.left_ids), len(self.right_ids), len(self.left)
            stated = tuple(
                length if column is None else len(column) for column, length in zip(self._columns, lengths, strict=True)
            )
            if stated != lengths:
                raise InputError(f"texts of {self.name} must be {lengths}, of both sides and of pairs; got {stated}")

    def write(self, path: Path | str) -> None:
        """Write them as an .npz of plain arrays, whole."""
        arrays: dict[str, Any] = {
            "left": self.left.astype(np.int64), "right": self.right.astype(np.int64),
            "probability": self.probability.astype(np.float32),
            "left_ids": text_array(self.left_ids), "right_ids": text_array(self.right_ids),
            "left_fingerprint": np.array(fingerprint_of(*self.left_ids)),
            "right_fingerprint": np.array(fingerprint_of(*self.right_ids)),
            "least": np.array(self.least, np.float64), "schema": np.array(SCHEMA), "status": np.array(self.status),
        }  # fmt: skip
        arrays |= {name: column for name, column in zip(_TEXT_ARRAYS, self._columns, strict=True) if column is not None}
        with explain_write_errors(Path(path)), write_atomically(path) as part, open(part, "wb") as stream:
            np.savez_compressed(stream, **arrays)

    def probabilities(
        self,
        first_ids: Sequence[str],
        second_ids: Sequence[str],
        first: Rows,
        second: Rows,
        texts: ReadTexts | None = None,
    ) -> Floats32:
        """Return the probability of each pair of items, (q, c); 0 of a pair that is not known.

        Args:
            first_ids: of the items of the split that rows count.
            second_ids: likewise, of the second side.
            first: (q,) rows.
            second: (c,) rows.
            texts: of the split, see `require_items`.

        Raises:
            InputError: the pairs are of other items than those of the split.
        """
        table = self._table(first_ids, second_ids, texts)
        return np.asarray(table[first][:, second].toarray(), np.float32)

    def of_pairs(
        self,
        first_ids: Sequence[str],
        second_ids: Sequence[str],
        first: Rows,
        second: Rows,
        texts: ReadTexts | None = None,
    ) -> Floats32:
        """Return the probability of item `first[i]` with item `second[i]`, (n,); see `probabilities`."""
        return np.asarray(self._table(first_ids, second_ids, texts)[first, second], np.float32).reshape(-1)

    def require_threshold(self, threshold: float) -> None:
        """Raise InputError for a threshold below which pairs are not listed, so that it would hide too few."""
        if not self.least <= threshold <= 1:
            raise InputError(
                f"threshold must be in {self.least:g}..1, as {self.name} lists pairs from {self.least:g} on; got "
                f"{threshold:g}. For a lower one, audit again with --threshold {threshold:g}"
            )

    def require_items(
        self, first_ids: Sequence[str], second_ids: Sequence[str], texts: ReadTexts | None = None
    ) -> None:
        """Raise InputError where the pairs are of other items than those of a split.

        Args:
            first_ids: of its first side.
            second_ids: of its second.
            texts: of its items, which must be those that were audited; None: its ids alone say which items they are.
        """
        self._table(first_ids, second_ids, texts)

    @property
    def _columns(self) -> tuple[npt.NDArray[Any] | None, ...]:
        """What is stored of texts, in the order of the file."""
        return (None,) * 3 if self.texts is None else (self.texts.left, self.texts.right, self.texts.of_positive)

    def _table(self, first_ids: Sequence[str], second_ids: Sequence[str], texts: ReadTexts | None) -> Any:
        """Return the probabilities as a sparse matrix of the split's rows; kept for the same lists of ids."""
        from scipy import sparse

        key = id(first_ids), id(second_ids)
        if key not in self._tables:
            rows, columns = self._places(first_ids, self.left_ids, 0), self._places(second_ids, self.right_ids, 1)
            left, right = rows[self.left], columns[self.right]
            known = (left >= 0) & (right >= 0)
            shape = len(first_ids), len(second_ids)
            matrix = sparse.csr_matrix((self.probability[known], (left[known], right[known])), shape=shape)
            self._tables[key] = first_ids, second_ids, matrix  # the lists are kept, so that their `id` stays theirs
        if texts is not None and key not in self._of_same_texts:
            self._require_same_texts(texts())
            self._of_same_texts.add(key)
        return self._tables[key][2]

    def _require_same_texts(self, texts: Pair[Mapping[str, str] | None]) -> None:
        """Raise InputError where an item says something else than the audited one of its id, as ids may be made up."""
        for ids, digests, read_texts in zip((self.left_ids, self.right_ids), self._columns[:2], texts, strict=True):
            if digests is None or read_texts is None:
                continue
            rows = np.array([row for row, item in enumerate(ids) if item in read_texts], np.int64)
            differs = rows[digest_texts(read_texts[ids[row]] for row in rows.tolist()) != digests[rows]]
            if len(differs):
                first = ids[int(differs[0])]
                raise InputError(
                    f"{self.name} must be of the items of this split; {len(differs)} of {len(rows)} items with a "
                    f"common id have another text there, such as {first!r:.60}, here {read_texts[first]!r:.60}. Audit "
                    "this data"
                )

    def _places(self, ids: Sequence[str], known: tuple[str, ...], side: int) -> Rows:
        """Return (known,) the row of a split that each known id has; -1 where the split lacks it."""
        if len(ids) == len(known) and all(a == b for a, b in zip(ids, known, strict=True)):
            return np.arange(len(known), dtype=np.int64)
        what = ("first", "second")[side]
        row_of = numbered(ids, f"ids of the {what} side of this split")
        numbered(known, f"ids of the {what} side of {self.name}")
        rows = np.array([row_of.get(item, -1) for item in known], dtype=np.int64).reshape(len(known))
        of_rows = all(item == str(row) for row, item in enumerate(known))  # numbers of rows name nothing
        if of_rows or not bool((rows >= 0).any()):
            example = f"{ids[0]!r:.60}" if len(ids) else "none"
            raise InputError(
                f"{self.name} must be of the items of this split; its {what} side has {len(known)} items such as "
                f"{known[0]!r:.60}, the split {len(ids)} such as {example}. Take the split that was audited"
                if len(known)
                else f"{self.name} must be of the items of this split; its {what} side has none"
            )
        return rows


def numbered(ids: Sequence[str], what: str) -> dict[str, int]:
    """Return the row of each id. Raises InputError for an id that two items have.

    Args:
        ids: n.
        what: they are, in messages.
    """
    rows = {item: row for row, item in enumerate(ids)}
    if len(rows) < len(ids):
        twice = next(item for row, item in enumerate(ids) if rows[item] != row)
        raise InputError(f"{what} must differ, so that each names one item; {twice!r:.60} occurs twice")
    return rows


def rule_spec(typed: str) -> str:
    """Return the spec of a rule for false negatives; a file, or an audit's folder, stands for the pairs in it.

    >>> rule_spec("audit/mask.npz:threshold=0.9"), rule_spec("percent")
    ('pairs:file=audit/mask.npz,threshold=0.9', 'percent')
    """
    name, _, options = typed.partition(":")
    is_file = name.endswith(".npz") or (bool(name.strip()) and _is_audit(Path(name)))
    return f"pairs:file={name}" + (f",{options}" if options else "") if is_file else typed


def _is_audit(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("mask.npz", "audit.json"))


def audited_file(path: Path | str) -> Path:
    """Return the mask.npz of an audit's folder; a file as it is."""
    return Path(path) / "mask.npz" if Path(path).is_dir() else Path(path)


def read_known_pairs(path: Path | str) -> KnownPairs:
    """Read the pairs of a mask.npz, or of the folder of an audit. Raises InputError for a file that is none."""
    file = audited_file(path)
    if file.name == "mask.npz" and not file.exists() and _is_ranked_only(file.parent / "audit.json"):
        raise InputError(
            f"{show_path(file.parent)} must be an audit with probabilities; got a ranked-only audit, which "
            "has no mask. Label its sheet.html, then audit again with --labels labels.csv"
        )
    state = file.stat() if file.is_file() else None
    return _read(file, None if state is None else (state.st_mtime_ns, state.st_size))


def _is_ranked_only(document: Path) -> bool:
    return document.is_file() and read_json(document).get("state") == "ranked only"


@lru_cache(maxsize=4)
def _read(file: Path, state: tuple[int, int] | None) -> KnownPairs:
    """Return the pairs of a file, read once while it stays as it is."""
    where = show_path(file)
    with naming(file, "the pairs of an audit"):
        arrays = read_npz(file)
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing or str(arrays["schema"]) != SCHEMA:
        got = ", ".join(sorted(arrays)) if missing else f"schema {str(arrays['schema'])[:60]!r}"
        raise InputError(f"{where} must be a mask.npz of `lossscope audit` with {', '.join(_ARRAYS)}; got {got}")
    for name, kinds in (("left", "iu"), ("right", "iu"), ("probability", "f"), ("left_ids", "U"), ("right_ids", "U")):
        if arrays[name].dtype.kind not in kinds or arrays[name].ndim != 1:
            raise InputError(f"{name} of {where} must be a column; got {arrays[name].dtype} {arrays[name].shape}")
    least = arrays["least"]
    if least.dtype.kind != "f" or least.ndim or not 0 <= float(least) <= 1:
        raise InputError(f"least of {where} must be a number in 0..1; got {str(least)[:60]}")
    left_ids, right_ids = (tuple(map(IN_ARRAYS.read, arrays[f"{side}_ids"].tolist())) for side in ("left", "right"))
    for side, ids in (("left", left_ids), ("right", right_ids)):
        if str(arrays[f"{side}_fingerprint"]) != fingerprint_of(*ids):
            raise InputError(f"ids of the {side} side of {where} must be those of the audit; they differ")
    left, right = arrays["left"].astype(np.int64), arrays["right"].astype(np.int64)
    probability = arrays["probability"].astype(np.float32)
    status = arrays.get("status", np.array(""))
    if status.dtype.kind != "U" or status.ndim:
        raise InputError(f"status of {where} must be a text; got {status.dtype} {status.shape}")
    texts = _read_texts(arrays, where)
    return KnownPairs(left, right, probability, left_ids, right_ids, where, texts, float(least), str(status))


def _read_texts(arrays: Mapping[str, npt.NDArray[Any]], where: str) -> PairTexts | None:
    """Return the digests of texts; None of a file without any. Raises InputError for what is of both without both."""
    present = [name for name in _TEXT_ARRAYS if name in arrays]
    if not present:
        return None
    if _TEXT_ARRAYS[2] in present and len(present) < len(_TEXT_ARRAYS):
        raise InputError(f"{where} must have {', '.join(_TEXT_ARRAYS)}; got {', '.join(present)}")
    for name, kind in zip(_TEXT_ARRAYS, ("uint64", "uint64", "bool"), strict=True):
        if name in arrays and (arrays[name].dtype.name != kind or arrays[name].ndim != 1):
            raise InputError(
                f"{name} of {where} must be a column of {kind}; got {arrays[name].dtype} {arrays[name].shape}"
            )
    return PairTexts(*map(arrays.get, _TEXT_ARRAYS))
