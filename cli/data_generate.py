"""`lossscope data synthetic-experts` and `random-words`: inputs of video models, where the real ones are missing."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from lossscope.core.choices import Choice

from ._app import command
from ._output import notice, print_path
from ._progress import progress
from .data import data


@dataclass(frozen=True)
class Members:
    """Videos of MSR-VTT, with their captions."""

    captions: Annotated[Path, Choice(None, "Folder of MSR-VTT's captions and lists.")]
    lists: Annotated[Literal["1k-a", "1k-b", "full"], Choice(None, "Split whose videos and captions to use.")] = "1k-a"
    annotations: Annotated[str, Choice(None, "Pattern of the caption files.")] = "*videodatainfo.json"

    def read(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Every video of the lists with all its captions, and those of its test that are not among them."""
        from lossscope.datasets.formats.msrvtt_lists import Annotations, OfficialLists

        annotated = Annotations.read(self.captions, self.annotations)
        official = OfficialLists(self.captions, self.lists, 0, annotated)
        videos = {video: pairs for part in ("train", "val", "test") for video, pairs in official.members(part).items()}
        return {
            video: tuple(dict.fromkeys((*annotated.captions.get(video, ()), *pairs))) for video, pairs in videos.items()
        }


@dataclass(frozen=True)
class ExpertOptions:
    """How features are drawn, see `SyntheticExperts`."""

    models: Annotated[Literal["mmt", "ce"], Choice(None, "Paper whose experts to generate.")] = "mmt"
    width: Annotated[int, Choice(None, "Width of all experts; 0: that of the real experts.", low=0)] = 0
    frames: Annotated[int, Choice(None, "Most frames of a video.", low=1)] = 30
    missing: Annotated[float, Choice(None, "Probability that an expert lacks a video.")] = 0.2
    noise: Annotated[float, Choice(None, "Length of the noise beside a signal of length 1.")] = 1.0
    seed: Annotated[int, Choice(None, "Seed of all random numbers.", low=0)] = 0


@command("synthetic-experts", group=data)
def synthetic_experts(
    out: Annotated[Path, Choice(None, "Folder of features to write.", argument=True)],
    members: Members,
    options: ExpertOptions,
) -> None:
    """Generate expert features of MSR-VTT's videos from their captions, to train video models without the real ones.

    **Examples**

    `lossscope data synthetic-experts msrvtt/features --captions msrvtt --width 64`

    The features correlate with the captions by construction, so a result on them says nothing about real videos.
    """
    from lossscope.datasets.conversion.synthetic_experts import SyntheticExperts

    texts = {video: [text for _, text in pairs] for video, pairs in members.read().items()}
    with progress() as report:
        SyntheticExperts(**vars(options)).write(texts, out, report)
    notice(f"generated features of {len(texts)} videos, from their captions: no measurement of any video")
    print_path(out)


@command("random-words", group=data)
def random_words(
    out: Annotated[Path, Choice(None, "Stem of the files to write.", argument=True)],
    members: Members,
    width: Annotated[int, Choice(None, "Numbers per word vector.", low=1)] = 64,
    seed: Annotated[int, Choice(None, "Seed of all random numbers.", low=0)] = 0,
) -> None:
    """Generate a random vector for each word of MSR-VTT's captions, to train CE with.

    **Examples**

    `lossscope data random-words msrvtt/words --captions msrvtt`

    A vector identifies its word, and holds nothing of its meaning.
    """
    from lossscope.datasets.conversion.random_word_vectors import write_word_vectors

    texts = {id: text for pairs in members.read().values() for id, text in pairs}
    with progress() as report:
        step = None if report is None else functools.partial(report, "words")
        write_word_vectors(texts, out, width, seed, step)
    notice("generated vectors of words, a random direction each, without meaning")
    print_path(out)
