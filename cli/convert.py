"""`lossscope convert`: a released checkpoint as a lossscope checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lossscope.core.choices import Choice
from lossscope.core.request import Request

from ._app import command
from ._form import Only
from ._options import usage
from ._output import notice, print_path
from ._sources import OF_TRAIN


@command(first=("vocabulary", "data", "force", "old_pickle"))
def convert(
    foreign: Annotated[Path, Choice(None, "Released file, or folder of Hugging Face or open_clip.", argument=True)],
    out: Annotated[Path, Choice(None, "Checkpoint to write: .pt, or .safetensors.", argument=True)],
    request: Annotated[Request, Only("vocabulary", "data", "encoder", "accepted_options")] = OF_TRAIN,
    old_pickle: Annotated[
        bool,
        Choice(
            None,
            "Use lossscope's restricted unpickler, for files of Python 2, or of pickle protocol 4, that torch refuses.",
            flags="--old-pickle",
        ),
    ] = False,
    force: Annotated[bool, Choice(None, "Overwrite an existing file.", flags="--force")] = False,
) -> None:
    """Turn an authors' checkpoint or a Hugging Face folder into ours.

    **Examples**

    `lossscope convert model_best.pth.tar scan.pt --vocabulary f30k_precomp_vocab.json --data precomp:root=f30k_precomp`

    `lossscope convert clip-vit-large-patch14-336 clip.safetensors`

    `lossscope convert epoch_32.pt clip.pt --encoder-option model=ViT-B-32 --vocabulary bpe_simple_vocab_16e6.txt.gz`

    The command writes nothing unless every tensor finds its place. It reads data alone, and runs no code of the file.
    """
    from lossscope.sources.checkpoints.conversion import describe, open_released

    if out.suffix not in (".pt", ".safetensors"):
        raise usage(f"OUT must end in .pt or .safetensors; got {out}")
    if out.exists() and not force:
        raise usage(f"OUT must be a new file; {out} exists. Choose another, or pass --force")
    checkpoint, notices = open_released(
        foreign, request.vocabulary, request.data or "", old_pickle, request.encoder, request.accepted_options
    )
    if request.encoder:
        checkpoint = checkpoint.with_encoder(request.encoder)
    checkpoint.save(out)
    for text in notices:
        notice(f"Note: {text}.")
    for name, value in describe(checkpoint).items():
        notice(f"{name:<11} {value}")
    print_path(out)
