"""`lossscope data synthetic-experts` and `random-words`: inputs of video models, where the real ones are missing."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Literal

import typer

from ._app import command
from ._options import Debug, Quiet
from ._output import notice, print_path
from ._progress import progress
from .data import data

Lists = Literal["1k-a", "1k-b", "full"]


@command("synthetic-experts", group=data)
def synthetic_experts(
    out: Annotated[Path, typer.Argument(help="Folder of features to write.", show_default=False)],
    captions: Annotated[Path, typer.Option(help="Folder of MSR-VTT's captions and lists.", show_default=False)],
    lists: Annotated[Lists, typer.Option(help="Whose videos.")] = "1k-a",
    annotations: Annotated[str, typer.Option(help="Pattern of the caption files.")] = "*videodatainfo.json",
    models: Annotated[Literal["mmt", "ce"], typer.Option(help="Whose experts.")] = "mmt",
    width: Annotated[int, typer.Option(help="Width of all experts; 0: that of the real ones.", min=0)] = 0,
    frames: Annotated[int, typer.Option(help="Most frames of a video.", min=1)] = 30,
    missing: Annotated[float, typer.Option(help="Probability that an expert has nothing of a video.")] = 0.2,
    noise: Annotated[float, typer.Option(help="Length of the noise beside a signal of length 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.", min=0)] = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """GENERATE expert features of MSR-VTT's videos from their captions, to train video models without the real ones.

    **Examples**

    `lossscope data synthetic-experts msrvtt/features --captions msrvtt --width 64`

    They are correlated with the captions by construction; what is reached on them says nothing about real videos.
    """
    from lossscope.datasets.conversion.synthetic_experts import SyntheticExperts

    members = _members(captions, lists, annotations)
    texts = {video: [text for _, text in pairs] for video, pairs in members.items()}
    with progress(quiet) as report:
        experts = SyntheticExperts(models, width, frames, missing, noise, seed=seed)
        experts.write(texts, out, report)
    notice(f"generated features of {len(texts)} videos, from their captions: no measurement of any video", quiet)
    print_path(out)


@command("random-words", group=data)
def random_words(
    out: Annotated[Path, typer.Argument(help="Stem of the files to write.", show_default=False)],
    captions: Annotated[Path, typer.Option(help="Folder of MSR-VTT's captions and lists.", show_default=False)],
    lists: Annotated[Lists, typer.Option(help="Whose captions.")] = "1k-a",
    annotations: Annotated[str, typer.Option(help="Pattern of the caption files.")] = "*videodatainfo.json",
    width: Annotated[int, typer.Option(help="Numbers of a word.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.", min=0)] = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """GENERATE vectors of the words of MSR-VTT's captions, a random direction for each word, to train CE with.

    **Examples**

    `lossscope data random-words msrvtt/words --captions msrvtt`

    They hold which words there are and nothing of what they mean.
    """
    from lossscope.datasets.conversion.random_word_vectors import write_word_vectors

    members = _members(captions, lists, annotations)
    with progress(quiet) as report:
        step = None if report is None else functools.partial(report, "words")
        write_word_vectors({id: text for pairs in members.values() for id, text in pairs}, out, width, seed, step)
    notice("generated vectors of words, a random direction each: nothing of what they mean", quiet)
    print_path(out)


def _members(captions: Path, lists: Lists, annotations: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Every video of the lists with all its captions, and those of its test that are not among them."""
    from lossscope.datasets.formats.msrvtt_lists import Annotations, OfficialLists

    annotated = Annotations.read(captions, annotations)
    official = OfficialLists(captions, lists, 0, annotated)
    videos = {video: pairs for part in ("train", "val", "test") for video, pairs in official.members(part).items()}
    return {
        video: tuple(dict.fromkeys((*annotated.captions.get(video, ()), *pairs))) for video, pairs in videos.items()
    }
