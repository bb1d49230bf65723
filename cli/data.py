"""`lossscope data`: features of pictures, and files of other programs, in formats that data sets read."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lossscope.core.choices import SPLITS, Choice
from lossscope.core.request import Device

from ._app import Work, app, command
from ._options import require_choice, resolve_device
from ._output import notice, print_path
from ._progress import progress

if TYPE_CHECKING:
    from lossscope.datasets.conversion.msrvtt import Kind

data = typer.Typer(
    name="data",
    help="Check text data, extract features, convert files of others.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data, name="data")

KINDS = ("expert", "words", "captions", "chosen")
_New = Annotated[Path, Choice(None, "File to write.", argument=True)]


@command(group=data, work=Work(keeps=True))
def features(
    pictures: Annotated[str, Choice(None, "Data set of pictures.", flags="--data")],
    out: Annotated[Path, Choice(None, "Folder to write; the same command resumes it.")],
    backbone: Annotated[
        str, Choice(None, "hog-grid, transformers:path=..., resnet:weights=...", names="features")
    ] = "hog-grid",
    split: Annotated[tuple[str, ...], Choice(None, "Split; repeat for several. Default: all.", words=SPLITS)] = (),
    device: Device = "auto",
) -> None:
    """Turn pictures into a folder of features and captions that `precomp:root=OUT` reads.

    **Examples**

    `lossscope data features --data karpathy:root=DIR,name=flickr8k,size=128 --out flickr8k_hog`

    `lossscope data features --data coco:root=DIR --out coco_vit --backbone transformers:path=VIT,drop=1`

    Every image must have five captions, or every image exactly one: the format cannot hold anything else. The same
    command resumes a stopped run, and processes at most 256 pictures again.
    """
    from lossscope.datasets.conversion.feature_extraction import Extraction
    from lossscope.registry import build, spec_of

    dataset = build("datasets", pictures)
    with progress() as report:
        work = Extraction(spec_of(dataset), dataset, build("features", backbone), out, split, resolve_device(device))
        names = work.run(report)
    notice(f"splits: {', '.join(names)}; read them with --data precomp:root={out}")
    print_path(out)


@command(group=data)
def ecir(
    source: Annotated[Path, Choice(None, "Folder of train_set.p, val_set.p, test_set.p.", argument=True)],
    out: _New,
    name: Annotated[str, Choice(None, "Name of the data set, e.g. flickr30k.")],
) -> None:
    """Convert the pickled data sets of the ECIR 2022 reproduction to Karpathy's format, without running their code.

    **Examples**

    `lossscope data ecir pickles flickr30k --name flickr30k`
    """
    from lossscope.datasets.conversion.ecir import convert

    with progress() as report:
        done = convert(source, out, name, report)
    text = (
        f"{done.images} images, {done.captions} captions; dropped {done.dropped_captions} caption ids without a caption"
    )
    notice(f"{text} and {done.dropped_images} images without any")
    print_path(out)


@command(group=data)
def msrvtt(
    kind: Annotated[str, Choice(None, ", ".join(KINDS), words=KINDS, argument=True)],
    source: Annotated[Path, Choice(None, "Pickle of CE or MMT.", argument=True)],
    out: _New,
) -> None:
    """Convert a pickle of CE or MMT for MSR-VTT, without running its code.

    **Examples**

    `lossscope data msrvtt expert facefeats-avg.pickle msrvtt/features/face`

    `lossscope data msrvtt words w2v_MSRVTT_openAIGPT.pickle msrvtt/words`

    `lossscope data msrvtt captions raw-captions.pkl msrvtt/raw_videodatainfo.json`

    `lossscope data msrvtt chosen jsfusion_val_caption_idx.pkl msrvtt/jsfusion_val_caption_idx.json`
    """
    from lossscope.datasets.conversion.msrvtt import convert

    require_choice(kind, KINDS, "KIND")
    with progress() as report:
        steps = None if report is None else functools.partial(report, kind)
        written = convert(cast("Kind", kind), source, out, steps)
    notice(f"{written} entries")
    print_path(out)


@command(group=data)
def similarity(
    source: Annotated[Path, Choice(None, "The .npy of VSE-infinity's evaluation.", argument=True)],
    out: _New,
) -> None:
    """Convert VSE-infinity's similarity matrix to a dump that every command takes, without running its code.

    **Examples**

    `lossscope data similarity results_f30k.npy f30k.npz`
    """
    from lossscope.datasets.conversion.vse_infinity import convert

    images, captions = convert(source, out)
    notice(f"{images} images x {captions} captions")
    print_path(out)
