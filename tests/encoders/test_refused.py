"""Does each family refuse options out of range, and items of another shape, before it builds anything?"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each

MMT = "mmt:dim=8,layers=2,heads=2,ffn=12,positions=6,bert=1x64,window=2.0"
XVLM = {
    "embed": "32", "depths": "2/2", "window": "4", "patch": "2", "width": "128", "layers": "3", "fused": "2",
    "positions": "64", "max_tokens": "16", "dim": "12", "dropout": "0", "drop_path": "0",
}  # fmt: skip


@each("spec, message", [
    ("bfan:lambda_softmax=0", "lambda_softmax must be > 0 and finite; got 0"),
    ("ce:dim=0", "dim, text_clusters, word_dim and length of ce must be at least 1"),
    ("ce:ghosts=-1", "ghosts at least 0"),
    ("ce:clusters=audio", r"clusters must be EXPERT=NUMBER\+"),
    ("ce:clusters=audio=0", r"clusters must be EXPERT=NUMBER\+"),
    ("ce:rows=audio=2+audio=3", r"rows must be EXPERT=NUMBER\+"),
    ("ce:word_init=0", "word_init must be > 0"),
    ("ce:gating=none", "must be one of sequential, simultaneous"),
    ("mmt:dim=6,heads=4", "dim a multiple of heads"),
    ("mmt:positions=1", "positions must be at least 2"),
    ("mmt:window=0", "window > 0"),
    ("mmt:dropout=1", "dropout must be in"),
    ("mmt:bert=2x65", "a multiple of 64"),
    ("scan:dim=0", "dim must be > 0 and finite; got 0"),
    ("scan:lambda_softmax=-1", "lambda_softmax must be > 0"),
    ("scan:lambda_lse=0", "lambda_lse must be > 0"),
    ("scan:pool=mean", "must be one of avg, lse, sum, max"),
    ("sgraf:steps=0", "steps must be > 0 and finite; got 0"),
    ("sgraf:dropout=1", r"dropout must be in \[0, 1\); got 1.0"),
    ("sgraf:sim_dim=0", "sim_dim must be > 0"),
    ("sgraf:lambda_softmax=nan", "lambda_softmax must be"),
    ("sgraf:module=both", "must be one of saf, sgr"),
    ("vse_infty:dim=1", "dim must be at least 2"),
    ("vse_infty:drop=1", r"drop must be in \[0, 1\); got 1.0"),
    ("vse_infty:weights=a.pth", "weights are for the backbone of image=grid; got image=regions"),
    ("vse_infty:bert=2x65", "a width that is a multiple of 64; got 2x65"),
    ("vse_infty:image=pixels", "must be one of regions, grid"),
    ("vsepp:crop=-1", "crop must be >= 0, and 0 for image=linear; got -1"),
    ("vsepp:image=linear,crop=8", "crop must be >= 0, and 0 for image=linear; got 8"),
    ("vsepp:dim=0", "dim, words and width must be at least 1; got 0"),
    ("vsepp:weights=a.pth", "weights are for resnet, vgg19 and vit towers; got image=cnn-small"),
    ("vsepp:image=resnet34", "must be one of cnn-small, linear, resnet18"),
    ("vsrn:dim=0", "dim, words and blocks must be at least 1; got 0"),
    ("vsrn:word_init=0", "word_init must be > 0 and longest >= 3; got 0"),
    ("vsrn:longest=2", "got 0.1 and 2"),
    ("vsrn:layers=0", "layers must be at least 1; got 0"),
])  # fmt: skip
def test_options_out_of_range_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("encoders", spec)


@each("spec, shape, message", [
    ("bfan:dim=8,words=4", (2048,), "bfan must be given region features"),
    ("ce", (36, 2048), "ce must be given videos"),
    (MMT, (36, 2048), "mmt"),
    (MMT, {"face": (5, 3)}, "mmt"),
    (MMT, {"face": (5, 3), "face.length": ()}, "mmt"),
    *(("scan:dim=8,words=4", shape, r"scan must be given region features, \(regions, d\)")
      for shape in ((2048,), (3, 64, 64), (0, 4), {"rgb": (2048,)})),
    ("vse_infty:image=regions,text=bigru", (2048,), "image=regions must be given"),
    ("vse_infty:image=regions,text=bigru", (3, 64, 64), "image=regions must be given"),
    ("vse_infty:image=grid,text=bigru", (36, 2048), "image=grid must be given"),
    ("vsepp", (2048,), r"image=cnn-small must be given pixels, \(3, H, W\); .* shape \(2048,\)"),
    ("vsepp", (36, 2048), "must be given pixels"),
    ("vsepp:image=resnet18,finetune=true", (36, 2048), "must be given pixels"),
    ("vsepp:image=linear", (3, 64, 64), r"image=linear must be given features, \(d,\) or \(regions, d\)"),
    ("vsepp", (3, 8, 64), "at least 16 x 16; got 8 x 64"),
    ("vsrn", (2048,), r"vsrn must be given regions, \(R, d\); .* shape \(2048,\)"),
])  # fmt: skip
def test_items_of_another_shape_are_refused(spec: str, shape: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("encoders", spec).rebuild(shape, 10, {})


@each("option, shape, message", [
    ("", (36, 2048), "xvlm must be given square pictures"),
    ("", (3, 16, 32), "xvlm must be given square pictures"),
    ("patch=3", (3, 16, 16), "patch must divide the pictures' side, 16; got 3"),
    ("window=3", (3, 16, 16), "window must divide the 8 tokens of a side in stage 0; got 3"),
    ("patch=16", (3, 16, 16), "tokens of a side must be even before stage 1; got 1"),
    ("depths=2/x", (3, 16, 16), "depths must be whole numbers from 1"),
    ("embed=40", (3, 16, 16), "embed must be a multiple of 32 and width of 64; got 40 and 128"),
    ("fused=3", (3, 16, 16), "fused must be below layers, 3; got 3"),
    ("max_tokens=65", (3, 16, 16), r"max_tokens must be in 3..64 \(positions\); got 65"),
    ("k_test=0", (3, 16, 16), "sizes and k_test must be at least 1"),
    ("dropout=1", (3, 16, 16), r"dropout and drop_path must be in \[0, 1\)"),
    ("init=0", (3, 16, 16), "init must be > 0; got 0.0"),
    ("score=dot", (3, 16, 16), "must be one of itc, itm"),
])  # fmt: skip
def test_what_does_not_fit_an_xvlm_is_refused(option: str, shape: tuple[int, ...], message: str) -> None:
    options = {**XVLM, **dict(pair.split("=") for pair in [option] if pair)}
    with pytest.raises(InputError, match=message):
        build("encoders", "xvlm:" + ",".join(f"{k}={v}" for k, v in options.items())).build(shape, 10)


@each("spec, shape, batch, message", [
    ("scan:dim=8,words=4", (5, 6), (2, 6), r"images must be region features, \(n, regions, d\); got \(2, 6\)"),
    ("sgraf:dim=8,words=4,sim_dim=6", (5, 7), (2, 4, 7), "images must have 5 regions; got 4"),
])  # fmt: skip
def test_batches_of_another_shape_are_refused(spec: str, shape: Any, batch: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("encoders", spec).build(shape, 10).encode_images(torch.zeros(batch))
