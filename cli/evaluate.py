"""`lossscope eval`: how well a model retrieves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import reading, show
from .app import (
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    Quiet,
    Sources,
    TrustCode,
    VocabularyFile,
    chosen,
    command,
)

if TYPE_CHECKING:
    import pandas as pd


@command("eval")
def evaluate(
    sources: Sources,
    data: DataSpec = None,
    split: Annotated[str, typer.Option(help="Split of the checkpoint's data.")] = "test",
    folds: Annotated[
        int, typer.Option(help="Cut the images in so many equal runs and average (COCO 1K: 5).", min=1)
    ] = 1,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Rank by the mean of the similarity matrices.")] = False,
    device: Device = "auto",
    format: Format = "table",
    out: Annotated[Path | None, typer.Option(help="File for the result instead of stdout.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.")] = False,
    vocabulary: VocabularyFile = None,
    caption_image: CaptionImage = None,
    encoder_option: EncoderOptions = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Recall at 1, 5, 10, median and mean rank, mAP@5 and rsum, both directions.

    **Examples**

    `lossscope eval ckpt.pt`

    `lossscope eval saf.pt sgr.pt --ensemble --format latex`

    `lossscope eval coco_5k.npz --folds 5`

    Ranks count strictly higher candidates; `ties` tells how many queries have a non-relevant candidate exactly as
    high as the best relevant one.
    """
    from lossscope.evaluate import evaluate as measure
    from lossscope.frames import join
    from lossscope.tables import retrieval

    chosen(format, show.FORMATS, "--format")
    asked: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "encoder": tuple(encoder_option or ()),
    }  # fmt: skip
    with show.progress(quiet) as bar:
        found = [reading.embedded(source, bar, quiet, device, **asked) for source in sources]
        groups = [found] if ensemble else [[one] for one in found]
        rows = join(measure(group, folds) for group in groups)
    _tell_ties(rows, quiet)
    arguments = {
        "name": "eval",
        "sources": [str(s) for s in sources],
        "split": split,
        "folds": folds,
        "ensemble": ensemble,
    }
    show.results(rows, lambda: [retrieval.build(rows)], arguments, format, out)


def _tell_ties(rows: pd.DataFrame, quiet: bool) -> None:
    tied = rows[(rows["statistic"] == "ties") & (rows["mean"] > 0)]
    for row in tied.to_dict("records"):
        show.notice(
            f"Note: {row['mean']:g} {row['direction']} queries of {row['source']} have ties at their rank.",
            quiet,
        )
