"""SmoothAP at 128 images x 640 captions: ours against a plain N x M x M implementation, in ms and MB.

Every variant runs in a fresh process on one thread: median of the repeats, peak memory above the inputs.
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
# freed blocks go back to the system at once, so that a peak is what was alive, not what the allocator kept
ALONE = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
VARIANTS = (
    "plain loss",
    "ours loss",
    "plain loss and gradient",
    "ours loss and gradient",
    "plain counts",
    "ours counts",
)


def inputs() -> tuple[Tensor, Mask]:
    """S (128, 640) of noisy captions around their image, and the i2t mask."""
    generator = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(IMAGES, WIDTH, generator=generator))
    noise = torch.randn(IMAGES * CAPTIONS, WIDTH, generator=generator)
    owner = torch.arange(IMAGES).repeat_interleave(CAPTIONS)
    captions = normalise(images[owner] + 0.2 * noise)
    return images @ captions.T, group_mask(torch.arange(IMAGES), owner)


def plain(S: Tensor, match: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of candidates for every query: D (N, M, M) -> losses (N,), D. The obvious way, and the large one."""
    difference = S[:, None, :] - S[:, :, None]
    D = torch.sigmoid(difference / TAU) * (1 - torch.eye(S.shape[1]))
    rank = 1 + D.sum(2)
    among = 1 + (D * match[:, None, :]).sum(2)
    return 1 - (among / rank * match).sum(1) / match.sum(1), D


def plain_counts(S: Tensor, match: Tensor) -> Tensor:
    """(N,) triplets above eps by the same way, over the number of positives."""
    _, D = plain(S, match)
    weights = D * (1 - D) / (1 + D.sum(2, keepdim=True)).square()
    return ((weights > EPS) & match[:, :, None]).sum((1, 2)) / match.sum(1)


def work(variant: str) -> tuple[Callable[[Tensor, Mask], Tensor], bool]:
    """What a variant computes in both directions, and whether with gradient."""
    ours = SmoothAP(TAU)
    if variant == "plain counts":
        return (lambda S, mask: plain_counts(S, mask.match)), False
    if variant == "ours counts":
        return (lambda S, mask: ours.counts(S, mask, EPS).above), False
    if variant.startswith("plain"):
        return (lambda S, mask: plain(S, mask.match)[0]), variant.endswith("gradient")
    return ours.values, variant.endswith("gradient")


def _once(function: Callable[[Tensor, Mask], Tensor], S: Tensor, mask: Mask, gradient: bool) -> float:
    """Both directions once, with backward if wanted; a checksum."""
    leaf = S.clone().requires_grad_(gradient)
    result = function(leaf, mask).sum() / len(S) + function(leaf.T, mask.t()).sum() / S.shape[1]
    if not gradient:
        return float(result)
    (found,) = torch.autograd.grad(result, leaf)
    return float(result.detach()) + float(found.abs().sum())


def measure(variant: str) -> dict[str, float]:
    """Median milliseconds, peak megabytes above the inputs, and a checksum of the result, both directions."""
    torch.set_num_threads(1)
    S, mask = inputs()
    function, gradient = work(variant)
    small = S[:4, :20], Mask(mask.match[:4, :20], mask.valid[:4, :20])
    _once(function, *small, gradient)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(3 if variant.startswith("plain") else 15):
        begun = time.process_time()
        total = _once(function, S, mask, gradient)
        times.append(time.process_time() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"ms": 1000 * statistics.median(times), "MB": peak / 1024, "check": total}


def main() -> None:
    """Print the table; each variant in a process of its own."""
    found = {}
    for variant in VARIANTS:
        out = subprocess.run([sys.executable, __file__, variant], check=True, capture_output=True, text=True, env=ALONE)
        found[variant] = json.loads(out.stdout)
    print(f"SmoothAP, {IMAGES} images x {IMAGES * CAPTIONS} captions, both directions, one thread")
    print(
        f"{'':<20}{'plain ms':>10}{'ours ms':>10}{'ratio':>8}{'plain MB':>10}{'ours MB':>10}{'ratio':>8}  same result"
    )
    for what in ("loss", "loss and gradient", "counts"):
        a, b = found[f"plain {what}"], found[f"ours {what}"]
        same = abs(a["check"] - b["check"]) <= 1e-4 * abs(a["check"])
        print(
            f"{what:<20}{a['ms']:>10.1f}{b['ms']:>10.2f}{a['ms'] / b['ms']:>8.0f}"
            f"{a['MB']:>10.0f}{b['MB']:>10.1f}{a['MB'] / max(b['MB'], 0.1):>8.0f}  {'yes' if same else 'NO'}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
