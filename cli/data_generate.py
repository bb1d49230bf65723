"""`lossscope data experts` and `words`: generated inputs of video models, where the real ones are not at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _output
from .app import Debug, Quiet, chosen, command
from .data import data


@command(group=data)
def experts(
    out: Annotated[Path, typer.Argument(help="Folder of features to write.", show_default=False)],
    captions: Annotated[Path, typer.Option(help="Folder of MSR-VTT's captions and lists.", show_default=False)],
    lists: Annotated[str, typer.Option(help="1k-a, 1k-b or full: whose videos.")] = "1k-a",
    annotations: Annotated[str, typer.Option(help="Pattern of the caption files.")] = "*videodatainfo.json",
    models: Annotated[str, typer.Option(help="Whose experts: mmt or ce.")] = "mmt",
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

    `lossscope data experts msrvtt/features --captions msrvtt --width 64`

    They are correlated with the captions by construction; what is reached on them says nothing about real videos.
    """
    from lossscope.datasets.conversion.synthetic_experts import Generated

    chosen(models, ("mmt", "ce"), "--models")
    told = {video: [text for _, text in pairs] for video, pairs in _members(captions, lists, annotations).items()}
    with _output.progress(quiet) as bar:
        made = Generated(models, width, frames, missing, noise, seed=seed)  # type: ignore[arg-type]
        made.write(told, out, bar)
    _output.notice(f"generated features of {len(told)} videos, from their captions: no measurement of any video", quiet)
    typer.echo(out)


@command(group=data)
def words(
    out: Annotated[Path, typer.Argument(help="Stem of the files to write.", show_default=False)],
    captions: Annotated[Path, typer.Option(help="Folder of MSR-VTT's captions and lists.", show_default=False)],
    lists: Annotated[str, typer.Option(help="1k-a, 1k-b or full: whose captions.")] = "1k-a",
    annotations: Annotated[str, typer.Option(help="Pattern of the caption files.")] = "*videodatainfo.json",
    width: Annotated[int, typer.Option(help="Numbers of a word.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.", min=0)] = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """GENERATE vectors of the words of MSR-VTT's captions, a random direction for each word, to train CE with.

    **Examples**

    `lossscope data words msrvtt/words --captions msrvtt`

    They hold which words there are and nothing of what they mean.
    """
    from lossscope.datasets.conversion.random_word_vectors import write_word_vectors

    members = _members(captions, lists, annotations)
    with _output.progress(quiet) as bar:
        report: Any = None if bar is None else lambda done, total: bar("words", done, total)
        write_word_vectors({id: text for told in members.values() for id, text in told}, out, width, seed, report)
    _output.notice("generated vectors of words, a random direction each: nothing of what they mean", quiet)
    typer.echo(out)


def _members(captions: Path, lists: str, annotations: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Every video of the lists with all its captions, and those of its test that are not among them."""
    from lossscope.datasets.formats.msrvtt_lists import Annotations, Official

    chosen(lists, ("1k-a", "1k-b", "full"), "--lists")
    found = Annotations.read(captions, annotations)
    official = Official(captions, lists, 0, found)  # type: ignore[arg-type]
    videos = {video: told for part in ("train", "val", "test") for video, told in official.members(part).items()}
    return {video: tuple(dict.fromkeys((*found.told.get(video, ()), *told))) for video, told in videos.items()}
