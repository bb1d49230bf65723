"""How much time and memory does SmoothAP take at 128 images x 640 captions, against a plain N x M x M implementation?

Each variant runs in a new process on one thread: median of the repeats in ms, peak memory above the inputs in MB.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, group_mask, normalise
from lossscope.objectives.smoothap import SmoothAP

IMAGES, CAPTIONS, WIDTH, TAU, EPS = 128, 5, 64, 0.01, 0.01
# freed blocks return to the system at once, so that the peak is of live tensors, without the allocator's cache
ENVIRONMENT = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
VARIANTS = (
    "plain loss",
    "ours loss",
    "plain loss and gradient",
    "ours loss and gradient",
    "plain counts",
    "ours counts",
)


def inputs() -> tuple[Tensor, Mask]:
    """Return S (128, 640) of captions that are their image plus noise, and the i2t mask."""
    generator = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(IMAGES, WIDTH, generator=generator))
    noise = torch.randn(IMAGES * CAPTIONS, WIDTH, generator=generator)
    caption_image = torch.arange(IMAGES).repeat_interleave(CAPTIONS)
    captions = normalise(images[caption_image] + 0.2 * noise)
    return images @ captions.T, group_mask(torch.arange(IMAGES), caption_image)


def plain(S: Tensor, match: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses (N,) and D (N, M, M), the sigmoid of the difference of each two candidates of a query."""
    difference = S[:, None, :] - S[:, :, None]
    D = torch.sigmoid(difference / TAU) * (1 - torch.eye(S.shape[1]))
    rank = 1 + D.sum(2)
    rank_in_positives = 1 + (D * match[:, None, :]).sum(2)
    return 1 - (rank_in_positives / rank * match).sum(1) / match.sum(1), D


def plain_counts(S: Tensor, match: Tensor) -> Tensor:
    """Return the number of triplets above eps over the number of positives, (N,), from D (N, M, M)."""
    _, D = plain(S, match)
    weights = D * (1 - D) / (1 + D.sum(2, keepdim=True)).square()
    return ((weights > EPS) & match[:, :, None]).sum((1, 2)) / match.sum(1)


def variant_function(variant: str) -> tuple[Callable[[Tensor, Mask], Tensor], bool]:
    """Return the function of a variant for a direction, and whether it also computes the gradient."""
    ours = SmoothAP(TAU)
    if variant == "plain counts":
        return (lambda S, mask: plain_counts(S, mask.match)), False
    if variant == "ours counts":
        return (lambda S, mask: ours.counts(S, mask, EPS).above), False
    if variant.startswith("plain"):
        return (lambda S, mask: plain(S, mask.match)[0]), variant.endswith("gradient")
    return ours.values, variant.endswith("gradient")


def _call(function: Callable[[Tensor, Mask], Tensor], S: Tensor, mask: Mask, gradient: bool) -> float:
    """Compute both directions, and dL/dS if `gradient` is set; return a checksum."""
    leaf = S.clone().requires_grad_(gradient)
    result = function(leaf, mask).sum() / len(S) + function(leaf.T, mask.t()).sum() / S.shape[1]
    if not gradient:
        return float(result)
    (dS,) = torch.autograd.grad(result, leaf)
    return float(result.detach()) + float(dS.abs().sum())


def measure(variant: str) -> dict[str, float]:
    """Return median milliseconds, peak megabytes above the inputs, and a checksum of the result, both directions."""
    torch.set_num_threads(1)
    S, mask = inputs()
    function, gradient = variant_function(variant)
    small = S[:4, :20], Mask(mask.match[:4, :20], mask.valid[:4, :20])
    _call(function, *small, gradient)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(3 if variant.startswith("plain") else 15):
        start = time.process_time()
        check = _call(function, S, mask, gradient)
        times.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"ms": 1000 * statistics.median(times), "MB": peak / 1024, "check": check}


def main() -> None:
    """Run each variant in a new process and print the table."""
    results = {}
    for variant in VARIANTS:
        command = [sys.executable, __file__, variant]
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
        results[variant] = json.loads(out.stdout)
    print(f"SmoothAP, {IMAGES} images x {IMAGES * CAPTIONS} captions, both directions, one thread")
    print(
        f"{'':<20}{'plain ms':>10}{'ours ms':>10}{'ratio':>8}{'plain MB':>10}{'ours MB':>10}{'ratio':>8}  same result"
    )
    for quantity in ("loss", "loss and gradient", "counts"):
        plain_result, ours = results[f"plain {quantity}"], results[f"ours {quantity}"]
        same = abs(plain_result["check"] - ours["check"]) <= 1e-4 * abs(plain_result["check"])
        time_ratio, memory_ratio = plain_result["ms"] / ours["ms"], plain_result["MB"] / max(ours["MB"], 0.1)
        print(
            f"{quantity:<20}{plain_result['ms']:>10.1f}{ours['ms']:>10.2f}{time_ratio:>8.0f}"
            f"{plain_result['MB']:>10.0f}{ours['MB']:>10.1f}{memory_ratio:>8.0f}  {'yes' if same else 'NO'}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
