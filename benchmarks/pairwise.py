"""Pairwise scores at the original sizes (36 regions, 13 words, width 1024): ours against one iteration per caption.

Scoring: 500 captions with 100, 16 and 1 images; GFLOP/s count the published formulas, part of which our closed forms
avoid. Training: 64 images and 64 captions of 8 to 18 words, S forward and backward to features and parameters, counted
as three forward passes (ours does four); `whole` adds the towers. %: of a bare matrix product. One thread, medians of
interleaved repeats; each peak of memory is that of a fresh process above what it held with model and inputs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from lossscope.core.weights import backward
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.scan_towers import unit
from lossscope.encoders.types import EncodedBatch
from lossscope.registry import build

REGIONS, WORDS, VOCABULARY, BATCH = 36, 13, 8481, 64
CAPTIONS, LOOPED, IMAGES, REPEATS = 500, 100, (100, 16, 1), 3
MFLOP = {  # for one pair of 36 regions and 13 words, by the published formulas
    "scan:direction=t2i": 1.92,
    "scan:direction=i2t": 1.92,
    "bfan:focal=equal": 3.83,
    "bfan:focal=prob": 3.88,
    "sgraf:module=saf": 9.3,
    "sgraf:module=sgr": 26.4,
}
ALONE = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}  # keeps nothing freed
Score = Callable[[EncodedBatch, EncodedBatch], Tensor]


def attended(query: Tensor, context: Tensor, sharpness: float, focal: str = "") -> Tensor:
    """(n, Q, D) from query (n, Q, D) and context (n, C, D), everything spelt out."""
    s = functional.leaky_relu(torch.bmm(context, query.transpose(1, 2)), 0.1)
    s = s / (s.pow(2).sum(2, keepdim=True).sqrt() + 1e-8)
    a = (s.transpose(1, 2) * sharpness).softmax(2)
    if focal == "equal":
        a = a * (a.shape[2] * a - a.sum(2, keepdim=True) > 0)
    elif focal == "prob":
        a = a * (((a[:, :, :, None] - a[:, :, None, :]) * a[:, :, None, :].sqrt()).sum(3) > 0)
    return torch.bmm(a / a.sum(2, keepdim=True), context)


def relevance(query: Tensor, context: Tensor, sharpness: float, focal: str = "") -> Tensor:
    """Mean cosine of the queries with what they attend to, (n,)."""
    return functional.cosine_similarity(query, attended(query, context, sharpness, focal), dim=2).mean(1)


def column(encoder: Encoder, spec: str, images: EncodedBatch, texts: EncodedBatch, j: int) -> Tensor:
    """S of all images with caption j, (n,): cut to its length and repeated for every image."""
    assert images.local is not None and texts.local is not None
    words = texts.local[j : j + 1, : int(texts.lengths[j])].repeat(len(images), 1, 1)
    name, _, option = spec.partition("=")
    if name == "sgraf:module":
        far = images.extra["whole"] - texts.extra["whole"][j : j + 1]
        return graph_column(encoder.get_submodule("similarity"), images.local, words, far)
    if name == "bfan:focal":
        return relevance(words, images.local, 20.0, option) + relevance(images.local, words, 20.0, option)
    return relevance(words, images.local, 9.0) if option == "t2i" else relevance(images.local, words, 4.0)


def graph_column(tower: nn.Module, regions: Tensor, words: Tensor, far: Tensor) -> Tensor:
    """SGRAF's column from regions, words and differences of whole vectors: every map of every step, for every node."""
    part = dict(tower.named_modules())
    near = part["sim_tranloc_w"]((unit(attended(words, regions, 9.0)) - words).pow(2))
    x = unit(torch.cat([part["sim_tranglo_w"](far.pow(2))[:, None], near], 1))
    if "SAF_module" in part:
        gates = part["SAF_module.bn"](part["SAF_module.attn_sim_w"](x).transpose(1, 2)).sigmoid()
        x = unit(torch.bmm(gates / (gates.abs().sum(2, keepdim=True) + 1e-8), x))
    else:
        for step in (f"SGR_module.{i}" for i in range(3)):
            edges = torch.bmm(part[f"{step}.graph_query_w"](x), part[f"{step}.graph_key_w"](x).transpose(1, 2))
            x = part[f"{step}.sim_graph_w"](torch.bmm(edges.softmax(2), x)).relu()
    return part["sim_eval_w"](x[:, 0]).sigmoid()[:, 0]  # type: ignore[no-any-return]


