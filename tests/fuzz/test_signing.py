"""Does signed damage reach the reader of the content, and are the signed checksums right?"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lossscope.io.frames import KEYS, TEXTS, Frame
from lossscope.io.manifests import read_manifest
from lossscope.io.rows_on_disk import RowsOnDisk, write_rows
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.fuzz.signing import sign


def sha(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_signed_part_and_its_manifest_are_read(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path, {"name": "test"})
    row = {**dict.fromkeys(KEYS, 1), "source": "a", "statistics": "mean"}
    texts = dict.fromkeys(TEXTS & row.keys(), "a")
    frame.append(pd.DataFrame([{**row, **texts, "mean": 1.0}]), "a")
    part = tmp_path / "part-00000.parquet"
    before = sha(part)
    pd.DataFrame([{**row, **texts, "mean": 2.0}]).to_parquet(part, index=False)
    assert sign(part, before) and frame.read()["mean"].tolist() == [2.0]
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "done": True}))
    assert sign(manifest, "0" * 64) and read_manifest(manifest)["done"]


def test_a_signed_checkpoint_is_read(tiny_checkpoint: Path, tmp_path: Path) -> None:
    content = torch.load(tiny_checkpoint, weights_only=True)
    torch.save({**content, "epoch": 7}, tmp_path / "a.pt")
    assert sign(tmp_path / "a.pt", "0" * 64) and Checkpoint.load(tmp_path / "a.pt").epoch == 7


def test_signed_rows_are_read(tmp_path: Path) -> None:
    file, rows = tmp_path / "a.npy", np.ones((3, 2), np.float32)
    write_rows(file, rows.shape, [rows])
    np.save(file, rows * 2)
    assert sign(file, "0" * 64) and np.array_equal(RowsOnDisk.open(file).take(slice(None)), rows * 2)


def test_what_cannot_be_signed_stays(tmp_path: Path) -> None:
    for name in ("a.pt", "a.safetensors", "a.json", "a.npy"):
        (tmp_path / name).write_bytes(b"x")
        assert not sign(tmp_path / name, "0" * 64) and (tmp_path / name).read_bytes() == b"x"
