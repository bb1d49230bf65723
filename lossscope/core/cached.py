"""`cached_property` without a lock: until Python 3.12 one lock of the class lets threads wait for each other's rows."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as it is called in functools
        """Compute an attribute at its first use, and keep it; two threads may both compute it."""

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """Return the value of an instance."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
