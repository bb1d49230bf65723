"""Versions of the packages that numerical results depend on."""

from __future__ import annotations

import importlib.metadata
import platform


def own_version() -> str:
    """Return the version of lossscope."""
    return importlib.metadata.version("lossscope")


def installed_version(package: str) -> str:
    """Return the version of a package; empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Return the versions of lossscope, torch, numpy and Python, by name."""
    installed = {name: importlib.metadata.version(name) for name in ("lossscope", "torch", "numpy")}
    return {**installed, "python": platform.python_version()}
