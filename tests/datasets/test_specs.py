"""Is the spec of a data set read as it is written, and is an option out of range refused before anything is read?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lossscope.datasets.beir import Beir
from lossscope.datasets.grids import Grids
from lossscope.datasets.karpathy import Karpathy
from lossscope.datasets.msrvtt import MSRVTT
from lossscope.datasets.passages import Passages
from lossscope.datasets.precomp import Precomp
from lossscope.datasets.scenes import Scenes
from lossscope.datasets.webdataset import WebDataset
from lossscope.datasets.xvlm import XVLM
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from tests.each import each

ROOT = Path("some/folder")


@each("spec, expected", [
    ("beir:root=some/folder,top=3", Beir("some/folder", top=3)),
    ("grids:root=some/folder,folder=flickr30k-images,size=256", Grids(ROOT, "flickr30k-images", 256)),
    ("karpathy:root=some/folder,name=flickr8k,size=64,on-error=skip,restval=false",
     Karpathy(ROOT, "flickr8k", 64, restval=False, on_error="skip")),
    ("msrvtt:root=some/folder,lists=full,experts=face+rgb,layout=mult-h5,words=some/folder/words",
     MSRVTT(ROOT, lists="full", experts="face+rgb", layout="mult-h5", words=ROOT / "words")),
    ("passages:val=40,negatives=2,duplicates=0.1,seed=3", Passages(val=40, negatives=2, duplicates=0.1, seed=3)),
    ("precomp:root=some/folder,dev-first=5000", Precomp(ROOT, 5000)),
    ("scenes:ambiguity=0.5,size=32,seed=3", Scenes(ambiguity=0.5, size=32, seed=3)),
    ("webdataset:shards=some/folder/*.tar,cut=hash,size=64", WebDataset("some/folder/*.tar", "hash", 64)),
    ("xvlm:root=some/folder,name=flickr30k,words=30", XVLM(ROOT, "flickr30k", words=30)),
])  # fmt: skip
def test_specs_round_trip(spec: str, expected: Any) -> None:
    data = build("datasets", spec)
    assert data == expected
    assert build("datasets", spec_of(data)) == data


@each("spec, message", [
    ("coco:root=a,size=0", "coco:size must be"),
    ("coco:root=a,captions=-1", "coco:captions must be"),
    ('coco:root=a,file="{split}{split}"', "at most once"),
    (f'coco:root=a,file={Path("a").absolute()}', "relative to root"),
    ('coco:root=a,file=captions.json,folder="{split}2014"', "coco:file must hold"),
    ("grids:root=a,size=0", "grids:size must be"),
    ("grids:root=a,dev_first=-1", "grids:dev_first must be at least 1, or 0 for all; got -1"),
    ("grids:root=a,resample=cv2,squeeze=false", "grids:squeeze must be true"),
    ("karpathy:root=a,name=toy,size=0", "karpathy:size must be"),
    ("karpathy:root=a,name=toy,captions=-1", "karpathy:captions must be"),
    ("passages:train=1", r"passages:train must be in 2\.\.12288; got 1"),
    ("passages:val=3073", r"passages:val must be in 2\.\.3072; got 3073"),
    ("passages:facts=5", r"passages:facts must be in 2\.\.4; got 5"),
    ("passages:negatives=17", r"passages:negatives must be in 0\.\.16; got 17"),
    ("passages:duplicates=1.5", r"passages:duplicates must be in 0\.\.1; got 1\.5"),
    ("passages:seed=-1", "passages:seed must be in"),
    ("passages:false_negatives=0.01",
     "mined_answers must be at most the answers without a label; train has 20 of them; got 160. Raise"),
    ("precomp:root=a,dev-first=-1", "precomp:dev_first must be"),
    ("scenes:ambiguity=1.5", r"scenes:ambiguity must be in 0\.\.1; got 1\.5"),
    ("scenes:size=8", r"scenes:size must be in 16\.\.512; got 8"),
    ("scenes:train=0", "scenes:train must be in"),
    ("scenes:captions=0", "scenes:captions must be in"),
    ("scenes:seed=-1", "scenes:seed must be in"),
    ("texts:file=train.jsonl,val_share=1", r"val_share must be in \[0, 1\)"),
    ("texts:file=train.jsonl,val_share=0.5,test_share=0.5", "must leave some for train"),
    ("texts:file=train.jsonl,negatives=-1", "texts:negatives must be at least 1, or 0 for all; got -1"),
    ("texts:file=train.jsonl,columns=x", "columns must be"),
    ("webdataset:shards=a,size=8193", "webdataset:size must be at most 8192 pixels; got 8193"),
    ("xvlm:root=a,name=toy,captions=-1", "xvlm:captions must be at least 1, or 0 for all; got -1"),
])  # fmt: skip
def test_options_out_of_range_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("datasets", spec)


def test_an_option_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="passages:false_negatives must be in"):
        Passages(false_negatives=float("nan"))
    with pytest.raises(InputError, match="got nan"):
        Scenes(ambiguity=float("nan"))


@each("name", ["passages", "scenes"])
def test_for_unknown_splits_the_splits_are_listed(name: str) -> None:
    with pytest.raises(InputError, match="must be one of train, val, test; got 'dev'"):
        build("datasets", name).split("dev")
