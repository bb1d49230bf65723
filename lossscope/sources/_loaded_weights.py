"""Are all weights of a network of transformers in its files? The library fills in random ones for what is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lossscope.errors import InputError


def require_loaded(missing: Iterable[str], model: Any, network: Any, folder: Path) -> None:
    """Raise InputError where a weight that states of tokens depend on is missing.

    Args:
        missing: names of the weights of `model` that its files lack.
        model: as it was read.
        network: the part of it that is used.
        folder: of the files, for the message.
    """
    used = {id(tensor) for tensor in network.state_dict(keep_vars=True).values()}
    tensors = model.state_dict(keep_vars=True)
    lost = sorted(name for name in missing if id(tensors.get(name)) in used and "pooler" not in name)
    if lost:
        named = ", ".join(lost[:3])
        raise InputError(f"{folder} must hold every weight of its model; {len(lost)} are missing, such as {named}")


def require_whole(network: Any, folder: Path) -> None:
    """Raise InputError where the files of a folder lack weights of a network that another library read from it.

    Names are compared first; where they differ the files are read again, since transformers knows older names.
    """
    import safetensors

    names = set(network.state_dict()) - {name for name in network.state_dict() if "pooler" in name}
    stored: set[str] = set()
    for file in folder.glob("*.safetensors"):
        with safetensors.safe_open(file, "pt") as weights:
            stored |= {part for name in weights.keys() for part in _endings(name)}  # noqa: SIM118 - no mapping
    if names <= stored:
        return
    with quiet():
        _, loading = type(network).from_pretrained(
            str(folder), config=network.config, output_loading_info=True, local_files_only=True
        )
    require_loaded(loading["missing_keys"], network, network, folder)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what transformers reports while it reads a model to itself: what is missing is an error here."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _endings(name: str) -> list[str]:
    """Return a name, and what is left of it without its first parts: bert.encoder.x, encoder.x, x."""
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(len(parts))]
