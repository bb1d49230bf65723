"""Make small dumps of any two sides and of one set, and return everything that commands learn from a dump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load

QUERIES, DOCUMENTS, WIDTH = 8, 12, 6
_SWEEP = Sweep(("ntxent", "triplet"), ("cocos", "recall"), batch_size=8)


def pair_arrays() -> dict[str, Any]:
    """Return queries (one has two positives, one has none), documents, and mined negatives of a part of the queries."""
    random = np.random.default_rng(0)
    queries = np.array([0, 1, 2, 3, 4, 5, 6, 6])
    negatives = random.integers(0, DOCUMENTS, (QUERIES, 2))
    negatives[3] = -1
    return {
        "queries": random.normal(size=(QUERIES, WIDTH)).astype("f4"),
        "documents": random.normal(size=(DOCUMENTS, WIDTH)).astype("f4"),
        "positives": np.stack([queries, np.arange(len(queries))], 1),
        "negatives": negatives,
    }


def token_arrays() -> dict[str, Any]:
    """Return the token vectors of four queries and five documents."""
    random = np.random.default_rng(1)
    return {
        "query_tokens": random.normal(size=(9, WIDTH)).astype("f4"),
        "query_offsets": np.array([0, 2, 3, 7, 9]),
        "document_tokens": random.normal(size=(14, WIDTH)).astype("f4"),
        "document_offsets": np.array([0, 4, 5, 9, 12, 14]),
        "positives": np.array([[0, 1], [1, 3], [2, 0], [3, 4]]),
    }


def everything_of(path: Path, **request: Any) -> object:
    """Open a source, sweep it and evaluate it; return its vectors, relations and numbers."""
    embedded: SplitEmbeddings = load(path, **{"cache": False, **request})
    relations = embedded.relations
    vectors = embedded.images, embedded.captions, embedded.similarity
    stated = relations.positives, relations.negatives, relations.labels, relations.sides.text
    ids = embedded.image_ids, embedded.caption_ids, embedded.input_keys
    return vectors, stated, ids, _SWEEP.run(embedded).summary, evaluate([embedded])
