"""What does a sweep compute, and how does it make batches? The options of every command that sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from lossscope.core.choices import BATCHES, Choice, require_choices
from lossscope.core.types import LEVEL, MinedNegatives, SameImage, SamplingMode
from lossscope.errors import InputError, OptionError

SAMPLE, INTERVALS = "Samples of huge sets", "Intervals"
_SWEPT = ("pairs", "images", "groups", "classes", "views", "proxies")  # modes that --sampling offers


def read_batch_size(text: str) -> int | None:
    """Return a number unchanged, and `all` as None. Raises OptionError for anything else."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 2:
        raise OptionError(f"--batch-size must be a number of at least 2, or all; got {text!r}")
    return int(text)


def read_level(text: str) -> float | None:
    """Return `95`, `95%` and `0.95` as 0.95, and `none` as None. Raises OptionError for anything else."""
    if text == "none":
        return None
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    level = number / 100 if text.endswith("%") or number >= 1 else number
    if not 0.5 <= level < 1:
        raise OptionError(
            f"--interval must be a level from 50 to below 100 per cent, as 95 or 0.95, or none; got {text!r}"
        )
    return round(level, 12)


def read_masks(typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the specs of --mask; `none` means no rule. Raises OptionError for `none` beside a rule."""
    if typed == ("none",):
        return ()
    if "none" in typed:
        rules = ", ".join(rule for rule in typed if rule != "none")
        raise OptionError(f"--mask none stands alone; got it beside {rules}")
    return typed


@dataclass(frozen=True)
class SweepOptions:
    """What to compute, and how to make batches: plain values, as the manifest of a frame records them.

    Raises OptionError for invalid values, and for options that do not go together.
    """

    # specs; from Python also objectives, and losses of your own
    objectives: Annotated[
        tuple[Any, ...],
        Choice(None, "Objective spec; repeat for several.", flags="--objective", names="objectives"),
    ] = ()
    probes: tuple[str, ...] = ("cocos",)  # specs
    # None: as each objective needs it, with one pass over the source for each
    sampling: Annotated[
        SamplingMode | None,
        Choice(
            BATCHES,
            "Content of a batch: pairs; images or groups with all their positives; P classes x K items; "
            "both views of pairs, each a query; items against all proxies.",
            shown="what objectives need",
            words=_SWEPT,
        ),
    ] = None
    # None: everything in one batch
    batch_size: Annotated[
        int | None, Choice(BATCHES, "Pairs or images per batch, or `all`.", shown="128", read=read_batch_size)
    ] = 128
    seed: Annotated[int, Choice(BATCHES, "Seed of batches and of initial weights.", low=0)] = 0
    shuffle: Annotated[
        bool, Choice(BATCHES, "Shuffle the pairs, or keep their order.", flags="--shuffle/--no-shuffle")
    ] = True
    drop_last: Annotated[
        bool, Choice(BATCHES, "Drop or keep the last, shorter batch.", flags="--drop-last/--keep-last")
    ] = False
    captions: Annotated[Literal["all", "first"], Choice(BATCHES, "All captions, or the first of each image.")] = "all"
    # role of another caption of the same image
    same_image: Annotated[
        SameImage,
        Choice(BATCHES, "Keep further positives, such as captions of the same image, as negatives, or mask them."),
    ] = "keep"
    per_query: bool = False  # keep the rows of single queries
    part: int = 512  # batches of a part, at most
    engine: Literal["auto", "dense", "tiled"] = "auto"  # dense holds the matrix of a batch, tiled never does
    # from here on, options of later versions: frames state only those that have an effect
    # whose candidates mined negatives are
    negatives: Annotated[
        MinedNegatives,
        Choice(BATCHES, "Give mined negatives to the whole batch, to their own query alone, or to none."),
    ] = "batch"
    # number of mined negatives of a query, the first ones; None: all
    mined: Annotated[int | None, Choice(BATCHES, "Mined negatives per query.", shown="all", low=1)] = None
    # items of a class in batches of classes; None: 2, or 4 where positives may be many
    per_class: Annotated[
        int | None, Choice(BATCHES, "Items per class, K, in a batch of classes.", shown="2 or 4", low=2)
    ] = None
    # specs of the rules that leave out negatives
    masks: Annotated[
        tuple[str, ...],
        Choice(
            BATCHES,
            "Leave out negatives that are probably relevant: same-item, same-text, above:margin=0.1, "
            "percent:share=0.95, gist, or an audit's mask.npz; repeat. none: no rule, not even that of "
            "the training.",
            flags="--mask",
            names="masks",
            read=read_masks,
            many=True,
        ),
    ] = ()
    # further candidates of a query, see engine.terms
    terms: Annotated[
        tuple[str, ...],
        Choice(
            BATCHES,
            "Further candidates of a softmax loss, with commas: q2q, d2q, d2d, p2p (q: query, d: "
            "document, p: positive).",
            read=lambda text: tuple(text.split(",")),
        ),
    ] = ()
    # source of the guide of the rules, for the record
    guide: Annotated[str | None, Choice(BATCHES, "Source of the same items; the rule gist reads its similarities.")] = (
        None
    )
    # level of the intervals of means over other items like these; None: no intervals
    interval: Annotated[
        float | None,
        Choice(
            INTERVALS,
            "Level of the intervals of means, 95 or 0.95, over other items like these; none: no intervals.",
            shown="95",
            read=read_level,
        ),
    ] = LEVEL
    # sweeps without a group of items, for intervals of the remaining statistics
    interval_groups: Annotated[
        int | None,
        Choice(
            INTERVALS,
            "Repeat the sweep without each of N groups of items, for intervals of statistics that are no "
            "means; takes N times as long.",
            shown="no such intervals",
            low=10,
        ),
    ] = None
    # queries of each direction, drawn at random and compared with all candidates; None: all
    queries: Annotated[
        int | None,
        Choice(
            SAMPLE,
            "Sample N random queries per direction against all candidates of --batch-size all, with "
            "intervals for all queries.",
            shown="all",
            low=2,
        ),
    ] = None
    # `C_neg=1%` draws enough queries for an interval of +- 1 % of the statistic
    precision_of: Annotated[
        str | None,
        Choice(
            SAMPLE,
            "Sample as many queries as a statistic needs: C_neg=1% is an interval of ± 1 %, after a pilot of 1000.",
        ),
    ] = None

    def __post_init__(self) -> None:
        require_choices(self)
        if self.queries is not None and self.precision_of is not None:
            raise OptionError("--queries and --precision-of both say how many queries there are; give one")
        if self.precision_of is not None:
            from .sampled.precision import Precision

            Precision.parse(self.precision_of)
        if self.interval is not None and not 0 < self.interval < 1:
            raise OptionError(f"--interval must be a level between 0 and 1, as 0.95, or none; got {self.interval}")
        if self.interval_groups is not None and (self.interval is None or self.is_sample):
            raise OptionError("--interval-groups needs --interval and all queries; leave it out, or --queries")
        if self.mined is not None and self.negatives == "none":
            raise OptionError("--mined needs mined negatives; --negatives none leaves them out")
        if self.sampling in ("views", "classes") and (self.mined is not None or self.negatives != "batch"):
            raise OptionError(f"--negatives and --mined are for pairs and groups; --sampling {self.sampling} has none")

    @property
    def is_sample(self) -> bool:
        """Whether the sweep draws a sample of the queries of each direction."""
        return self.queries is not None or self.precision_of is not None

    def record(self) -> dict[str, Any]:
        """Return the options for a frame's manifest, without options of later versions that have no effect."""
        neutral = {field.name: field.default for field in fields(SweepOptions)}
        early = list(neutral)[: list(neutral).index("negatives")]
        stated = {k: v for k, v in asdict(self).items() if k in early or v != neutral[k]}
        return {**stated, "precision": "float32"}  # of tiles; frames of earlier versions state it


def trained_options(recipe: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the options of a recipe that change the negatives of its batches: mined negatives, and rules.

    >>> trained_options({"negatives": "own", "mined": 2, "mask": "same_item;above:margin=0.1"}, "a.pt")
    {'negatives': 'own', 'mined': 2, 'masks': ('same_item', 'above:margin=0.1')}

    Args:
        recipe: of a run; empty if it is unknown.
        source: name of the run, for messages.

    Raises:
        InputError: the recipe is damaged: no run can train with such a value.
    """
    trained: dict[str, Any] = {}
    if recipe.get("negatives") not in (None, "batch"):
        trained["negatives"] = recipe["negatives"]
    if recipe.get("mined"):
        trained["mined"] = recipe["mined"]
    if recipe.get("mask"):
        trained["masks"] = tuple(str(recipe["mask"]).split(";"))
    try:
        SweepOptions(**trained)
    except OptionError as error:  # the fault of the source, not of a typed option
        raise InputError(f"the recipe in {source} must be that of a training; {error}") from error
    return trained
