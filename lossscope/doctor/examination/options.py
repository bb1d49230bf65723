"""What the user states about the examined sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from lossscope.core.choices import SOURCE, Choice, require_choices
from lossscope.core.request import Request
from lossscope.errors import InputError, OptionError

_OF_ENGINE = ("sharded", "mode", "mode_seed", "raw")  # options of other readers


def _read_columns(typed: tuple[str, ...]) -> dict[str, str]:
    """Return FIELD=NAME as a mapping. Raises OptionError for anything else."""
    parts = [text.partition("=") for text in typed]
    wrong = next((text for text, (name, _, column) in zip(typed, parts, strict=True) if not (name and column)), None)
    if wrong is not None:
        raise OptionError(f"--column must be FIELD=NAME, such as loss=train/loss; got {wrong!r}")
    return {name.strip(): column.strip() for name, _, column in parts}


@dataclass(frozen=True)
class Options:
    """Options of an examination; they override what a source says of itself.

    Raises OptionError for values out of range.
    """

    # spec
    objective: Annotated[
        str | None, Choice(None, "Objective of the training, for a source that does not name it.", names="objectives")
    ] = None
    # None: the batch size of the training, else 128
    batch_size: Annotated[
        int | None, Choice(None, "Pairs per batch.", shown="that of the training, else 128", low=1)
    ] = None
    against: Annotated[
        tuple[str, ...],
        Choice(None, "Training data, or a dump of them, which must share no item with a source; repeat."),
    ] = ()
    # the same items, encoded by the model before this training
    before: Annotated[
        str | None,
        Choice(None, "Dump of the same items from the model before this training, to compare its recall."),
    ] = None
    # whether two sources are two encodings of the same items
    same_items: Annotated[
        bool,
        Choice(
            None,
            "Compare two encodings of the same items, such as alone and in batches.",
            flags="--same-items",
        ),
    ] = False
    # which items of the split probably match
    audit: Annotated[
        Path | None,
        Choice(SOURCE, "Folder of `lossscope audit`, or its mask.npz, which lists pairs that probably match."),
    ] = None
    # name of the field -> column of a log, {"loss": "l"}
    columns: Annotated[
        Mapping[str, str],
        Choice(
            SOURCE,
            "Column of the log, as FIELD=NAME: loss=train/loss; repeat.",
            flags="--column",
            read=_read_columns,
            many=True,
        ),
    ] = field(default_factory=dict)
    source: Request = Request()  # noqa: RUF009 - never changed; how sources are read

    def __post_init__(self) -> None:
        require_choices(self)

    @classmethod
    def of(cls, **options: Any) -> Options:
        """Return options from their names and those of a request, `Options.of(objective="ntxent", split="test")`.

        Raises InputError for a name that neither has.
        """
        names = [item.name for item in fields(cls) if item.name != "source"]
        known = [*names, *(item.name for item in fields(Request) if item.name not in (*names, *_OF_ENGINE))]
        unknown = next((name for name in options if name not in known), None)
        if unknown is not None:
            raise InputError(f"options of doctor must be of {', '.join(known)}; got {unknown!r}")
        source = Request(**{name: value for name, value in options.items() if name not in names})
        return cls(**{name: value for name, value in options.items() if name in names}, source=source)

    def request(self, split: str | None = None) -> Request:
        """Return how a source is read: rows as they are stored.

        Args:
            split: None: the split of the options.
        """
        cache = self.source.cache and not self.same_items  # a cache holds a single encoding of an item
        return replace(self.source, split=split or self.source.split, raw=True, cache=cache)
