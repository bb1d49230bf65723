"""Find what is wrong with a contrastive training, with proof and advice: one file a finding.

The package is also the function: `lossscope.doctor("ckpt.pt")`, see `examination.examine`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Doctor(ModuleType):
    """This module, which can be called: `lossscope.doctor` is the package of findings and the function."""

    def __call__(self, *sources: Any, **options: Any) -> Any:
        from .examination.examine import examine

        return examine(*sources, **options)


sys.modules[__name__].__class__ = _Doctor
