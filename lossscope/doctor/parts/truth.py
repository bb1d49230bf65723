"""Which items match, whatever the pairs say: exactly, where the data set knows it, or as an audit judged it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import KnownPairs
from lossscope.core.pair import Pair
from lossscope.core.types import Rows

Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Truth:
    """How probable it is that items match."""

    probability: Callable[[Rows, Rows], Probabilities]  # rows (q,) and (c,) of the sample -> (q, c)
    is_exact: bool  # whether probabilities are 0 or 1, of a data set that knows

    @classmethod
    def exact(cls, match: npt.NDArray[np.bool_]) -> Truth:
        """Return the truth of a data set, (N, M) of the sample."""
        return cls(lambda first, second: match[np.ix_(first, second)].astype(np.float32), True)

    @classmethod
    def audited(cls, known: KnownPairs, split: SplitEmbeddings, rows: Pair[Rows]) -> Truth:
        """Return what an audit says of the items of a sample.

        Args:
            known: pairs of the audit.
            split: all items: where ids are numbers of rows, those of a sample are none of the audit's.
            rows: of the sample in the split.
        """
        ids = split.image_ids, split.caption_ids
        return cls(lambda first, second: known.probabilities(*ids, rows.i2t[first], rows.t2i[second]), False)
