"""Weights, features and pictures that follow from a seed and a name, the same here and where the authors' code ran.

The known answers in tests/data/authors were computed by the authors' code on inputs of this file, so that they need no
weights: numpy's RandomState gives the same numbers in every version.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

Floats = npt.NDArray[np.float32]
_DRAWN = (1 << 18) - 5  # a prime, so that rows of repeated numbers differ


def weights_by_rule(shapes: Mapping[str, Sequence[int]], seed: int = 0, scale: float = 0.3) -> dict[str, Tensor]:
    """Return a tensor for each name: normal numbers of deviation `scale`, which depend on the seed and the name only.

    Those named running_var, weight_g and logit_scale are positive; num_batches_tracked is a whole number.
    """
    return {name: _tensor(name, tuple(shape), seed, scale) for name, shape in shapes.items()}


def network_by_rule(shapes: Mapping[str, Sequence[int]], seed: int = 0) -> dict[str, Tensor]:
    """Return tensors for a deep network of pictures, whose activations stay near 1: deviation √(2 / fan in).

    Batch norms are near the identity, but for `bn3`, the last one of a block, at 0.5. At most 2¹⁸ numbers are drawn for
    a tensor and repeated, as large ones would take seconds.
    """
    return {name: _network_tensor(name, tuple(shape), seed) for name, shape in shapes.items()}


def features_by_rule(shape: Sequence[int], seed: int = 0) -> Floats:
    """Return non-negative features, as the pooled activations of a network are, (N, d) or (N, R, d) float32."""
    return np.abs(np.random.RandomState(1000 + seed).standard_normal(tuple(shape))).astype(np.float32)


def write_pictures(folder: Path, sizes: Sequence[tuple[int, int]], seed: int = 0) -> list[Path]:
    """Write PNG files `0.png`, ... of (width, height) each: coarse colours with fine noise, so that filters matter."""
    paths = []
    for number, (width, height) in enumerate(sizes):
        random = np.random.RandomState(2000 + 10 * seed + number)
        coarse = Image.fromarray(random.randint(0, 256, (5, 4, 3), dtype=np.uint8))
        noise = random.randint(-40, 41, (height, width, 3))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.NEAREST), dtype=np.int64)
        paths.append(folder / f"{number}.png")
        Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8)).save(paths[-1])
    return paths


def _network_tensor(name: str, shape: tuple[int, ...], seed: int) -> Tensor:
    if name.endswith("num_batches_tracked"):
        return torch.tensor(7)
    size = int(np.prod(shape))
    drawn = np.random.RandomState((zlib.crc32(name.encode()) + seed) % (1 << 32)).standard_normal(min(size, _DRAWN))
    values = np.resize(drawn.astype(np.float32), shape)
    if len(shape) > 1:
        return torch.from_numpy(values * np.float32((2 * shape[0] / size) ** 0.5))
    if name.endswith("running_var"):
        return torch.from_numpy(1 + np.float32(0.1) * np.abs(values))
    if name.endswith("weight"):
        return torch.from_numpy(np.float32(0.5 if "bn3" in name else 1.0) * (1 + np.float32(0.1) * values))
    return torch.from_numpy(np.float32(0.02) * values)


def _tensor(name: str, shape: tuple[int, ...], seed: int, scale: float) -> Tensor:
    if name.endswith("num_batches_tracked"):
        return torch.tensor(7)
    random = np.random.RandomState((zlib.crc32(name.encode()) + seed) % (1 << 32))
    values = scale * random.standard_normal(shape)
    if name.endswith(("running_var", "weight_g", "logit_scale")):
        values = np.abs(values) + 0.5
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
