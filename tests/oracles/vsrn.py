"""VSRN one image, one region and one word at a time, in float64 numpy, with the peculiarities of the released code."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gru_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> Array:
    size = len(h)
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    r, z = sigmoid(a[:size] + b[:size]), sigmoid(a[size : 2 * size] + b[size : 2 * size])
    return (1 - z) * np.tanh(a[2 * size :] + r * b[2 * size :]) + z * h


def gru(x: Array, state: dict[str, Array], name: str) -> list[Array]:
    parts = [state[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    h, states = np.zeros(parts[1].shape[1]), []
    for step in x:
        h = gru_step(step, h, *parts)
        states.append(h)
    return states


def unit(x: Array, regions: bool) -> Array:
    """(R, d): each region to unit length, or each channel over the regions."""
    return x / np.sqrt((x**2).sum(0 if regions else 1, keepdims=True))


def batch_norm(x: Array, state: dict[str, Array], name: str) -> Array:
    scale = state[f"{name}.weight"] / np.sqrt(state[f"{name}.running_var"] + 1e-5)
    return (x - state[f"{name}.running_mean"]) * scale + state[f"{name}.bias"]


def graph(x: Array, state: dict[str, Array], name: str) -> Array:
    def conv(y: Array, part: str) -> Array:
        return state[f"{name}.{part}.weight"][:, :, 0] @ y + state[f"{name}.{part}.bias"]

    result = []
    for i in range(len(x)):
        y = np.zeros(x.shape[1])
        for j in range(len(x)):
            y += (conv(x[i], "theta") @ conv(x[j], "phi")) * conv(x[j], "g") / len(x)
        result.append(batch_norm(conv(y, "W.0"), state, f"{name}.W.1") + x[i])
    return np.array(result)


def image(features: Array, state: dict[str, Array], blocks: int, regions: bool, fc_norm: bool) -> tuple[Array, Array]:
    """(R, d) -> the unit vector of an image and its regions after the graph, in eval mode."""
    x = features @ state["image.fc.weight"].T + state["image.fc.bias"]
    x = unit(x, regions) if fc_norm else x
    for index in range(1, blocks + 1):
        x = graph(x, state, f"image.Rs_GCN_{index}")
    x = unit(x, regions)
    h = gru(x, state, "image.img_rnn")[-1]
    if "image.bn.weight" in state:
        h = batch_norm(h, state, "image.bn")
    return h / np.linalg.norm(h), x


def text(ids: list[int], state: dict[str, Array]) -> Array:
    """Ids of a caption without padding -> its unit vector."""
    h = gru(state["text.embed.weight"][ids], state, "text.rnn")[-1]
    return h / np.linalg.norm(h)


def caption_loss(regions: list[Array], captions: list[list[int]], state: dict[str, Array], longest: int) -> float:
    """Loss of the caption branch in eval mode: captions are cut, one padding token is learnt; summed, per caption."""
    total = 0.0
    for x, ids in zip(regions, captions, strict=True):
        cut = [*ids[: longest - 1], ids[-1]] if len(ids) > longest else ids
        target = [*cut, *[0] * (longest + 1 - len(cut))]
        counted = [1] * min(len(cut) + 1, longest + 1) + [0] * (longest - len(cut))
        projected = x @ state["project.weight"].T + state["project.bias"]
        states = gru(projected, state, "encoder")
        h = states[-1]
        for step in range(longest - 1):
            scores = []
            for other in states:
                attended = np.tanh(state["attend.weight"] @ np.concatenate([other, h]) + state["attend.bias"])
                scores.append(float((state["weigh.weight"] @ attended)[0]))
            shares = np.exp(np.array(scores) - max(scores))
            context = sum(s * other for s, other in zip(shares / shares.sum(), states, strict=True))
            word = np.concatenate([state["embed.weight"][target[step]], context])
            parts = [state[f"decoder.{part}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            h = gru_step(word, h, *parts)
            logits = state["out.weight"] @ h + state["out.bias"]
            logp = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
            total -= counted[step + 1] * logp[target[step + 1]]
    return total / len(captions)
