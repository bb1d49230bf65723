"""Which colour has a label? One per objective, the same in all pictures of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from zlib import crc32

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#882255", "#999933")
COLOURS = MappingProxyType(
    {
        "triplet": "#E69F00",
        "triplet_sh": "#D55E00",
        "ntxent": "#0072B2",
        "vlc": "#56B4E9",
        "unified": "#009E73",
        "smoothap": "#CC79A7",
        "goal": "#332288",
        "ssp": "#882255",
        "rsp": "#AA4499",
        "meta_spn": "#117733",
        "aoq": "#999933",
        "ncr": "#44AA99",
        "siglip": "#661100",
    }
)
_SHARED: ContextVar[Mapping[str, str]] = ContextVar(
    "colours of the labels of several pictures", default=MappingProxyType({})
)


@contextmanager
def same_colours(labels: Iterable[str]) -> Iterator[None]:
    """Let each of the labels have one colour in all pictures that are drawn inside `with`, whichever they show."""
    token = _SHARED.set(colours(dict.fromkeys(map(str, labels))))
    try:
        yield
    finally:
        _SHARED.reset(token)


def colours(labels: Iterable[str]) -> dict[str, str]:
    """Return the colour of each label: its objective's own; a second label of one objective takes the next free one.

    Labels of `same_colours` have those of it.

    >>> colours(["ntxent:tau=0.1", "triplet"])
    {'ntxent:tau=0.1': '#0072B2', 'triplet': '#E69F00'}
    """
    labels = list(labels)
    chosen = {label: _SHARED.get()[label] for label in labels if label in _SHARED.get()}
    families = {label: _family(label) for label in labels if label not in chosen}
    for label, name in families.items():
        if name in COLOURS and COLOURS[name] not in chosen.values():
            chosen[label] = COLOURS[name]
    for label, name in families.items():
        if label not in chosen:
            usual = COLOURS.get(name, PALETTE[crc32(name.encode()) % len(PALETTE)])
            free = [colour for colour in (usual, *PALETTE, *COLOURS.values()) if colour not in chosen.values()]
            chosen[label] = free[0] if free else usual
    return {label: chosen[label] for label in labels}


def _family(label: str) -> str:
    """Return the objective of a label: triplet_sh of `triplet-sh:margin=0.2` and `Triplet SH`; else its first word."""
    name = label.partition(" (")[0].partition(":")[0]
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return next((objective for objective in COLOURS if objective.replace("_", "") == plain), name.replace("-", "_"))
