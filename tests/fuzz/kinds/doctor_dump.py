"""A dump with mined negatives and texts; the doctor reads its rows as stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.commands import run_command

FILES = {"dump.npz": "npz"}
CHECKSUMMED = ("dump.npz",)
SHARE = 0.5  # of the cases of other kinds: each looks for every finding
_PAIRS = 40


def make(folder: Path) -> None:
    """Write pairs, two mined negatives of each query, ids and texts."""
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(_PAIRS, 8)).astype("f4")
    documents = queries + rng.normal(size=(_PAIRS, 8)).astype("f4")
    np.savez(
        folder / "dump.npz", queries=queries, documents=documents, positives=np.stack([np.arange(_PAIRS)] * 2, 1),
        negatives=(np.arange(_PAIRS)[:, None] + [1, 2]) % _PAIRS, query_id=np.array([f"q{n}" for n in range(_PAIRS)]),
        document_text=np.array([f"text {n // 2}" for n in range(_PAIRS)]),
    )  # fmt: skip


def read(folder: Path) -> object:
    """Examine it."""
    return run_command(
        "doctor", "dump.npz", "--objective", "ntxent:tau=0.1", "--batch-size", "16", "--no-cache", "--format", "json"
    )