def scorers(spec: str) -> tuple[Encoder, Score, Score]:
    """An encoder at the original sizes, its score, and the loop's."""
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", spec).build((REGIONS, 2048), VOCABULARY)

    def ours(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        S = encoder.score(images, texts)
        assert isinstance(S, Tensor)
        return S

    def loop(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        return torch.stack([column(encoder, spec, images, texts, j) for j in range(len(texts))], 1)

    return encoder, ours, loop


def sides(encoder: Encoder, images: int, lengths: Tensor) -> tuple[EncodedBatch, EncodedBatch]:
    """Images and captions of random features and words through the towers."""
    ids = torch.randint(1, VOCABULARY, (len(lengths), int(lengths.max())))
    return encoder.encode_images(torch.randn(images, REGIONS, 2048)), encoder.encode_texts(ids, lengths)


def medians(functions: list[Callable[[], object]]) -> tuple[list[float], float]:
    """Seconds of each, measured in turns after one that does not count, and GFLOP/s of bare matrix products."""
    sizes = ((100 * REGIONS, 1024, CAPTIONS * WORDS), (2048, 1024, 2048))
    work = functions + [partial(torch.mm, torch.randn(a, b), torch.randn(b, c)) for a, b, c in sizes]
    taken: list[list[float]] = [[] for _ in work]
    for turn in range(REPEATS + 1):
        for place, function in enumerate(work):
            begun = time.perf_counter()
            function()
            taken[place] += [time.perf_counter() - begun] if turn else []
    found = [statistics.median(times) for times in taken]
    bare = max(2e-9 * a * b * c / seconds for (a, b, c), seconds in zip(sizes, found[len(functions) :], strict=True))
    return found[: len(functions)], bare


@torch.no_grad()
def scoring(spec: str) -> dict[str, float]:
    """GFLOP/s of ours and of a bare matrix product, and seconds of the loop over seconds of ours by images."""
    encoder, ours, loop = scorers(spec)
    encoder.eval()
    found: dict[str, float] = {}
    for n in reversed(IMAGES):
        images, texts = sides(encoder, n, torch.full((CAPTIONS,), WORDS))
        some = texts.select(slice(0, LOOPED))
        # rounding decides what a focal step keeps where an element lies on its threshold
        assert float(((ours(images, some) - loop(images, some)).abs() > 1e-5).float().mean()) < 0.01
        (mine, looped), bare = medians([partial(ours, images, texts), partial(loop, images, some)])
        found |= {f"ratio {n}": looped * CAPTIONS / LOOPED / mine, "bare": bare}
        found["rate"] = MFLOP[spec] * n * CAPTIONS / mine / 1000
    return found


def training(spec: str, what: str) -> dict[str, float]:
    """One step of `ours`, `loop` or `whole`: MB above the level before; of `both`: ms and % of the bare rate."""
    encoder, ours, loop = scorers(spec)
    lengths, W = torch.randint(8, 19, (BATCH,)), torch.randn(BATCH, BATCH)
    with torch.no_grad():
        leaves = sides(encoder, BATCH, lengths)
    for tensor in (t for side in leaves for t in side.tensors.values()):
        tensor.requires_grad_(tensor.is_floating_point())

    def step(score: Score, size: int = BATCH) -> None:
        images, texts = sides(encoder, size, lengths[:size]) if what == "whole" else leaves
        backward(score(images.select(slice(0, size)), texts.select(slice(0, size))), W[:size, :size])

    if what == "both":
        (mine, looped), bare = medians([partial(step, ours), partial(step, loop)])
        work = 3e-3 * MFLOP[spec] * BATCH * float(lengths.sum()) / WORDS
        return {"ours": 1000 * mine, "loop": 1000 * looped, "%": 100 * work / mine / bare}
    step(loop if what == "loop" else ours, 2)
    encoder.zero_grad()
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    step(loop if what == "loop" else ours)
    return {"MB": memory("VmHWM") - before}


def memory(what: str) -> float:
    """MB of this process: VmRSS, what it holds; VmHWM, the peak of that."""
    return int(Path("/proc/self/status").read_text().partition(f"{what}:")[2].split()[0]) / 1024


def alone(spec: str, what: str) -> dict[str, float]:
    """The numbers of a fresh process."""
    where = os.environ if what in ("score", "both") else ALONE
    out = subprocess.run([sys.executable, __file__, spec, what], check=True, capture_output=True, env=where)
    return json.loads(out.stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Print both tables."""
    print(f"{'scoring':<20}{'GFLOP/s':>9}{'bare':>7}{'%':>6}" + "".join(f"{f'loop/ours {n}':>15}" for n in IMAGES))
    for spec in MFLOP:
        row = alone(spec, "score")
        ratios = "".join(f"{row[f'ratio {n}']:>15.1f}" for n in IMAGES)
        print(f"{spec:<20}{row['rate']:>9.0f}{row['bare']:>7.0f}{100 * row['rate'] / row['bare']:>6.0f}{ratios}")
    heads = (f"{name:>10}" for name in ("ours ms", "%", "loop ms", "loop/ours", "ours MB", "loop MB", "whole MB"))
    print(f"{'training':<20}{''.join(heads)}")
    for spec in MFLOP:
        row, (mine, looped, whole) = alone(spec, "both"), (alone(spec, k)["MB"] for k in ("ours", "loop", "whole"))
        times = f"{row['ours']:>10.0f}{row['%']:>10.0f}{row['loop']:>10.0f}{row['loop'] / row['ours']:>10.1f}"
        print(f"{spec:<20}{times}{mine:>10.0f}{looped:>10.0f}{whole:>10.0f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        print(json.dumps(scoring(sys.argv[1]) if sys.argv[2] == "score" else training(*sys.argv[1:])))
    else:
        main()
