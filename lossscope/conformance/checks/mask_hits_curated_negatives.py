"""Does a mask for false negatives also hide the negatives that were mined for the query?

Such masks drop candidates more similar than the positive by some margin, which is what a hard negative is. Source:
ms-swift issue 6969.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..mined import Hard, Hardest, Mined
from ..pulls import Pulls
from ..softmax import Softmax
from ..trial_embeddings import HARD, NEAR, POSITIVE

PLACE = 40
AFTER = ("step", "normalised-over-wrong-axis", "positives", "negatives-ignored")


def examine(case: Case) -> Iterator[Verdict]:
    """Compare mined negatives below the positive with mined negatives above it."""
    name = "mask-hits-curated-negatives"
    mined, hard, hardest = (case.part(kind).pulls for kind in (Mined, Hard, Hardest))
    case.require_readable()
    usual = _with_weight(mined)
    lost = {level: usual & ~_with_weight(pulls) for level, pulls in ((HARD, hard), (NEAR, hardest))}
    levels = [level for level, which in lost.items() if bool(which.any())]
    if not levels:
        yield verdict(
            name, "pass", f"mined negatives at cosines of {HARD:g} and {NEAR:g} to the query have their weight"
        )
        return
    which = lost[levels[0]]
    text = (
        f"the mined negatives of {rows(which)} lose all weight at a cosine of {levels[0]:g} to the query, where the "
        f"positive has about {POSITIVE:g}: what was chosen to be hard is hidden"
    )
    # a loss that takes semi-hard negatives alone means to; a softmax has a mask
    is_softmax = case.has(Softmax)
    yield verdict(
        name, "fail" if is_softmax else "note", text, lost=float(which.sum()), of=float(len(which)), cosine=levels[0]
    )


def _with_weight(pulls: Pulls) -> Tensor:
    """(B,) queries of whose own mined negatives any has a weight."""
    return (pulls.own_negatives > pulls.smallest).any(1)
