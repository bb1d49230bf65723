"""A gradient against the one that is expected: how long it is, and where it points."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

STRAIGHT = 1e-6  # 1 − cosine of gradients of one direction


@dataclass(frozen=True)
class Ratio:
    """A gradient g against the one that is expected, e."""

    of: str  # queries, candidates, or a parameter
    length: float  # <g, e> / <e, e>
    cosine: float
    distance: float  # |g − e| / |e|

    def __str__(self) -> str:
        if self.length == float("inf"):
            return f"not 0 ({self.of}), which it must be"
        turned = "" if self.cosine > 1 - 1e-4 else f", at a cosine of {self.cosine:.4g}"
        return f"{self.length:.6g} times ({self.of}{turned})"


def ratio(of: str, gradient: Tensor, expected: Tensor) -> Ratio:
    """Compare two gradients of any shape; where the expected one is 0, length and cosine are 1 if both are."""
    g, e = gradient.flatten().double(), expected.flatten().double()
    if not bool(e.any()):
        same = float(not bool(g.any()))
        return Ratio(of, same or float("inf"), same, 0.0 if same else float("inf"))
    length = float(g @ e / (e @ e))
    cosine = float(g @ e / (g.norm() * e.norm()).clamp(min=1e-300))
    return Ratio(of, length, min(cosine, 1.0), float((g - e).norm() / e.norm()))


def ratios(gradient: dict[str, Tensor], expected: dict[str, Tensor]) -> list[Ratio]:
    """Compare all gradients that both have."""
    return [ratio(name, gradient[name], e) for name, e in expected.items() if name in gradient]
