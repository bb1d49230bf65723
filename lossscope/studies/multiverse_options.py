"""Which universes does a multiverse have, and which orderings does it ask about? Options that import nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from lossscope.core.choices import Choice, require_choices
from lossscope.core.types import CONVENTIONS, WEIGHT_UNITS, Convention, WeightUnit
from lossscope.errors import OptionError

ALL_EPOCHS = "all"
_CLAIMS, _UNIVERSES = "Claims", "Universes"
_EPOCHS = ("first", "middle", "best", "last")


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(word) for word in _words(text)}))
    except ValueError:
        raise OptionError(f"{option} must be numbers with commas, as 0.5,1,2; got {text!r}") from None


def _read_eps(text: str) -> tuple[float, ...]:
    return _numbers("--eps", text)


def _read_batches(text: str) -> tuple[float, ...]:
    return _numbers("--batch-factors", text)


@dataclass(frozen=True)
class MultiverseOptions:
    """The claims and the universes. Raises OptionError for values that cannot be.

    A universe is a combination of a convention, a unit, an eps, a batch size, an epoch and a seed. Retrieval depends on
    the last two alone.
    """

    # none: the score of retrieval, and the counts per query of both directions
    metric: Annotated[
        tuple[str, ...],
        Choice(
            _CLAIMS,
            "Metric that systems are ordered by: rsum, i2t_R@1, t2i_C_0, i2t_N_eff, i2t_W_neg, ..., or i2t_count: C_q "
            "where a loss has it, else C_neg, as papers print them; repeat.",
            shown="rsum and the counts of both directions",
        ),
    ] = ()
    claims: Annotated[
        Literal["all", "printed"],
        Choice(_CLAIMS, "Orderings: those that the paper prints, or also those of our means where it prints none."),
    ] = "all"
    only: Annotated[
        tuple[str, ...],
        Choice(
            _CLAIMS, "Name of a data set, model or loss of the study; leave out the others of its kind; repeat.",
            shown="all",
        ),
    ] = ()  # fmt: skip
    conventions: Annotated[
        tuple[Convention, ...],
        Choice(
            _UNIVERSES, "Ways of counting.", shown=",".join(CONVENTIONS), flags="--conventions", read=_words,
            metavar="WORDS",
        ),
    ] = CONVENTIONS  # fmt: skip
    units: Annotated[
        tuple[WeightUnit, ...],
        Choice(
            _UNIVERSES, "Units of weights and eps; released and text count in paper alone.",
            shown=",".join(WEIGHT_UNITS), flags="--units", read=_words, metavar="WORDS",
        ),
    ] = WEIGHT_UNITS  # fmt: skip
    eps: Annotated[
        tuple[float, ...],
        Choice(
            _UNIVERSES, "Thresholds: a weight strictly above it counts.", shown="0.001,0.003,0.01,0.03,0.1",
            read=_read_eps, metavar="NUMBERS",
        ),
    ] = (0.001, 0.003, 0.01, 0.03, 0.1)  # fmt: skip
    # times the batch size of each training
    batch_factors: Annotated[
        tuple[float, ...],
        Choice(
            _UNIVERSES, "Batch sizes, as factors of that of each training.", shown="0.5,1,2", read=_read_batches,
            metavar="NUMBERS",
        ),
    ] = (0.5, 1.0, 2.0)  # fmt: skip
    # `all` alone: every kept epoch, by its number
    epochs: Annotated[
        tuple[str, ...],
        Choice(
            _UNIVERSES, "Epochs of each run: first, middle, best and last of those kept, or all.",
            shown=",".join(_EPOCHS), read=_words, metavar="WORDS",
        ),
    ] = _EPOCHS  # fmt: skip

    def __post_init__(self) -> None:
        require_choices(self)
        known = (
            ("--conventions", self.conventions, CONVENTIONS), ("--units", self.units, WEIGHT_UNITS),
            ("--epochs", self.epochs, (*_EPOCHS, ALL_EPOCHS)),
        )  # fmt: skip
        for option, words, allowed in known:
            wrong = [word for word in words if word not in allowed]
            if wrong or not words:
                got = repr(wrong[0]) if wrong else "none"
                raise OptionError(f"{option} must be of {', '.join(allowed)}, with commas; got {got}")
        if ALL_EPOCHS in self.epochs and len(self.epochs) > 1:
            raise OptionError(f"--epochs all stands alone; got {','.join(self.epochs)}")
        if not self.eps or not all(0 <= eps < math.inf for eps in self.eps):
            raise OptionError(f"--eps must be finite numbers >= 0, with commas; got {_list(self.eps)}")
        if not self.batch_factors or not all(0 < factor < math.inf for factor in self.batch_factors):
            raise OptionError(
                f"--batch-factors must be finite numbers above 0, with commas; got {_list(self.batch_factors)}"
            )


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers) or "none"
