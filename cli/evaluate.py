"""`lossscope eval`: how well a model retrieves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _output, _sources
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
    usage,
)

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.embedded import SplitEmbeddings


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
    run_files: Annotated[
        Path | None, typer.Option(help="Folder for TREC run files and qrels, to check the numbers elsewhere.")
    ] = None,
    run_top: Annotated[str, typer.Option(help="Candidates of each query in them, or `all`.")] = "100",
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

    `lossscope eval ckpt.pt --run-files trec --run-top all`

    Ranks count strictly higher candidates; `ties` tells how many queries have a non-relevant candidate exactly as
    high as the best relevant one.
    """
    from lossscope.io.frames import join
    from lossscope.retrieval.evaluate import evaluate as measure
    from lossscope.tables import retrieval

    chosen(format, _output.FORMATS, "--format")
    if run_files is not None and (ensemble or folds > 1):
        raise usage("--run-files writes the ranking of a whole split by one model; leave out --ensemble and --folds")
    top = _top(run_top)
    asked: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "encoder": tuple(encoder_option or ()),
    }  # fmt: skip
    with _output.progress(quiet) as bar:
        found = [_sources.embedded(source, bar, quiet, device, **asked) for source in sources]
        groups = [found] if ensemble else [[one] for one in found]
        rows = join(measure(group, folds) for group in groups)
        for place, one in enumerate(found if run_files is not None else ()):
            _write_run_files(one, Path(str(run_files)), top, place if len(found) > 1 else None, bar, quiet)
    _tell_ties(rows, quiet)
    arguments = {
        "name": "eval",
        "sources": [str(s) for s in sources],
        "split": split,
        "folds": folds,
        "ensemble": ensemble,
    }
    _output.results(rows, lambda: [retrieval.build(rows)], arguments, format, out)


def _top(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise usage(f"--run-top must be a number of at least 1, or all; got {text!r}")
    return int(text)


def _write_run_files(
    one: SplitEmbeddings, folder: Path, top: int | None, place: int | None, bar: _output.Progress | None, quiet: bool
) -> None:
    """Into the folder; of several sources each into a folder of its own."""
    from lossscope.retrieval.trec import write_run_files

    own = folder if place is None else folder / f"{place:02d}-{Path(one.name).stem}"
    write_run_files(one, own, top, Path(one.name).stem, bar)
    _output.notice(f"Wrote {own}/i2t.run, t2i.run, i2t.qrels and t2i.qrels.", quiet)


def _tell_ties(rows: pd.DataFrame, quiet: bool) -> None:
    tied = rows[(rows["statistic"] == "ties") & (rows["mean"] > 0)]
    for row in tied.to_dict("records"):
        _output.notice(
            f"Note: {row['mean']:g} {row['direction']} queries of {row['source']} have ties at their rank.",
            quiet,
        )
