"""Edit one slot of nested lists and dicts: remove, rename, double or replace its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

Slot = tuple[Any, Any]  # (container, key or index)
_MOST = 20_000  # slots


def slots_of(tree: Any) -> list[Slot]:
    """Return every slot below the root, breadth first."""
    found: list[Slot] = []
    waiting = [tree]
    while waiting and len(found) < _MOST:
        node = waiting.pop(0)
        if isinstance(node, dict):
            new: list[Slot] = [(node, key) for key in node]
        elif isinstance(node, list):
            new = [(node, index) for index in range(len(node))]
        else:
            continue
        found += new
        waiting += [container[key] for container, key in new]
    return found


def draw_slot(tree: Any, rng: Generator) -> Slot | None:
    """Return a slot of any depth, each depth about as likely; None where the tree has no slot."""
    container, slot = tree, None
    while isinstance(container, dict | list) and len(container):
        keys: Any = list(container) if isinstance(container, dict) else range(len(container))
        slot = (container, keys[int(rng.integers(len(keys)))])
        container = container[slot[1]]
        if rng.random() < 0.4:
            break
    return slot


def edit(tree: Any, rng: Generator, draw: Callable[[Any], Any]) -> tuple[Any, str]:
    """Return the tree with one edit, and a description of the edit.

    Args:
        tree: of dicts and lists, which are changed in place.
        rng: of the case.
        draw: value of a slot -> the value that replaces it.
    """
    slot = draw_slot(tree, rng)
    if slot is None or rng.random() < 0.03:
        return draw(tree), "another root"
    container, key = slot
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
    for item_name, value in items:
        if item_name != key or keep:
            container[item_name] = value
        if item_name == key:
            container[name] = value
