"""The options of an audit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from lossscope.core.choices import Choice, require_choices
from lossscope.core.request import Request
from lossscope.core.types import HIDDEN_FROM, LEAST_SUSPECT
from lossscope.errors import OptionError


@dataclass(frozen=True)
class AuditOptions:
    """Options of an audit; a typed option overrides what a source states."""

    # specs; none: the objective of the source's training, else the usual ones
    objectives: Annotated[
        tuple[str, ...], Choice(None, "Objective spec; repeat for several.", flags="--objective", names="objectives")
    ] = ()
    # names, or ./file.py:NAME; none: all
    signals: Annotated[
        tuple[str, ...],
        Choice(None, "Signal to decide by, or ./file.py:NAME; repeat.", shown="all", flags="--signal", names="signals"),
    ] = ()
    batch_size: Annotated[int, Choice(None, "Pairs per batch.", low=2, high=4096)] = 128
    labels: Annotated[
        tuple[Path, ...],
        Choice(None, "Sheet with answers, which recalibrate the probabilities; repeat for a second person's."),
    ] = ()
    # in what is printed
    threshold: Annotated[
        float, Choice(None, "Probability from which the mask leaves a pair out.", low=0.0, high=1.0)
    ] = HIDDEN_FROM
    # None: a fiftieth of them
    top: Annotated[
        int | None,
        Choice(
            None,
            "Candidates to examine per query, where there are more than 6 million pairs.",
            shown="a fiftieth",
            low=1,
        ),
    ] = None
    keep: float = LEAST_SUSPECT  # smallest probability of a suspect; the threshold counts if it is lower
    sheet: Annotated[int, Choice(None, "Number of pairs to label.", low=10)] = 100
    precision: Annotated[
        float, Choice(None, "Largest factor between the ends of the rate's interval when labels are enough.", low=1.1)
    ] = 4.0
    worth: Annotated[
        bool,
        Choice(None, "Also try the mask on frozen vectors, and print the loss's floor.", flags="--worth"),
    ] = False
    seed: Annotated[int, Choice(None, "Seed of batches and of initial weights.", low=0)] = 0
    source: Request = Request()  # noqa: RUF009 - never changed; how sources are read

    def __post_init__(self) -> None:
        require_choices(self)
        if self.threshold == 0:
            raise OptionError("--threshold must be above 0: at 0 the mask leaves out every negative")
        twice = [path for k, path in enumerate(self.labels) if path in self.labels[:k]]
        if twice:
            raise OptionError(f"--labels must be files of different people; got {twice[0]} twice")

    @classmethod
    def of(cls, data: str | None = None, **options: Any) -> AuditOptions:
        """Return options by name, also those of a request: `AuditOptions.of("scenes", sheet=20)`."""
        names = {item.name for item in fields(cls)}
        source = Request(data=data, **{name: value for name, value in options.items() if name not in names})
        return cls(**{name: value for name, value in options.items() if name in names}, source=source)
