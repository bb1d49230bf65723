"""What can be probed: anything that yields the embeddings, or the similarities, of images and captions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.registry import load as load_class
from lossscope.registry import names


@dataclass(frozen=True)
class Request:
    """What is wanted of a source, and what overrides what it says of itself.

    split: of the data set. data: its spec. vocabulary: file or folder of the words of a foreign model.
    caption_image: file with the image row of each caption, for dumps that do not hold it (.npy, or a number a line).
    encoder: KEY=VALUE to change in the encoder's spec, as score=itm.
    """

    split: str = "train"
    data: str | None = None
    device: str = "cpu"
    batch_size: int = 256
    trust_code: bool = False
    cache: bool = True
    progress: Progress | None = None
    vocabulary: Path | None = None
    caption_image: Path | None = None
    encoder: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """A frozen dataclass with the field `path`."""

    @classmethod
    def accepts(cls, path: Path) -> bool:
        """Whether the file or folder looks like one of these; must be quick and never raise."""
        ...

    def read(self, request: Request) -> SplitEmbeddings:
        """The embeddings. Raises InputError when the file is not what it seemed."""
        ...


def find_source(path: Path | str) -> Any:
    """The source behind a path. Raises InputError when nothing is there or no kind of source takes it."""
    path = Path(path).expanduser()
    if not path.exists():
        raise InputError(f"source must exist; there is nothing at {path} (looked in {Path.cwd()})")
    kinds = [load_class("sources", name) for name in names("sources")]
    for kind in kinds:
        if kind.accepts(path):
            return kind(path)
    known = "; ".join((kind.__doc__ or "").splitlines()[0] for kind in kinds)
    raise InputError(f"{path} must be one of: {known}")


def load(path: Path | str, **options: Any) -> SplitEmbeddings:
    """The embeddings behind a path: `load("ckpt.pt", split="val")`; options are the fields of Request."""
    return find_source(path).read(Request(**options))  # type: ignore[no-any-return]
