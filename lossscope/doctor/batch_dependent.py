"""Does an embedding depend on the batch in which it was encoded?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.encodings import Encodings, SideEncodings
from .parts.patient import Patient


@dataclass(frozen=True)
class BatchDependent(Check):
    """Do two encodings of the same items differ by more than rounding, alone and in a batch?

    The two encodings are two sources with --same-items, or a model encodes 32 pairs alone and together. A difference
    that the type of the numbers explains is rounding. Beyond it, 1 - cosine counts from 0.001 on, or from a small share
    of its value between different items of a narrow cone.
    Source: ReProver issue 34, LightRAG pull request 3675 and model2vec pull request 358, where padding is in the mean.
    """

    angle: float = 0.001  # 1 - cosine of an item in both; of BERT with 24 layers 1e-11, in bfloat16 6e-4
    of_cone: float = 0.02  # of 1 - the mean cosine of different items, where that is less
    share: float = 0.02  # of the items; dropout and batch norm change all, padding all but the longest of a batch
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 10
    healthy: ClassVar[tuple[str, str] | None] = ("below", "share")
    explains: ClassVar[tuple[str, ...]] = (
        "shuffled-share", "hubness", "one-direction", "hard-negatives-too-hard", "temperature-too-low",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        encodings = patient.part(Encodings)
        worst = max(encodings.sides, key=lambda side: float(self._differs(side).mean()))
        differs = self._differs(worst)
        share = float(differs.mean())
        patient.signals[self.id()] = share
        if share < self.share:
            return None
        order = np.argsort(worst.cosines, kind="stable")[:5]
        first, second = encodings.names
        mean, limit = float(worst.cosines.mean()), 1 - self._limit(worst)
        recall: tuple[Evidence, ...] = ()
        why = (
            f"{share:.0%} of the {worst.name} have another embedding {first} than {second}. The mean cosine of both is "
            f"{mean:.3f} and should be 1: the embedding of an item depends on what is encoded with it."
        )
        if encodings.recall is not None:
            before, after = encodings.recall
            why += f" Recall@1 among {encodings.pairs:,} pairs is {before:.1%} {first} and {after:.1%} {second}."
            recall = (
                Evidence(f"recall@1 {first}", before, None, (None, None)),
                Evidence(f"recall@1 {second}", after, None, (None, None)),
            )
        return self.finding(
            f"{share:.0%} of the {worst.name} have another embedding {second} than {first}",
            why,
            (
                Evidence(f"share of {worst.name} with a cosine below {limit:.4g}", share, self.share, (0, 0.0)),
                Evidence("mean cosine of an item in both encodings", mean, limit, (limit, None)),
                *recall,
            ),
            (
                Advice("Leave padding out of the mean: multiply by the attention mask, divide by its sum."),
                Advice("Encode in evaluation mode (model.eval()): no dropout, batch norm with its running statistics."),
            ),
            examples=tuple(f"{worst.ids[row]}: cosine {worst.cosines[row]:.3f}" for row in order if differs[row]),
        )

    def _limit(self, side: SideEncodings) -> float:
        """Return the 1 - cosine above which the two embeddings of an item differ."""
        return max(min(self.angle, self.of_cone * (1 - side.usual)), side.rounding)

    def _differs(self, side: SideEncodings) -> npt.NDArray[np.bool_]:
        differs: npt.NDArray[np.bool_] = 1 - side.cosines > self._limit(side)
        return differs
