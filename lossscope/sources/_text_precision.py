"""In which numbers does a text model compute: those of its folder, float32, or bfloat16?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lossscope.errors import InputError

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_OPTION = "precision="


@dataclass(frozen=True)
class Precision:
    """The numbers that --encoder-option precision=NAME asks for."""

    name: str = ""  # empty: it was not typed

    @property
    def dtype(self) -> torch.dtype | None:
        """The type of the weights; None: as the library reads them."""
        return _DTYPES.get(self.name)

    @property
    def stated(self) -> tuple[str, ...]:
        """What stands for it in fingerprints."""
        return (f"{_OPTION}{self.name}",) if self.name else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know."""
        if self.name != "bfloat16":
            return ()
        return ("vectors are computed in bfloat16, which has three digits: cosines are off by about a thousandth",)


AS_STORED = Precision()


def take_precision(options: Sequence[str]) -> tuple[Precision, tuple[str, ...]]:
    """Return the precision among the options of --encoder-option, and the other options.

    Raises InputError for another precision than float32 and bfloat16.
    """
    typed = [text.removeprefix(_OPTION) for text in options if text.startswith(_OPTION)]
    if any(name not in _DTYPES for name in typed):
        raise InputError(f"precision must be one of {', '.join(_DTYPES)}; got {typed[-1]!r}")
    return Precision(typed[-1] if typed else ""), tuple(text for text in options if not text.startswith(_OPTION))
