"""Does a sheet hold pairs that batches hold, so that its labels say how many of a batch's negatives match?"""

from __future__ import annotations

import numpy as np

from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit


def test_suspects_are_not_on_the_sheet_where_batches_have_mined_negatives() -> None:
    """Suspects match more often than pairs of a batch with the same signals, and the rate was too high."""
    options = AuditOptions.of(data="passages:train=120,val=2,test=2", sheet=60)
    result = audit([], options)
    relations = read_inputs([], options).material.relations
    batch, _ = pairs_of(random_batches(relations, options.batch_size, options.seed), relations)
    of_batches = batch.left * relations.second + batch.right
    assert len(result.sheet.pairs) > 50
    assert np.isin(result.sheet.pairs.left * relations.second + result.sheet.pairs.right, of_batches).all()


def test_candidates_without_a_label_are_not_on_the_sheet() -> None:
    """Batches have no such candidates."""
    result = audit([], AuditOptions.of(data="passages:train=120,val=2,test=2,negatives=0,mined_answers=0", sheet=60))
    labelled = np.unique(result.material.relations.positives[:, 1])
    suspects = result.suspects.pairs.right
    assert not np.isin(suspects, labelled).all()
    assert np.isin(result.sheet.pairs.right, labelled).all()
