"""Are all files of a folder verified by checksums, so that a flipped bit in any binary file is named?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lossscope
from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frames import Frame
from lossscope.registry import build
from lossscope.studies.verify import verify
from lossscope.training.offline_candidates import mine_candidates


def _flip(file: Path, share: float = 0.5) -> None:
    """Flip one bit of a file, at a share of its length."""
    content = bytearray(file.read_bytes())
    content[int(len(content) * share)] ^= 1
    file.write_bytes(content)


@pytest.fixture(scope="module")
def everything(tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a study, a frame with queries, mined candidates and extracted features; tests must not write to them."""
    home = tmp_path_factory.mktemp("everything")
    shutil.copytree(tiny_study, home / "study")
    (best, *_) = sorted((home / "study").glob("runs/*/run/best.pt"))
    embedded = lossscope.load(best, cache=False)
    sweep = Sweep(("ntxent",), probes=("similarity",), batch_size=8, per_query=True)
    sweep.run(embedded, Frame.open(home / "frame", {"name": "test"}))
    mine_candidates(embedded, home / "candidates", top=4)
    data = "scenes:train=12,val=4,test=4,size=16"
    Extraction(data, build("datasets", data), build("features", "hog-grid"), home / "features").run()
    return home


def test_what_is_whole_is_described(everything: Path) -> None:
    parts = dict(verify(everything / "study"))
    assert parts[everything / "study"] == {"kind": "study", "runs": "4, 4 of them done"}
    kinds = [facts.get("kind", "checkpoint") for facts in parts.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "study": 1, "checkpoint": 12, "tables of a run": 4, "evaluation": 4, "frame": 8
    }  # fmt: skip
    ((_, frame),) = verify(everything / "frame")
    assert frame["parts"] == "1" and "of single queries" in frame["rows"]
    ((_, candidates),) = verify(everything / "candidates")
    assert candidates["captions"] == "4 of each of 24 images"
    features = [(path.name, facts["images"]) for path, facts in verify(everything / "features")]
    assert features == [("train_ims.npy", "12"), ("val_ims.npy", "4"), ("test_ims.npy", "4")]


@pytest.mark.parametrize(
    "pattern",
    [
        "study/runs/*/run/best.pt", "study/runs/*/run/checkpoints/last.pt", "study/runs/*/run/checkpoints/epoch-01.pt",
        "study/runs/*/run/evaluation/rows.parquet", "study/runs/*/run/evaluation/per_query.parquet",
        "study/runs/*/run/evaluation/frame/part-*.parquet", "frame/part-*.parquet", "frame/query-*.parquet",
        "candidates/*.safetensors", "features/train_ims.npy", "features/val_ims.crc32.npy", "frame/manifest.json",
        "candidates/manifest.json", "study/runs/*/run/evaluation/manifest.json",
    ],
)  # fmt: skip
def test_one_flipped_bit_is_named(pattern: str, everything: Path, tmp_path: Path) -> None:
    top = pattern.partition("/")[0]
    shutil.copytree(everything / top, tmp_path / top)
    file = sorted(tmp_path.glob(pattern))[0]
    _flip(file, 0.6)
    with pytest.raises(InputError, match=file.name.replace(".", r"\.")):
        list(verify(tmp_path / top))
