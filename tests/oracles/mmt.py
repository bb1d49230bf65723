"""MMT, one video and one expert at a time in numpy, without padding; `state` has the names of the original's file.

BERT itself is not reimplemented: a caption is given as its first state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
State = Mapping[str, Array]
Video = Mapping[str, tuple[Array, Array]]  # expert -> (T, d) features and (T,) seconds
TYPES = {"s3d": 1, "vggish": 2, "face": 3, "rgb": 5, "speech": 6, "ocr": 7, "scene": 9}


def linear(state: State, name: str, x: Array) -> Array:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def unit(x: Array) -> Array:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)  # type: ignore[no-any-return]


def norm(state: State, name: str, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]  # type: ignore[no-any-return]


def gelu(x: Array) -> Array:
    return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]).reshape(x.shape)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)  # type: ignore[no-any-return]


def position(seconds: float, window: float, positions: int) -> int:
    if math.isnan(seconds):
        return 1
    return int(min(max(seconds / window + 2, 0), positions - 1))


def layer(state: State, name: str, x: Array, heads: int) -> Array:
    q, k, v = (linear(state, f"{name}.attention.self.{part}", x) for part in ("query", "key", "value"))
    size = x.shape[1] // heads
    seen = []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        seen.append(softmax(q[:, part] @ k[:, part].T / math.sqrt(size)) @ v[:, part])
    after = linear(state, f"{name}.attention.output.dense", np.concatenate(seen, 1))
    x = norm(state, f"{name}.attention.output.layer_norm", x + after)
    inner = gelu(linear(state, f"{name}.intermediate.dense", x))
    return norm(state, f"{name}.output.layer_norm", x + linear(state, f"{name}.output.dense", inner))


def video(state: State, experts: Sequence[str], frames: Video, heads: int, window: float = 1.0) -> dict[str, Array]:
    """Expert -> unit vector. The token of a missing expert attends to the others, which do not attend to it."""
    positions = state["vid_bert.embeddings.position_embeddings.weight"]
    kinds = state["vid_bert.embeddings.token_type_embeddings.weight"]
    rows, seen, first_row = [positions[0] + kinds[0]], [True], {}
    for name in experts:
        features, seconds = frames[name]
        top = features.max(0) if len(features) else np.zeros(features.shape[1])
        first_row[name] = len(rows)
        codes = [position(s, window, len(positions)) for s in seconds]
        for feature, where in zip([top, *features], [0, *codes], strict=True):
            reduced = unit(linear(state, f"video_dim_reduce.{name}.fc", feature))
            rows.append(reduced + positions[where] + kinds[TYPES[name]])
            seen.append(bool(len(features)))
    x = norm(state, "vid_bert.embeddings.layer_norm", np.stack(rows))
    result = {}
    for name in experts:  # the present tokens, followed by that of this expert if it is missing
        kept = [i for i, there in enumerate(seen) if there]
        states = encoded(state, x[kept], x[first_row[name]], heads)
        result[name] = unit(states[-1] if first_row[name] not in kept else states[kept.index(first_row[name])])
    return result


def encoded(state: State, there: Array, extra: Array, heads: int) -> Array:
    """States of the present tokens, and below them that of an extra token that attends but is not attended to."""
    depth = len({k.split(".")[3] for k in state if k.startswith("vid_bert.encoder.layer.")})
    for i in range(depth):
        name = f"vid_bert.encoder.layer.{i}"
        extra = looking(state, name, extra, there, heads)
        there = layer(state, name, there, heads)
    return np.concatenate([there, extra[None]])


def looking(state: State, name: str, token: Array, there: Array, heads: int) -> Array:
    q = linear(state, f"{name}.attention.self.query", token)
    k, v = (linear(state, f"{name}.attention.self.{part}", there) for part in ("key", "value"))
    size = len(token) // heads
    parts = [slice(h * size, (h + 1) * size) for h in range(heads)]
    seen = np.concatenate([softmax(k[:, p] @ q[p] / math.sqrt(size)) @ v[:, p] for p in parts])
    x = norm(
        state, f"{name}.attention.output.layer_norm", token + linear(state, f"{name}.attention.output.dense", seen)
    )
    inner = gelu(linear(state, f"{name}.intermediate.dense", x))
    return norm(state, f"{name}.output.layer_norm", x + linear(state, f"{name}.output.dense", inner))


def batch_norm(state: State, name: str, x: Array) -> Array:
    scaled = (x - state[f"{name}.running_mean"]) / np.sqrt(state[f"{name}.running_var"] + 1e-5)
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def text(state: State, experts: Sequence[str], first: Array) -> tuple[dict[str, Array], dict[str, float]]:
    """A caption's unit vector for each expert, and its weights, from BERT's first state."""
    views = {}
    for name in experts:
        x = linear(state, f"text_GU.{name}.fc", first)
        gate = batch_norm(state, f"text_GU.{name}.cg.batch_norm", linear(state, f"text_GU.{name}.cg.fc", x))
        views[name] = unit(x / (1 + np.exp(-gate)))
    weights = softmax(np.array([linear(state, f"moe_fc_txt.{name}", first)[0] for name in experts]))
    return views, dict(zip(experts, weights.tolist(), strict=True))


def similarity(
    views: Mapping[str, Array],
    weights: Mapping[str, float],
    seen: Mapping[str, Array],
    there: Mapping[str, bool] | None,
) -> float:
    """Σ w ⟨t, v⟩ over all experts, or over the present ones with their weights scaled to sum to 1."""
    kept = [name for name in views if there is None or there[name]]
    total = sum(weights[name] for name in kept)
    if not kept:
        return 0.0
    return sum(weights[name] / total * float(views[name] @ seen[name]) for name in kept)
