"""Does `scope.heaviest` list the newest batch as a sweep over the same items does?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope import LossScope
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.engine.heaviest_negatives import HeaviestNegatives
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError

B = 9
NUMBERS = ["weight", "weight_negatives", "weight_positive", "positive_similarity", "negative_weight", "share",
           "similarity"]  # fmt: skip


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    queries, documents = (torch.nn.functional.normalize(torch.randn(B, 5, generator=random)) for _ in range(2))
    return queries, documents


def split() -> SplitEmbeddings:
    queries, documents = batch()
    pairs = np.stack([np.arange(B)] * 2, 1)
    ids = [f"q{row}" for row in range(B)], [f"d{row}" for row in range(B)]
    relations = Relations(B, B, pairs, QUERY_DOCUMENT)
    return SplitEmbeddings("batch", queries, documents, None, None, *ids, "made", relations=relations)


@pytest.mark.parametrize("spec", ["ntxent:tau=0.1", "triplet", "triplet-sh", "smoothap:tau=0.1"])
@pytest.mark.parametrize("unit", ["paper", "cosine"])
def test_a_batch_has_the_lists_of_a_sweep_over_it(spec: str, unit: str) -> None:
    queries, documents = batch()
    scope = LossScope(spec, probes=(f"cocos:unit={unit}",), keep_batch=True)
    names = split()
    scope.watch(queries=queries, documents=documents, ids=names.image_ids, second_ids=names.caption_ids, step=7)
    found = scope.heaviest(3)
    sweep = Sweep((spec,), (f"cocos:unit={unit}",), "pairs", None, shuffle=False)
    expected = HeaviestNegatives(sweep).most_and_least(names, 3)
    assert set(found["step"]) == {7}
    for name in ("direction", "list", "query", "query_id", "rank", "candidate", "candidate_id", "as_heavy"):
        pd.testing.assert_series_equal(found[name], expected[name], check_dtype=False)
    np.testing.assert_allclose(found[NUMBERS].to_numpy(float), expected[NUMBERS].to_numpy(float), rtol=1e-5, atol=1e-6)


def test_one_set_and_rows_without_ids() -> None:
    vectors = torch.cat(batch())
    labels = torch.arange(B).repeat(2)
    scope = LossScope("supcon", keep_batch=True)
    scope.watch(embeddings=vectors, labels=labels, ids=list(range(100, 100 + 2 * B)))
    found = scope.heaviest(2 * B)
    assert set(found["direction"]) == {"all"}
    assert (found["candidate_id"].astype(int) == found["candidate"] + 100).all()
    assert not (found["query"] % B == found["candidate"] % B).any()
    scope.watch(torch.eye(4) + 0.1)
    assert scope.heaviest(1)["query_id"].isna().all()


def test_the_batch_is_a_copy_and_the_newest() -> None:
    S = batch()[0] @ batch()[1].T
    scope = LossScope("ntxent", keep_batch=True, every=2)
    scope.watch(S)
    expected = scope.heaviest(2)
    S.mul_(-1)
    scope.watch(S)  # the scope skips this step
    pd.testing.assert_frame_equal(scope.heaviest(2), expected)
    scope.watch(S)
    assert scope.heaviest(1)["step"].tolist() != expected["step"].tolist()


def test_a_wrapped_loss_is_listed_by_its_own_weights() -> None:
    """Autograd of a softmax loss in the graph of the step gives the W of the objective."""
    queries, documents = batch()

    def loss(S: Tensor) -> Tensor:
        rows = torch.arange(len(S))
        return torch.nn.functional.cross_entropy(S / 0.1, rows, reduction="sum")

    scope = LossScope(keep_batch=True)
    wrapped = scope.wrap(loss)
    S = (queries @ documents.T).requires_grad_()
    wrapped(S).backward()
    found = scope.heaviest(B)
    looked = LossScope("ntxent:tau=0.1", probes=("cocos:unit=cosine",), keep_batch=True)
    looked.watch(S.detach())
    expected = looked.heaviest(B)
    both = [
        rows[(rows["direction"] == rows["direction"].iloc[0]) & (rows["list"] == "most")] for rows in (found, expected)
    ]
    assert both[0]["candidate"].tolist() == both[1]["candidate"].tolist()
    np.testing.assert_allclose(both[0]["share"], both[1]["share"], rtol=1e-4)


NOT_KEPT: list[tuple[dict[str, Any], str]] = [
    ({"keep_batch": True, "queries": 4}, "keep_batch keeps whole batches of one process; got queries"),
    ({"keep_batch": True, "across_processes": True}, "keep_batch keeps whole batches of one process; got across"),
]


@pytest.mark.parametrize(("options", "text"), NOT_KEPT, ids=["queries", "across processes"])
def test_parts_of_batches_are_not_kept(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        LossScope("ntxent", **options)


def test_what_cannot_be_listed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = LossScope("ntxent")
    scope.watch(torch.eye(4))
    with pytest.raises(InputError, match=r"LossScope\(\.\.\., keep_batch=True\)"):
        scope.heaviest()
    scope = LossScope("ntxent", keep_batch=True)
    with pytest.raises(InputError, match="the scope has seen none with similarities so far"):
        scope.heaviest()
    scope.watch(torch.full((4, 4), torch.nan), step=5)
    with pytest.raises(InputError, match="those of step 5 are not"):
        scope.heaviest()
    scope.watch(torch.eye(4))
    with pytest.raises(InputError, match="number must be a whole number of at least 1; got 0"):
        scope.heaviest(0)
    monkeypatch.setattr("lossscope.live.kept_batch.MOST_ENTRIES", 15)
    scope.watch(torch.eye(4), step=6)
    with pytest.raises(InputError, match="that of step 6 had more"):
        scope.heaviest()
