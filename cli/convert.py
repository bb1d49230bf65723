"""`lossscope convert`: a released checkpoint as a lossscope checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._app import command
from ._options import AcceptOptions, DataSpec, Debug, EncoderOptions, Quiet, VocabularyFile, usage
from ._output import notice, print_path


@command()
def convert(
    foreign: Annotated[
        Path, typer.Argument(help="Released file, or folder of Hugging Face or open_clip.", show_default=False)
    ],
    out: Annotated[Path, typer.Argument(help="Checkpoint to write: .pt, or .safetensors.", show_default=False)],
    vocabulary: VocabularyFile = None,
    data: DataSpec = None,
    old_pickle: Annotated[
        bool, typer.Option("--old-pickle", help="Read with our restricted unpickler: files of Python 2 torch refuses.")
    ] = False,
    encoder_option: EncoderOptions = None,
    accept_option: AcceptOptions = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Open a checkpoint of the papers' authors, or a Hugging Face folder, and write it as a lossscope checkpoint.

    **Examples**

    `lossscope convert model_best.pth.tar scan.pt --vocabulary f30k_precomp_vocab.json --data precomp:root=f30k_precomp`

    `lossscope convert clip-vit-large-patch14-336 clip.safetensors`

    `lossscope convert epoch_32.pt clip.pt --encoder-option model=ViT-B-32 --vocabulary bpe_simple_vocab_16e6.txt.gz`

    Every tensor must find its place, or nothing is written. Nothing in the file but data is ever built.
    """
    from lossscope.sources.checkpoints.conversion import describe, open_released

    if out.suffix not in (".pt", ".safetensors"):
        raise usage(f"OUT must end in .pt or .safetensors; got {out}")
    if out.exists() and not force:
        raise usage(f"OUT must be a new file; {out} exists. Choose another, or pass --force")
    checkpoint, notices = open_released(
        foreign, vocabulary, data or "", old_pickle, encoder_option or (), accept_option or ()
    )
    if encoder_option:
        checkpoint = checkpoint.with_encoder(encoder_option)
    checkpoint.save(out)
    for text in notices:
        notice(f"Note: {text}.", quiet)
    for name, value in describe(checkpoint).items():
        notice(f"{name:<11} {value}", quiet)
    print_path(out)
