"""Checkpoints written by lossscope's trainer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.io.file_states import unchanged
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.reading import naming
from lossscope.io.shipped import name_of_source
from lossscope.io.trusted_code import is_trusted
from lossscope.registry import build, load, uses_file
from lossscope.spec import Spec

from ._checkpoint import embed_checkpoint
from .checkpoints.checkpoint import Checkpoint
from .checkpoints.schema import is_safetensors_checkpoint


@dataclass(frozen=True)
class Own:
    """a lossscope checkpoint (.pt, or .safetensors with its .json), or a run folder (its best.pt)

    It names its encoder, objective, data and vocabulary; --data, --split and --objective override them.
    Embeddings are kept in the cache folder under the fingerprints of the checkpoint and of the split and the version of
    lossscope, whose encoders computed them.
    """

    path: Path  # the file or run folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if path.is_dir():
            return (path / "best.pt").is_file()
        return path.suffix in (".pt", ".pth") or is_safetensors_checkpoint(path)

    @property
    def _file(self) -> Path:
        return self.path / "best.pt" if self.path.is_dir() else self.path

    def trained_with(self, request: Request) -> str | None:
        with naming(self._file, "a checkpoint whose parts can be built"):
            return _objective(Checkpoint.load(self._file), self._file)

    def read(self, request: Request) -> SplitEmbeddings:
        path = self._file
        with unchanged(path):
            checkpoint = Checkpoint.load(path)
            origin = fingerprint_of(*sorted(checkpoint.digests.values())) if checkpoint.digests else fingerprint(path)
        with naming(path, "a checkpoint whose parts can be built"):
            objective = _objective(checkpoint, path)
        embedded = embed_checkpoint(checkpoint, path, origin, objective, request, name_of_source(self.path))
        with naming(path, "a checkpoint whose parts can be built"):
            return replace(embedded, warnings=_warnings(checkpoint, request))


def _warnings(checkpoint: Checkpoint, request: Request) -> tuple[str, ...]:
    """Say so where the checkpoint was saved in the warm-up: it was trained with another loss than it names."""
    warmup = checkpoint.training.get("warmup", 0)
    if not checkpoint.objective or not 0 < checkpoint.epoch <= warmup:
        return ()
    if not is_trusted(checkpoint.objective):
        return ()  # its warm-up is known from its code only
    first = build("objectives", checkpoint.objective).warmup
    if first is None:
        return ()
    return (
        f"the model was saved after epoch {checkpoint.epoch} of {warmup} of the warm-up: it was trained with {first}, "
        f"never with {checkpoint.objective}",
    )


def _objective(checkpoint: Checkpoint, path: Path) -> str | None:
    """Return the spec it was trained with, if known; an objective with a learnt net gets this file as its `net`."""
    if not checkpoint.objective:
        return None
    if not checkpoint.objective_state or uses_file(checkpoint.objective):
        return checkpoint.objective
    return _with_net(checkpoint.objective, path)


def _with_net(objective: str, path: Path) -> str:
    """Return the spec of an objective with its `net`, or with that of the objective of which it is a part."""
    spec = Spec.parse(objective)
    if "net" in {item.name for item in fields(load("objectives", spec.name))}:
        spec.values["net"] = str(path)
    elif "of" in spec.values:
        spec.values["of"] = _with_net(spec.values["of"], path)
    return str(spec)
