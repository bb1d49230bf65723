"""Are files of an outside tester refused by name? Each ended in a traceback, or was believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.errors import InputError
from lossscope.io.csv_tables import read_csv
from lossscope.io.evaluation_folder import SCHEMA, frames_of, write_evaluation
from lossscope.io.files import write_safetensors
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.embedding_cache import read_cache, write_cache
from lossscope.training.inputs import read_info
from tests.tiny import RECIPE


def test_an_item_shape_of_single_numbers_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    content = torch.load(tiny_checkpoint, weights_only=True)
    del content["digests"]
    torch.save({**content, "version": 2, "item_shape": {"a": 3}}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"item_shape of .*a\.pt must be whole numbers; got 3"):
        Checkpoint.load(tmp_path / "a.pt")


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 1j], ids=["nan", "inf", "complex"])
def test_a_network_of_other_numbers_is_refused(odd: complex, tmp_path: Path) -> None:
    shapes = {"0.weight": (4, 2), "0.bias": (4,), "1.weight": (2, 4), "1.bias": (2,)}
    net = {name: torch.full(shape, odd) for name, shape in shapes.items()}
    write_safetensors(tmp_path / "net.safetensors", net)
    objective = build("objectives", f"meta_spn:hidden=4,net={tmp_path / 'net.safetensors'}")
    with pytest.raises(InputError, match=r"net\.safetensors must hold a net .* must be finite floats"):
        objective.network()


@pytest.mark.parametrize("change", [lambda x: x[:0], lambda x: x[:, :2], lambda x: x.double()])
def test_a_cache_of_another_shape_is_made_again(change: object, tmp_path: Path) -> None:
    images, captions = torch.ones(3, 4), torch.ones(6, 4)
    write_cache(tmp_path / "a.safetensors", images, captions, "model", "checkpoint")
    assert read_cache(tmp_path / "a.safetensors", 3, 6) is not None
    write_cache(tmp_path / "a.safetensors", change(images), captions, "model", "checkpoint")  # type: ignore[operator]
    assert read_cache(tmp_path / "a.safetensors", 3, 6) is None


def test_an_evaluation_whose_manifest_is_a_folder_is_refused(tmp_path: Path) -> None:
    write_evaluation(tmp_path, {"more": pd.DataFrame({"mean": [1.0]})}, {"schema": SCHEMA})
    manifest = tmp_path / "evaluation" / "manifest.json"
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(InputError, match=r"manifest\.json must be a file; it is a folder"):
        frames_of(tmp_path)


def test_a_table_of_thousands_of_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(map(str, range(3000))) + "\n")
    with pytest.raises(InputError, match=r"a\.csv must have at most 1000 columns to read; got 3000"):
        read_csv(tmp_path / "a.csv")


def test_weights_that_are_infinite_are_not_drawn(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["diagram", "--m", "-1", "--out", str(tmp_path / "a.png")])
    assert result.exit_code == 1 and "must be finite for a picture" in result.output
    assert not list(tmp_path.iterdir())


def test_columns_of_the_other_byte_order_are_numbers(tmp_path: Path) -> None:
    split = build("datasets", "scenes:train=4,val=2,test=2,size=16").split("train")
    labels = np.arange(len(split.captions), dtype=np.float64) / 100
    np.savez(tmp_path / "info.npz", label=labels.astype(">f8"))
    recipe = replace(RECIPE, info=str(tmp_path / "info.npz"))
    info = read_info(recipe, build("objectives", "ncr"), "pairs", split)
    assert torch.equal(info["label"], torch.from_numpy(labels).float())
