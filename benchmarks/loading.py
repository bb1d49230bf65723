"""What do the checks of a checkpoint cost? Loading a model with them, against the same steps without.

Both read the file from the page cache, build the encoder, copy the weights into it, and compute the key of the file in
the cache of embeddings: without the checks the SHA-256 of the file, with them the compared digests. A thread computes
checksums of the zip beside torch.load. Medians of wall time, in turns.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measuring import machine

from lossscope.encoders.base import encoder_spec
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.text.vocabulary import SPECIAL

ENCODER = "vsepp:dim=1024,words=300,image=vit-base,finetune=true"
SHAPE, VOCABULARY = (3, 224, 224), 8000
TURNS = 9


def main() -> None:
    """Print both times, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        file = save_checkpoint(Path(folder) / "c.pt")
        plain, checked = medians(lambda: load_plain(file), lambda: load_checked(file))
        size = file.stat().st_size / 1e6
    seconds = f"{plain:.3f} s without checks, {checked:.3f} s with"
    print(f"a checkpoint of {size:.0f} MB: {seconds}, {checked / plain:.3f} times")
    print(machine())


def save_checkpoint(path: Path) -> Path:
    """Save a checkpoint of an untrained encoder."""
    torch.manual_seed(0)
    words = [*SPECIAL, *(f"w{i}" for i in range(len(SPECIAL), VOCABULARY))]
    Checkpoint(
        encoder=ENCODER, objective="ntxent:tau=0.05", data="", vocabulary=words, item_shape=list(SHAPE),
        data_fingerprint="", epoch=1, metrics={}, training={},
        weights=encoder_spec(ENCODER).build(SHAPE, VOCABULARY).state_dict(),
    ).save(path)  # fmt: skip
    return path


def load_plain(file: Path) -> object:
    """Load the model as torch alone would."""
    content = torch.load(file, map_location="cpu", weights_only=True)
    model = encoder_spec(content["encoder"]).build(tuple(content["item_shape"]), len(content["vocabulary"]))
    model.load_state_dict(content["weights"])
    return model.eval(), fingerprint(file)


def load_checked(file: Path) -> object:
    """Load the model as the commands do."""
    checkpoint = Checkpoint.load(file)
    return checkpoint.model(), fingerprint_of(*sorted(checkpoint.digests.values()))


def medians(*functions: Callable[[], object]) -> list[float]:
    """Return the median seconds of each function, called in turns; the first turn does not count."""
    seconds: list[list[float]] = [[] for _ in functions]
    for turn in range(TURNS + 1):
        for times, function in zip(seconds, functions, strict=True):
            start = time.perf_counter()
            function()
            if turn:
                times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


if __name__ == "__main__":
    main()
