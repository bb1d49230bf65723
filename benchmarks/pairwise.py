"""How long do pairwise scores take at the original sizes (36 regions, 13 words, width 1024), against a loop?

Scoring: 500 captions with 100, 16 and 1 images; GFLOP/s count the published formulas, some of which our closed forms
avoid. Training: 64 images and 64 captions of 8 to 18 words, S forward and backward to features and parameters, counted
as three forward passes (ours takes four); `whole` adds the towers. loop: an iteration a caption. %: of a bare matrix
product. One thread, medians of interleaved repeats; each peak of memory is that of a new process, above its level with
model and inputs.
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
CAPTIONS, IMAGES, REPEATS = 500, (100, 16, 1), 3
LOOP_CAPTIONS = 100  # captions of the timed loop
MFLOP = {  # for one pair of 36 regions and 13 words, by the published formulas
    "scan:direction=t2i": 1.92,
    "scan:direction=i2t": 1.92,
    "bfan:focal=equal": 3.83,
    "bfan:focal=prob": 3.88,
    "sgraf:module=saf": 9.3,
    "sgraf:module=sgr": 26.4,
}
# freed blocks return to the system at once, so that the peak is of live tensors, without the allocator's cache
ENVIRONMENT = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
Score = Callable[[EncodedBatch, EncodedBatch], Tensor]


def attend(query: Tensor, context: Tensor, sharpness: float, focal: str = "") -> Tensor:
    """Return the attended context of each query, (n, Q, D), by the published formulas without any shortcut.

    Args:
        query: (n, Q, D).
        context: (n, C, D).
        sharpness: factor in the softmax over the context.
        focal: `equal` or `prob` of BFAN; empty for none.
    """
    s = functional.leaky_relu(torch.bmm(context, query.transpose(1, 2)), 0.1)
    s = s / (s.pow(2).sum(2, keepdim=True).sqrt() + 1e-8)
    a = (s.transpose(1, 2) * sharpness).softmax(2)
    if focal == "equal":
        a = a * (a.shape[2] * a - a.sum(2, keepdim=True) > 0)
    elif focal == "prob":
        a = a * (((a[:, :, :, None] - a[:, :, None, :]) * a[:, :, None, :].sqrt()).sum(3) > 0)
    return torch.bmm(a / a.sum(2, keepdim=True), context)


def relevance(query: Tensor, context: Tensor, sharpness: float, focal: str = "") -> Tensor:
    """Return the mean cosine of the queries with their attended context, (n,)."""
    return functional.cosine_similarity(query, attend(query, context, sharpness, focal), dim=2).mean(1)


def column(encoder: Encoder, spec: str, images: EncodedBatch, texts: EncodedBatch, j: int) -> Tensor:
    """Return S of all images with caption j, (n,): the caption is cut to its length and repeated for each image."""
    assert images.local is not None and texts.local is not None
    words = texts.local[j : j + 1, : int(texts.lengths[j])].repeat(len(images), 1, 1)
    name, _, option = spec.partition("=")
    if name == "sgraf:module":
        difference = images.extra["summary"] - texts.extra["summary"][j : j + 1]
        return graph_column(encoder.get_submodule("similarity"), images.local, words, difference)
    if name == "bfan:focal":
        return relevance(words, images.local, 20.0, option) + relevance(images.local, words, 20.0, option)
    return relevance(words, images.local, 9.0) if option == "t2i" else relevance(images.local, words, 4.0)


def graph_column(tower: nn.Module, regions: Tensor, words: Tensor, difference: Tensor) -> Tensor:
    """Return a column of SGRAF's S, (n,): each layer of each step, for each node of the graph.

    Args:
        tower: the similarity module of the encoder.
        regions: (n, R, D).
        words: (n, W, D), of one caption.
        difference: (n, D), summary vectors of the images less that of the caption.
    """
    layers = dict(tower.named_modules())
    local = layers["sim_tranloc_w"]((unit(attend(words, regions, 9.0)) - words).pow(2))
    x = unit(torch.cat([layers["sim_tranglo_w"](difference.pow(2))[:, None], local], 1))
    if "SAF_module" in layers:
        gates = layers["SAF_module.bn"](layers["SAF_module.attn_sim_w"](x).transpose(1, 2)).sigmoid()
        x = unit(torch.bmm(gates / (gates.abs().sum(2, keepdim=True) + 1e-8), x))
    else:
        for step in (f"SGR_module.{i}" for i in range(3)):
            edges = torch.bmm(layers[f"{step}.graph_query_w"](x), layers[f"{step}.graph_key_w"](x).transpose(1, 2))
            x = layers[f"{step}.sim_graph_w"](torch.bmm(edges.softmax(2), x)).relu()
    return layers["sim_eval_w"](x[:, 0]).sigmoid()[:, 0]  # type: ignore[no-any-return]


def scorers(spec: str) -> tuple[Encoder, Score, Score]:
    """Return an encoder at the original sizes, its score, and that of a loop over captions."""
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", spec).build((REGIONS, 2048), VOCABULARY)

    def ours(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        S = encoder.score(images, texts)
        assert isinstance(S, Tensor)
        return S

    def loop(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        return torch.stack([column(encoder, spec, images, texts, j) for j in range(len(texts))], 1)

    return encoder, ours, loop


def encode_random(encoder: Encoder, images: int, lengths: Tensor) -> tuple[EncodedBatch, EncodedBatch]:
    """Return images of random features and captions of random words, encoded by the towers."""
    ids = torch.randint(1, VOCABULARY, (len(lengths), int(lengths.max())))
    return encoder.encode_images(torch.randn(images, REGIONS, 2048)), encoder.encode_texts(ids, lengths)


def medians(functions: list[Callable[[], object]]) -> tuple[list[float], float]:
    """Return the median seconds of each function and GFLOP/s of bare matrix products; the first turn does not count."""
    sizes = ((100 * REGIONS, 1024, CAPTIONS * WORDS), (2048, 1024, 2048))
    calls = functions + [partial(torch.mm, torch.randn(a, b), torch.randn(b, c)) for a, b, c in sizes]
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(REPEATS + 1):
        for index, function in enumerate(calls):
            start = time.perf_counter()
            function()
            seconds[index] += [time.perf_counter() - start] if turn else []
    times = [statistics.median(repeats) for repeats in seconds]
    bare = max(2e-9 * a * b * c / t for (a, b, c), t in zip(sizes, times[len(functions) :], strict=True))
    return times[: len(functions)], bare


@torch.no_grad()
def scoring(spec: str) -> dict[str, float]:
    """Return GFLOP/s of ours and of a bare matrix product, and for each number of images seconds of the loop / ours."""
    encoder, ours, loop = scorers(spec)
    encoder.eval()
    row: dict[str, float] = {}
    for n in reversed(IMAGES):
        images, texts = encode_random(encoder, n, torch.full((CAPTIONS,), WORDS))
        part = texts.select(slice(0, LOOP_CAPTIONS))
        # a focal step may keep or drop an element on its threshold, as S is rounded differently
        assert float(((ours(images, part) - loop(images, part)).abs() > 1e-5).float().mean()) < 0.01
        (our_seconds, loop_seconds), bare = medians([partial(ours, images, texts), partial(loop, images, part)])
        row |= {f"ratio {n}": loop_seconds * CAPTIONS / LOOP_CAPTIONS / our_seconds, "bare": bare}
        row["rate"] = MFLOP[spec] * n * CAPTIONS / our_seconds / 1000
    return row


def training(spec: str, quantity: str) -> dict[str, float]:
    """Return the numbers of a training step.

    Args:
        spec: of the encoder.
        quantity: `times`: ms of ours and of the loop, and % of the bare rate; `ours`, `loop`, `whole`: peak of memory
            in MB above the level before the step.
    """
    encoder, ours, loop = scorers(spec)
    lengths, W = torch.randint(8, 19, (BATCH,)), torch.randn(BATCH, BATCH)
    with torch.no_grad():
        leaves = encode_random(encoder, BATCH, lengths)
    for tensor in (t for batch in leaves for t in batch.tensors.values()):
        tensor.requires_grad_(tensor.is_floating_point())

    def step(score: Score, size: int = BATCH) -> None:
        images, texts = encode_random(encoder, size, lengths[:size]) if quantity == "whole" else leaves
        backward(score(images.select(slice(0, size)), texts.select(slice(0, size))), W[:size, :size])

    if quantity == "times":
        (our_seconds, loop_seconds), bare = medians([partial(step, ours), partial(step, loop)])
        gflop = 3e-3 * MFLOP[spec] * BATCH * float(lengths.sum()) / WORDS
        return {"ours": 1000 * our_seconds, "loop": 1000 * loop_seconds, "%": 100 * gflop / our_seconds / bare}
    step(loop if quantity == "loop" else ours, 2)
    encoder.zero_grad()
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    step(loop if quantity == "loop" else ours)
    return {"MB": memory("VmHWM") - before}


def memory(name: str) -> float:
    """Return the memory of this process in MB (VmRSS), or its peak (VmHWM)."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) / 1024


