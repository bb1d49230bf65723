"""The negatives of a loss whose counted weight is above eps."""

from __future__ import annotations

from typing import Any

from tests.oracles import truncating

Array = Any
MORE = [
    "only_above:eps=0.2",
    "only_above:eps=0",
    "only_above:eps=0.5,of=triplet:margin=0.3",
    "only_above:eps=0.05,of=siglip:scale=30",
]


def keep(of: str, eps: float = 0.01) -> Any:
    """Negatives with |W| above eps, in the scale of the paper."""
    name, options, _ = truncating.whole(of)
    scale = options.get("tau", 0.1) if name == "ntxent" else 1.0
    return lambda row: {c for w, _, c in row if w * scale > eps}


def values(S: Array, match: Array, valid: Array, of: str = "ntxent:tau=0.1", **options: Any) -> None:
    return None


def weights(S: Array, match: Array, valid: Array, of: str = "ntxent:tau=0.1", **options: Any) -> Array:
    return truncating.truncated_weights(S, match, valid, of, keep(of, **options))


def counted_weights(
    S: Array, match: Array, valid: Array, at: float, convention: str, direction: str, **options: Any
) -> tuple[Array, Array]:
    return truncating.counted(S, match, valid, options["of"], keep(**options), at, convention, direction)
