"""CE in evaluation, one pair of experts at a time in numpy; `state` has the names of the original's file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
State = Mapping[str, Array]


def linear(state: State, name: str, x: Array) -> Array:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def unit(x: Array) -> Array:
    length = math.sqrt(float((x**2).sum()))
    return x / length if length else x


def batch_norm(state: State, name: str, x: Array) -> Array:
    scaled = (x - state[f"{name}.running_mean"]) / np.sqrt(state[f"{name}.running_var"] + 1e-5)
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def vlad(state: State, name: str, rows: Array) -> Array:
    """(T, D) -> (D K,), with loops over rows and clusters."""
    centres = state[f"{name}.clusters2"][0]
    result = np.zeros_like(centres)
    for row in rows:
        e = np.exp(batch_norm(state, f"{name}.batch_norm", row @ state[f"{name}.clusters"]))
        shares = e / e.sum()
        for k in range(centres.shape[1]):
            result[:, k] += shares[k] * (row - centres[:, k])
    return unit(np.stack([unit(result[:, k]) for k in range(centres.shape[1])], 1).reshape(-1))


def padded(rows: Array, most: int) -> Array:
    rows = rows[:most]
    return np.concatenate([rows, np.zeros((most - len(rows), rows.shape[1]))])


def pair(state: State, first: Array, second: Array) -> Array:
    x = linear(state, "ce.g_reason_1", np.concatenate([first, second]))
    for layer in (0, 3):
        x = batch_norm(state, f"ce.g_reason_shared.{layer}", x)
        x = linear(state, f"ce.g_reason_shared.{layer + 2}", x * np.tanh(np.log1p(np.exp(x))))
    return x


def video(state: State, pooled: Sequence[Array], there: Sequence[bool], sequential: bool = True) -> list[Array]:
    """Gated unit vectors of the experts, from their pooled features."""
    before = [unit(linear(state, f"ce.video_dim_reduce.{m}.fc", x)) for m, x in enumerate(pooled)]
    experts = list(before)
    for m in range(len(experts)):
        others = experts if sequential else before
        said = [pair(state, experts[m], others[k]) for k in range(len(experts)) if there[m] and there[k]]
        mask = sum(said, np.zeros_like(experts[m])) / max(len(said), 1)
        name = f"ce.video_GU.{m}.cg"
        gate = batch_norm(state, f"{name}.batch_norm", mask)
        gate = gate + batch_norm(state, f"{name}.batch_norm2", linear(state, f"{name}.fc", experts[m]))
        experts[m] = unit(experts[m] * sigmoid(gate))
    return experts


def text(state: State, pooled: Array, experts: int) -> tuple[list[Array], Array]:
    views = []
    for m in range(experts):
        x = linear(state, f"ce.text_GU.{m}.fc", pooled)
        gate = batch_norm(state, f"ce.text_GU.{m}.cg.batch_norm", linear(state, f"ce.text_GU.{m}.cg.fc", x))
        views.append(unit(x * sigmoid(gate)))
    e = np.exp(linear(state, "ce.moe_fc", pooled))
    return views, e / e.sum()


def similarity(views: Sequence[Array], weights: Array, experts: Sequence[Array], there: Sequence[bool]) -> float:
    """Σ w a ⟨t, e⟩ / Σ w a; 0 without experts."""
    total, score = 0.0, 0.0
    for m, here in enumerate(there):
        if here:
            total += float(weights[m])
            score += float(weights[m]) * float(views[m] @ experts[m])
    return score / total if total else 0.0
