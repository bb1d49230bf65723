"""Measure for the benchmarks: interleaved repeats, medians of CPU time (wall time of many threads), peak memory."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from lossscope.core.embedded import SplitEmbeddings


def medians(functions: Sequence[Callable[[], object]], repeats: int = 5, device: str = "cpu") -> list[float]:
    """Return the median seconds of each function: CPU time of one thread, else wall time.

    Args:
        functions: called in turns, so that a noisy machine slows all of them alike; the first turn does not count.
        repeats: turns that count.
        device: `cpu`, or the GPU of the functions.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    for function in functions:
        function()
    for _ in range(repeats):
        for index, function in enumerate(functions):
            synchronize(device)
            start = clock()
            function()
            synchronize(device)
            seconds[index].append(clock() - start)
    return [statistics.median(times) for times in seconds]


def synchronize(device: str) -> None:
    """Wait until a GPU is idle."""
    if device != "cpu":
        torch.cuda.synchronize()


def peak(function: Callable[[], object], device: str = "cpu") -> float:
    """Return the peak MB of a call above the memory before it."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return float(torch.cuda.max_memory_allocated() - before) / 1e6
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # return freed memory to the system, so that a new allocation counts
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the high-water mark
    before = _status("VmRSS")
    function()
    return (_status("VmHWM") - before) / 1e3


def _status(name: str) -> int:
    """Return the KB in a line of the status of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def source(images: int, captions: int, d: int, noise: float, device: str = "cpu", seed: int = 0) -> SplitEmbeddings:
    """t = unit(v + noise · g), |g| ≈ 1: random unit vectors whose matching cosines are about 1 / √(1 + noise²).

    Args:
        images: number of images.
        captions: number of captions of each image.
        d: length of a vector.
        noise: length of the random vector between a caption and its image.
        device: of the vectors.
        seed: of the random generator.
    """
    generator = torch.Generator().manual_seed(seed)
    v = torch.nn.functional.normalize(torch.randn(images, d, generator=generator), dim=1)
    caption_image = np.repeat(np.arange(images), captions)
    t = v[torch.from_numpy(caption_image)] + noise / d**0.5 * torch.randn(len(caption_image), d, generator=generator)
    t = torch.nn.functional.normalize(t, dim=1)
    ids = [[str(i) for i in range(n)] for n in (images, len(caption_image))]
    return SplitEmbeddings("random", v, t, None, caption_image, ids[0], ids[1], "0" * 64).to(torch.device(device))


def machine(device: str = "cpu") -> str:
    """Return the processor or GPU, the version of torch and the load of the machine, for the head of a table."""
    if device != "cpu":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {load()}"
    names = {line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")}
    capability = torch.backends.cpu.get_cpu_capability()
    processor = f"{', '.join(sorted(names)) or platform.machine()} ({capability})"
    return f"one thread of {processor}, torch {torch.__version__}; {load()}"


def load() -> str:
    """Return the load: processes that wanted a core in the last 1, 5 and 15 minutes, this process included."""
    averages = "/".join(f"{average:.1f}" for average in os.getloadavg())
    return f"load {averages} on {os.cpu_count()} cores"


def gpu_name(name: str | None = None) -> str:
    """Return the short name of a GPU, for the names of files.

    Raises SystemExit if torch sees no GPU.

    >>> [gpu_name(name) for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090")]
    ['h100', 'a100', 'rtx-4090']

    Args:
        name: as in the driver; None: that of the first GPU.
    """
    if name is None and not torch.cuda.is_available():
        raise SystemExit("a GPU must be there for `make bench-gpu`; torch sees none")
    words = [word for word in re.split(r"[^a-z0-9]+", (name or torch.cuda.get_device_name()).lower()) if word]
    words = [
        word for word in words if word not in ("nvidia", "amd", "tesla", "geforce", "quadro", "instinct", "graphics")
    ]
    numbered = next((position for position, word in enumerate(words) if re.search(r"\d", word)), len(words) - 1)
    return "-".join(words[: numbered + 1]) or "gpu"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns, the first to the left and the others to the right."""
    widths = [max(len(row[index]) for row in (heads, *rows)) for index in range(len(heads))]
    lines = []
    for first, *others in (heads, *rows):
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells))
    return "\n".join(lines)
