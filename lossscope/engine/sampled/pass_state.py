"""The sums of a pass as plain values, which files and other processes can hold, and how those of strips are merged."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..tiled.one_pass import TiledRows

State = dict[str, Any]


def to_device(state: Any, device: torch.device) -> Any:
    """Return a state that was read from a file with its tensors on a device."""
    if isinstance(state, Tensor):
        return state.to(device)
    if isinstance(state, dict):
        return {name: to_device(value, device) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(to_device(value, device) for value in state)
    return state


def state_of(rows: TiledRows) -> State:
    """Return the sums of the accumulators as plain values."""
    sums = [one.state() for one in rows.accumulators.values()]
    return {"sums": sums, "extremes": None if rows.tracker is None else rows.tracker.state()}


def merge_strip(total: TiledRows, state: State, strip: State) -> State:
    """Return the state of what came before and a strip; entries that can no longer count are dropped."""
    for accumulator, before, own in zip(total.accumulators.values(), state["sums"], strip["sums"], strict=True):
        accumulator.merge([before, own])
        accumulator.drop_entries()
    if total.tracker is not None:
        total.tracker.merge([state["extremes"], strip["extremes"]])
    in_tile = strip["in_tile"].where(~strip["in_tile"].isnan(), state["in_tile"])
    return {**state_of(total), "in_tile": in_tile}


def load_state(total: TiledRows, state: State) -> None:
    """Put a state into accumulators."""
    for accumulator, sums in zip(total.accumulators.values(), state["sums"], strict=True):
        accumulator.merge([sums])
    if total.tracker is not None:
        total.tracker.merge([state["extremes"]])
