"""`lossscope cocos`: which samples carry the gradient, how many, how much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import reading, show
from .app import (
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    Objectives,
    Quiet,
    Seed,
    Sources,
    TrustCode,
    VocabularyFile,
    batch_size_of,
    chosen,
    command,
    usage,
)  # fmt: skip


@command()
def cocos(
    sources: Sources,
    objective: Objectives = None,
    eps: Annotated[list[float] | None, typer.Option(help="Threshold; repeat for several. Default 0.01.")] = None,
    convention: Annotated[str, typer.Option(help="corrected, released or text.")] = "corrected",
    data: DataSpec = None,
    split: Annotated[str, typer.Option(help="Split of the checkpoint's data.")] = "train",
    batch_size: Annotated[str, typer.Option(help="Pairs or images of a batch, or `all`.")] = "128",
    sampling: Annotated[
        str | None, typer.Option(help="pairs or images; default: images for objectives with many positives.")
    ] = None,
    captions: Annotated[str, typer.Option(help="all, or the first of each image.")] = "all",
    keep_last: Annotated[bool, typer.Option("--keep-last/--drop-last", help="The last, shorter batch.")] = True,
    shuffle: Annotated[bool, typer.Option("--shuffle/--no-shuffle", help="Or file order.")] = True,
    same_image: Annotated[
        str, typer.Option(help="Another caption of the same image: keep as negative, or mask.")
    ] = "keep",
    per_query: Annotated[bool, typer.Option("--per-query", help="Keep a row per query in the --out frame.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    format: Format = "table",
    out: Annotated[Path | None, typer.Option(help="Frame folder to write; the same command goes on with it.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.")] = False,
    vocabulary: VocabularyFile = None,
    caption_image: CaptionImage = None,
    encoder_option: EncoderOptions = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Count the samples that carry the gradient of each query (COCOS), and weigh them.

    **Examples**

    `lossscope cocos ckpt.pt --eps 0.01`

    `lossscope cocos embeddings.npz --objective triplet --objective ntxent:tau=0.05 --format json`

    `lossscope cocos a.pt b.pt --eps 0.001 --eps 0.01 --convention released --out frame/`

    A checkpoint knows its objective and its data; for a dump name --objective, or see the three usual ones. Means and
    population standard deviations are over batches.
    """
    from lossscope.frames import join
    from lossscope.sweep import Sweep
    from lossscope.tables import statistics

    chosen(same_image, ("keep", "mask"), "--same-image")
    chosen(captions, ("all", "first"), "--captions")
    chosen(convention, ("corrected", "released", "text"), "--convention")
    if sampling is not None:
        chosen(sampling, ("pairs", "images"), "--sampling")
    if per_query and out is None:
        raise usage("--per-query needs --out, the frame that keeps the rows")
    chosen(format, show.FORMATS, "--format")
    thresholds = dict.fromkeys(eps or [0.01])
    probes = tuple(f"cocos:eps={value!r},convention={convention}" for value in thresholds)
    shared: dict[str, Any] = {
        "probes": probes, "sampling": sampling, "batch_size": batch_size_of(batch_size), "seed": seed,
        "shuffle": shuffle, "drop_last": not keep_last, "captions": captions, "same_image": same_image,
        "per_query": per_query,
    }  # fmt: skip
    if objective:  # refuse what can not work before anything is encoded
        Sweep(objectives=reading.objectives(objective, None, sources[0], trust_code), **shared).plans()
    asked: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "encoder": tuple(encoder_option or ()),
    }  # fmt: skip
    found = []
    with show.progress(quiet) as bar:
        for place, source in enumerate(sources):
            embedded = reading.embedded(source, bar, quiet, device, **asked)
            specs = reading.objectives(objective, embedded.objective, source, trust_code, quiet)
            sweep = Sweep(objectives=specs, **shared)
            sweep.plans()
            folder = out if out is None or len(sources) == 1 else out / f"{place:02d}-{source.stem}"
            found.append(sweep.run(embedded, reading.frame(folder, "cocos", source, sweep, embedded), bar)[0])
    rows = join(found)
    arguments = {
        "name": "cocos",
        "sources": [str(s) for s in sources],
        "split": split,
        "convention": convention,
    }
    show.results(rows, lambda: statistics.build(rows), arguments, format)
