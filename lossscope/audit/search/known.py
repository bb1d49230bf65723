"""Which pairs match by the data set?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import Relations

from ..types import PairRows


def are_known(relations: Relations, pairs: PairRows) -> npt.NDArray[np.bool_]:
    """Return (n,) whether pairs are positives of the data; in a labelled set, whether both items share a label."""
    if relations.labels is not None:
        same: npt.NDArray[np.bool_] = relations.labels[pairs.left] == relations.labels[pairs.right]
        return same
    known = relations.positives[:, 0] * relations.second + relations.positives[:, 1]
    return np.isin(pairs.left * relations.second + pairs.right, known)
