"""Edit one place of nested lists and dicts: remove it, name it otherwise, double it, or put something else there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

Place = tuple[Any, Any]  # (container, key or index)
_MOST = 20_000  # places


def places_of(tree: Any) -> list[Place]:
    """Return every place below the root, breadth first."""
    found: list[Place] = []
    waiting = [tree]
    while waiting and len(found) < _MOST:
        one = waiting.pop(0)
        if isinstance(one, dict):
            new: list[Place] = [(one, key) for key in one]
        elif isinstance(one, list):
            new = [(one, index) for index in range(len(one))]
        else:
            continue
        found += new
        waiting += [container[key] for container, key in new]
    return found


def draw_place(tree: Any, rng: Generator) -> Place | None:
    """Return a place of any depth, each depth about as likely; None where the tree has none."""
    container, place = tree, None
    while isinstance(container, dict | list) and len(container):
        keys: Any = list(container) if isinstance(container, dict) else range(len(container))
        place = (container, keys[int(rng.integers(len(keys)))])
        container = container[place[1]]
        if rng.random() < 0.4:
            break
    return place


def edit(tree: Any, rng: Generator, draw: Callable[[Any], Any]) -> tuple[Any, str]:
    """Return the tree with one edit, and what it was.

    Args:
        tree: of dicts and lists, which are changed in place.
        rng: of the case.
        draw: value of a place -> what stands there instead.
    """
    place = draw_place(tree, rng)
    if place is None or rng.random() < 0.03:
        return draw(tree), "another root"
    container, key = place
    action = ("remove", "rename", "double", "replace", "replace", "replace", "replace")[rng.integers(7)]
    if action == "replace":
        container[key] = draw(container[key])
    elif isinstance(container, list):
        _edit_list(container, key, action)
    elif action == "remove":
        del container[key]
    else:
        _rename(container, key, f"{key}x", keep=action == "double")
    return tree, f"{action} {str(key)[:40]!r}"


def _edit_list(container: list[Any], index: int, action: str) -> None:
    if action == "remove":
        del container[index]
    elif action == "double":
        container.insert(index, container[index])
    else:
        container.reverse()


def _rename(container: dict[Any, Any], key: Any, name: str, keep: bool) -> None:
    items = list(container.items())
    container.clear()
    for own, value in items:
        if own != key or keep:
            container[own] = value
        if own == key:
            container[name] = value
