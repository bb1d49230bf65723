"""What an objective says of itself, whatever its values: which batches it takes, how training adds up, what counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lossscope.core.types import Convention, Reduction, WeightUnit


@dataclass(frozen=True)
class Traits:
    """`traits: ClassVar[Traits] = Traits(positives="many", reduction="mean")` is one line of an objective.

    Where they depend on its fields, `traits` is a property that returns them.
    """

    positives: Literal["one", "many"] = "one"  # `one`: a row with more than one match raises InputError
    directions: float = 1.0  # factor on each direction when the two are added in training
    reduction: Reduction = "sum"  # over the queries, in training
    conventions: tuple[Convention, ...] = ("corrected",)  # supported ways of counting
    statistics: tuple[str, ...] = ("C_neg", "W_neg", "W_low", "W_pos", "C_0")  # what `cocos` reports
    required_info: tuple[str, ...] = ()  # names in `mask.info` that training needs
    optional_info: tuple[str, ...] = ()  # names in `mask.info` of numbers of each pair, used if present
    estimates_labels: bool = False  # training estimates `label` of each pair after the warm-up, unless --info has it
    square: bool = False  # takes only whole batches of pairs: pair i on the diagonal, every entry valid
    relative: tuple[str, ...] = ()  # fields that, when given, replace what depends on the rest of the batch
    takes_terms: bool = False  # whether queries may have candidates of their own side too, see engine.terms
    needs_warmup: bool = False  # the hardest negatives of a random model make all embeddings collapse
    needs_embeddings: bool = False  # of both sides in `mask.info`, as `queries` and `candidates`
    is_part: bool = False  # some negatives of another objective; where all objectives are meant it is left out
    own_unit: WeightUnit = "paper"  # of counted weights; `relative` for a loss that no paper counts
