"""Similarities near 1 in bfloat16, and a low temperature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from .base import Case, Size, aligned, unit


def _case(size: Size, folder: Path, dtype: torch.dtype, name: str) -> Case:
    first, second = aligned(size)
    centre = unit(size.rng.normal(size=(1, size.d)))
    sides = [torch.from_numpy(unit(x + 4 * centre)).to(dtype) for x in (first, second)]
    path = folder / name
    owner = torch.from_numpy(np.arange(size.n))
    save_file({"images": sides[0], "captions": sides[1], "caption_image": owner}, path)
    return Case((str(path),), {"objective": "ntxent:tau=0.01", "batch_size": size.batch})


def bfloat16(size: Size, folder: Path) -> Case:
    return _case(size, folder, torch.bfloat16, "dump.safetensors")


SICK = (bfloat16,)


def healthy(size: Size, folder: Path) -> Case:
    """The same numbers in float32."""
    return _case(size, folder, torch.float32, "healthy.safetensors")
