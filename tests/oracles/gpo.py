"""Generalised pooling one item and one step at a time, in float64 numpy."""

from __future__ import annotations

import math

import numpy as np


def position_codes(length: int, width: int) -> np.ndarray:
    codes = np.zeros((length, width))
    for p in range(length):
        for i in range(width // 2):
            angle = p * 10000 ** (-2 * i / width)
            codes[p, 2 * i], codes[p, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return codes


def gru(x: np.ndarray, w_ih: np.ndarray, w_hh: np.ndarray, b_ih: np.ndarray, b_hh: np.ndarray) -> np.ndarray:
    """States of a GRU over x (T, d), gates in the order r, z, n; (T, h)."""
    size = w_hh.shape[1]
    h = np.zeros(size)
    states = []
    for step in x:
        a, b = w_ih @ step + b_ih, w_hh @ h + b_hh
        r = sigmoid(a[:size] + b[:size])
        z = sigmoid(a[size : 2 * size] + b[size : 2 * size])
        n = np.tanh(a[2 * size :] + r * b[2 * size :])
        h = (1 - z) * n + z * h
        states.append(h)
    return np.array(states)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def both_ways(x: np.ndarray, state: dict[str, np.ndarray], name: str) -> np.ndarray:
    """The mean of a GRU's states from both ends; `name` is the prefix of weight_ih_l0 and so on."""
    parts = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    there = gru(x, *(state[f"{name}.{part}"] for part in parts))
    back = gru(x[::-1], *(state[f"{name}.{part}_reverse"] for part in parts))[::-1]
    return (there + back) / 2


def weights(length: int, state: dict[str, np.ndarray], name: str = "") -> np.ndarray:
    """theta of a set of this size; `state` has gru.* and linear.weight with the prefix `name`."""
    codes = position_codes(length, state[f"{name}linear.weight"].shape[1])
    scores = both_ways(codes, state, f"{name}gru") @ state[f"{name}linear.weight"][0] / 0.1
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def pooled(features: np.ndarray, state: dict[str, np.ndarray], name: str = "") -> np.ndarray:
    """Pool one set without padding, (L, d) -> (d,)."""
    theta = weights(len(features), state, name)
    result = np.zeros(features.shape[1])
    for channel in range(features.shape[1]):
        for rank, value in enumerate(sorted(features[:, channel], reverse=True)):
            result[channel] += theta[rank] * value
    return result
