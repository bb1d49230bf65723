"""Which system are the others compared with? By name; an unknown name is answered with the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from lossscope.errors import InputError

from .pairing import Block, System


def baseline_second(a: System, b: System, baseline: str) -> tuple[System, System]:
    """Return two systems, the baseline second where it is one of them."""
    return (b, a) if a.name == baseline else (a, b)


def require_baseline(blocks: Sequence[Block], baseline: str) -> None:
    """Raise InputError, naming the systems there are and the nearest, unless every block has the baseline."""
    for block in blocks:
        names = [system.name for system in block.systems]
        if baseline not in names:
            quoted = ", ".join(f'"{name}"' for name in names)
            raise InputError(
                f'baseline must be one of {quoted} ({block.label}); got "{baseline}". '
                f'Did you mean "{_nearest(baseline, names)}"?'
            )


def _nearest(baseline: str, names: Sequence[str]) -> str:
    """Return the first name that begins with the text, else the most similar one."""
    lowered = {name.lower().replace("-", "_"): name for name in names}
    text = baseline.lower().replace("-", "_")
    same_start = [name for low, name in lowered.items() if low.startswith(text)]
    return same_start[0] if same_start else lowered[difflib.get_close_matches(text, lowered, 1, 0.0)[0]]