def run_in_process(spec: str, quantity: str) -> dict[str, float]:
    """Return the numbers that a new process prints of `scoring` or `training`."""
    environment = os.environ if quantity in ("score", "times") else ENVIRONMENT
    out = subprocess.run([sys.executable, __file__, spec, quantity], check=True, capture_output=True, env=environment)
    return json.loads(out.stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Print both tables."""
    print(f"{'scoring':<20}{'GFLOP/s':>9}{'bare':>7}{'%':>6}" + "".join(f"{f'loop/ours {n}':>15}" for n in IMAGES))
    for spec in MFLOP:
        row = run_in_process(spec, "score")
        ratios = "".join(f"{row[f'ratio {n}']:>15.1f}" for n in IMAGES)
        print(f"{spec:<20}{row['rate']:>9.0f}{row['bare']:>7.0f}{100 * row['rate'] / row['bare']:>6.0f}{ratios}")
    heads = (f"{name:>10}" for name in ("ours ms", "%", "loop ms", "loop/ours", "ours MB", "loop MB", "whole MB"))
    print(f"{'training':<20}{''.join(heads)}")
    for spec in MFLOP:
        row = run_in_process(spec, "times")
        peaks = (run_in_process(spec, variant)["MB"] for variant in ("ours", "loop", "whole"))
        times = f"{row['ours']:>10.0f}{row['%']:>10.0f}{row['loop']:>10.0f}{row['loop'] / row['ours']:>10.1f}"
        print(f"{spec:<20}{times}" + "".join(f"{megabytes:>10.0f}" for megabytes in peaks))


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        print(json.dumps(scoring(sys.argv[1]) if sys.argv[2] == "score" else training(*sys.argv[1:])))
    else:
        main()
