"""How a source is read: the options that all commands and functions which open one share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from .choices import RUNNING, SOURCE, SPLITS, WHOLE, Choice
from .types import Progress

Device = Annotated[str, Choice(RUNNING, "auto, cpu, cuda or cuda:INDEX.", words=("auto", "cpu", "cuda"))]


@dataclass(frozen=True)
class Request:
    """How a source is read; options that are given override what the source says of itself."""

    # spec of the data set; None: the one that the source names
    data: Annotated[str | None, Choice(SOURCE, "Data set spec.", names="datasets")] = None
    # of the data set; None: see `split_of`
    split: Annotated[
        str | None,
        Choice(
            SOURCE,
            "Split of the data. Default: train (eval and compare: test), or all rows of a single file.",
            words=(*SPLITS, WHOLE),
        ),
    ] = None
    usual_split: str = "train"  # of a data set with splits, where none is asked for
    device: Device = "cpu"
    batch_size: int = 256  # items encoded at a time
    # whether embeddings are kept in the cache folder
    cache: Annotated[bool, Choice(SOURCE, "Do not keep embeddings.", flags=" /--no-cache")] = True
    progress: Progress | None = None
    # file or folder of the vocabulary or tokeniser of a released model
    vocabulary: Annotated[
        Path | None,
        Choice(
            SOURCE,
            "Vocabulary of a released model, if not beside it: words (.json, .pkl), byte pairs (.txt.gz) "
            "or a tokeniser folder.",
        ),
    ] = None
    # image row of each caption (.npy, or a number a line), for dumps without it
    caption_image: Annotated[
        Path | None,
        Choice(SOURCE, "Image row of each caption (.npy, or a number per line), for a dump without it."),
    ] = None
    # names of the sides of a dump, `query/document`; None: what it declares
    sides: Annotated[
        str | None,
        Choice(SOURCE, "Names of a dump's two sides, such as user/item; a single name for a labelled set."),
    ] = None
    # similarity of a dump's embeddings: of their directions, or with their norms and `SIDE_bias`
    score: Annotated[
        Literal["cosine", "dot"], Choice(SOURCE, "Similarity of a dump's embeddings; dot keeps their norms.")
    ] = "cosine"
    # KEY=VALUE to change in the encoder's spec, as score=itm
    encoder: Annotated[
        tuple[str, ...],
        Choice(
            SOURCE,
            "Option of the encoder, as score=itm, or a fact that a released file lacks, as model=ViT-B-32.",
            flags="--encoder-option",
        ),
    ] = ()
    # options of a released file, in no list here, that leave the model as it is
    accepted_options: Annotated[
        tuple[str, ...],
        Choice(
            SOURCE,
            "Unknown option of a released file to accept, as it does not change the model; repeat.",
            flags="--accept-option",
        ),
    ] = ()
    # whether Python files that a spec names may be imported
    trust_code: Annotated[bool, Choice(SOURCE, "Import Python files that a file names.", flags="--trust-code")] = False
    sharded: bool = False  # a folder of .npy shards is read when its rows are needed, as sweeps over samples need them
    runs_model: bool = True  # the model of a checkpoint encodes the split; without, the source has it and no vectors
    mode: Literal["eval", "train"] = "eval"  # of the model: train has its dropout, and batch norm of the batch
    mode_seed: int = 0  # of what is drawn in train mode
    # numbers as they are stored or computed: neither normalised nor refused where they are not finite
    raw: bool = False

    @property
    def named_split(self) -> str:
        """The split that was asked for, or the usual one."""
        return self.split or self.usual_split

    def split_of(self, dataset: object) -> str:
        """Which split of a data set is read: the one that was asked for, all rows of a single file, or the usual one?

        Args:
            dataset: its `is_one_file` says whether it is a single file that nobody asked to cut.
        """
        return WHOLE if self.split is None and getattr(dataset, "is_one_file", False) else self.named_split
