"""A model that lossscope trained, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.datasets.base import Split
from lossscope.io.run_folder import list_checkpoints
from lossscope.io.trusted_code import is_trusted
from lossscope.sources.base import read_source
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.data_of_model import data_of_model

from ..examination.options import Options

_HELD_OUT = ("val", "test")


@dataclass(frozen=True)
class TrainedModel:
    """A checkpoint of lossscope, alone or as the newest of a run."""

    absent: ClassVar[str] = "it has no weights of a model"
    need: ClassVar[str] = "a checkpoint or run of lossscope"
    checkpoint: Checkpoint
    file: Path  # of the checkpoint
    path: Path  # the file or run folder that the user named
    options: Options

    @cached_property
    def data(self) -> Split:
        """The split of the data set, with its inputs."""
        dataset, name, _ = data_of_model(self.checkpoint, self.options.source)
        return dataset.split(name)

    @cached_property
    def held_out(self) -> SplitEmbeddings:
        """Embeddings of a held-out split. Raises Missing where the training data are not examined."""
        options, spec = self.options, self.options.source.data or self.checkpoint.data
        if options.against or not spec or not is_trusted(spec):
            raise Missing("it has no held-out data", "held-out data")
        dataset, split, _ = data_of_model(self.checkpoint, options.source)
        if split != "train":
            raise Missing(f"its {split} data are examined, not the training data")
        name = next((name for name in _HELD_OUT if name in dataset.splits()), None)
        if name is None:
            raise Missing("it has no held-out data", "held-out data")
        return read_source(self.file, options.request(name))

    def earlier(self) -> Path | None:
        """Return the checkpoint of a third of the epochs of a run folder."""
        checkpoints = list_checkpoints(self.path)
        return checkpoints[(len(checkpoints) - 1) // 3][1] if len(checkpoints) > 2 else None
