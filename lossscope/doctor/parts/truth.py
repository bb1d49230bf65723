"""Which items match, whatever the pairs say? The data set knows it exactly, or an audit judged it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.pair import Pair
from lossscope.core.types import Rows

from .items import Items
from .patient import Patient
from .trained_model import TrainedModel

_MOST_PAIRS = 10**8  # of items of both sides whose truth is computed
Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Truth:
    """How probable it is that items match."""

    probability: Callable[[Rows, Rows], Probabilities]  # rows (q,) and (c,) of the sample -> (q, c)
    is_exact: bool  # whether probabilities are 0 or 1, from the data set
    status: str = ""  # of an audit: where its probabilities come from, in words
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, patient: Patient, stored: SplitEmbeddings) -> Truth:
        """Read the audit that the user names, else the data. Raises Missing where neither knows."""
        if patient.options.audit is not None and patient.has(Items):
            known = read_known_pairs(patient.options.audit)
            known.require_items(stored.image_ids, stored.caption_ids, stored.read_texts)
            return cls.audited(known, stored, patient.part(Items).rows)
        if not patient.has(TrainedModel):
            raise Missing("its data do not say which items match; --audit names an audit", "an audit (--audit)")
        split: Any = patient.part(TrainedModel).data
        if not hasattr(split, "truth"):
            raise Missing("its data do not say which items match", "an audit (--audit)")
        relations, rows = split.relations, patient.part(Items).rows
        if relations.first * relations.second > _MOST_PAIRS:
            raise Missing("there are too many items to compare all with all")
        truth = split.truth()
        truth = truth.T if relations.sides.is_image_text else truth
        return cls.exact(truth[np.ix_(rows.i2t, rows.t2i)])

    @classmethod
    def exact(cls, match: npt.NDArray[np.bool_]) -> Truth:
        """Return the truth of a data set, (N, M) of the sample."""
        return cls(lambda first, second: match[np.ix_(first, second)].astype(np.float32), True)

    @classmethod
    def audited(cls, known: KnownPairs, split: SplitEmbeddings, rows: Pair[Rows]) -> Truth:
        """Return what an audit says of the items of a sample.

        Args:
            known: pairs of the audit.
            split: all items; ids that are row numbers would not fit in a sample.
            rows: of the sample in the split.
        """
        ids = split.image_ids, split.caption_ids
        status = known.status or "of an earlier version, whose probabilities may be of other data than these"
        return cls(lambda first, second: known.probabilities(*ids, rows.i2t[first], rows.t2i[second]), False, status)
