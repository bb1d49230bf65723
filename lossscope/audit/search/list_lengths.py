"""How many candidates of each query are scored, if there are too many pairs to score all?"""

from __future__ import annotations

from lossscope.core.relations import Relations

ALL_PAIRS = 6_000_000  # up to this number all pairs are scored
_LEAST, _SHARE = 100, 0.02  # candidates of each query: a fiftieth of them, but not fewer than 100
_NEAREST = 20  # queries of each candidate, at least


def default_top(relations: Relations) -> int:
    """Return how many candidates of each query are scored: a fiftieth, at most about 6 million in all."""
    most = max(_LEAST, ALL_PAIRS // relations.first)
    return int(min(max(_LEAST, _SHARE * relations.second), most, relations.second))


def reverse_top(relations: Relations, top: int) -> int:
    """Return how many queries of each candidate are scored: about as many pairs as the other way round."""
    return min(max(_NEAREST, top * relations.first // relations.second), relations.first)
