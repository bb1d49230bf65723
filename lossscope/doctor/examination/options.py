"""What the user says of the sources that are examined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lossscope.core.types import Progress


@dataclass(frozen=True)
class Options:
    """Options of an examination; those that are given override what a source says of itself."""

    objective: str | None = None  # spec
    data: str | None = None  # spec of the data that a model reads
    split: str = "train"  # that a model is examined on
    batch_size: int | None = None  # pairs of a batch; None: that of the training, else 128
    against: tuple[str, ...] = ()  # training data, or dumps of it, that may not share an item with a source
    audit: Path | None = None  # folder of an audit, or its mask.npz: which items of the split probably match
    columns: Mapping[str, str] = field(default_factory=dict)  # name of the field -> column of a log, {"loss": "l"}
    device: str = "cpu"
    cache: bool = True  # whether embeddings are kept in the cache folder
    vocabulary: Path | None = None
    caption_image: Path | None = None
    sides: str | None = None
    encoder: tuple[str, ...] = ()
    accepted_options: tuple[str, ...] = ()
    trust_code: bool = False
    progress: Progress | None = None

    def request(self, split: str | None = None) -> dict[str, object]:
        """Return the fields of `core.request.Request`, rows as they are stored.

        Args:
            split: None: the one of the options.
        """
        return {
            "split": split or self.split, "data": self.data, "device": self.device, "cache": self.cache,
            "vocabulary": self.vocabulary, "caption_image": self.caption_image, "sides": self.sides,
            "encoder": self.encoder, "accepted_options": self.accepted_options, "trust_code": self.trust_code,
            "progress": self.progress, "raw": True,
        }  # fmt: skip
