"""The k heaviest negatives of a loss: all are sorted."""

from __future__ import annotations

from typing import Any

from tests.oracles import truncating

Array = Any
MORE = [
    "only_top:k=1",
    "only_top:k=2,of=triplet:margin=0.3",
    "only_top:k=1,of=triplet_sh:margin=0.5",
    "only_top:k=3,of=siglip:scale=30",
    "only_top:k=100",
]


def keep(of: str, k: int = 5) -> Any:
    """The k negatives of largest |W|, of equal ones the most similar, then the first."""
    return lambda row: {c for *_, c in sorted(row, key=lambda x: (-x[0], -x[1], x[2]))[:k]}


def values(S: Array, match: Array, valid: Array, of: str = "ntxent:tau=0.1", **options: Any) -> None:
    return None


def weights(S: Array, match: Array, valid: Array, of: str = "ntxent:tau=0.1", **options: Any) -> Array:
    return truncating.truncated_weights(S, match, valid, of, keep(of, **options))


def counted_weights(
    S: Array, match: Array, valid: Array, at: float, convention: str, direction: str, **options: Any
) -> tuple[Array, Array]:
    return truncating.counted(S, match, valid, options["of"], keep(**options), at, convention, direction)
