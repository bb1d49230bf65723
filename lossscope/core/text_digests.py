"""Texts by a short digest of their words, so that a file can name texts without holding them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from .normal_form import normal_forms

Digests = npt.NDArray[np.uint64]
_BYTES = 8  # two of a million texts share a digest once in 40 million sets


@dataclass(frozen=True, eq=False)
class PairTexts:
    """Texts of the items of each side that has any, and which pairs of items have the texts of a positive."""

    left: Digests | None  # (N,) of the first side; None where it has no texts, as pictures have none
    right: Digests | None  # (M,) of the second
    # (n,) whether a positive has the same two texts, as where a copy has no label; None unless two sides have texts
    of_positive: npt.NDArray[np.bool_] | None


def digest_texts(texts: Iterable[str]) -> Digests:
    """Return (n,) BLAKE2b of the normal form of each text: equal where `normal_form` is.

    >>> digest_texts(["A dog", "a  DOG"]).tolist() == [14364831733120369406] * 2
    True
    """
    forms = normal_forms(list(texts))
    joined = b"".join(blake2b(form.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for form in forms)
    return np.frombuffer(joined, "<u8").astype(np.uint64)
