"""Compare two encodings of the same items: `lossscope doctor a.npz b.npz --same-items`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.pair import Pair
from lossscope.core.sides import plural
from lossscope.errors import InputError

from ..parts.alignment import LEAST, choose_pairs
from ..parts.encodings import Encodings, SideEncodings, compare
from ..parts.patient import Patient

_BY_CHANCE = 0.05  # AUC above 0.5, or three standard errors, below which encodings have nothing in common


def compare_patients(patients: Sequence[Patient]) -> None:
    """Add to the first of two patients the encodings of both.

    Raises InputError for another number of sources, and where their items differ.
    """
    if len(patients) != 2:
        raise InputError(
            "--same-items needs two sources, two encodings of the same items: lossscope doctor a.npz b.npz "
            f"--same-items; got {len(patients)}"
        )
    first, second = (_embeddings(patient) for patient in patients)
    names = Pair(*(patient.name for patient in patients))
    _require_same(first, second, names)
    sides = (first.images, second.images), (first.captions, second.captions)
    found = []
    for side, (vectors, other_vectors) in enumerate(sides[: 1 if first.relations.one_set else 2]):
        assert vectors is not None
        assert other_vectors is not None
        name, ids = (first.sides.first, first.image_ids) if side == 0 else (str(first.sides.second), first.caption_ids)
        found.append(SideEncodings(plural(name), ids, vectors, other_vectors))
        _require_alike(found[-1], names)
    stated = names.map(lambda name: f"in {name}")
    patients[0].given[Encodings] = Encodings(stated, tuple(found), *_recall(first, second, stated))
    patients[1].missing[Encodings] = f"it is compared with {names.i2t}, which has the finding"


def _embeddings(patient: Patient) -> SplitEmbeddings:
    try:
        split = patient.part(SplitEmbeddings)
    except Missing as error:
        raise InputError(f"--same-items compares embeddings; of {patient.name} {error.reason}") from None
    if split.images is None or split.captions is None:
        raise InputError(f"--same-items compares embeddings; {patient.name} has similarities only")
    return split


def _require_same(first: SplitEmbeddings, second: SplitEmbeddings, names: Pair[str]) -> None:
    """Raise InputError where two splits have other sides, sizes, widths or ids."""
    if first.sides != second.sides:
        got = " and ".join(f"{split.sides.text} of {name}" for split, name in zip((first, second), names, strict=True))
        raise InputError(f"--same-items needs the same sides in both sources; got {got}")
    pairs = (
        (first.sides.first, first.images, second.images, first.image_ids, second.image_ids),
        (str(first.sides.second), first.captions, second.captions, first.caption_ids, second.caption_ids),
    )
    for side, vectors, other_vectors, ids, other_ids in pairs[: 1 if first.sides.is_one_set else 2]:
        assert vectors is not None
        assert other_vectors is not None
        if vectors.shape != other_vectors.shape:
            shapes = " and ".join(
                f"{tuple(x.shape)} of {name}" for x, name in zip((vectors, other_vectors), names, strict=True)
            )
            raise InputError(f"--same-items needs as many {plural(side)} of one width in both sources; got {shapes}")
        row = next((row for row, (a, b) in enumerate(zip(ids, other_ids, strict=True)) if a != b), None)
        if row is not None:
            raise InputError(
                f"--same-items needs the same {plural(side)} in the same order in both sources; row {row} is "
                f"{ids[row]!r} of {names.i2t} and {other_ids[row]!r} of {names.t2i}"
            )


def _require_alike(side: SideEncodings, names: Pair[str]) -> None:
    """Raise InputError where an item is as near to others as to itself: the items or the models differ."""
    if 1 - side.usual > side.rounding and side.auc < 0.5 + max(_BY_CHANCE, 3 / math.sqrt(12 * len(side.ids))):
        raise InputError(
            f"--same-items needs two encodings of the same {side.name} by one model. Of {names.i2t} and "
            f"{names.t2i} an item is nearer to itself than to another item with probability {side.auc:.2f}, "
            "which is chance. Their order differs, or their model"
        )


def _recall(first: SplitEmbeddings, second: SplitEmbeddings, names: Pair[str]) -> tuple[Pair[float] | None, int]:
    """Return mean recall@1 of a sample of pairs in both encodings, and the number of pairs."""
    rows = Pair(*choose_pairs(first.relations))
    if len(rows.i2t) < LEAST:
        return None, len(rows.i2t)
    vectors = []
    for split in (first, second):
        assert split.images is not None
        assert split.captions is not None
        vectors.append(Pair(split.images[rows.i2t], split.captions[rows.t2i]))
    return compare(names, first, rows, *vectors).recall, len(rows.i2t)
