"""Do Facts compute each part once from its inputs, and give the input's reason where a part is missing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from lossscope.core.facts import Facts, Missing


@dataclass(frozen=True)
class Rows:
    """Numbers from the caller."""

    absent: ClassVar[str] = "it has no rows"
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Total:
    """The sum of the numbers."""

    number: int
    needs: ClassVar[tuple[type, ...]] = (Rows,)
    computed: ClassVar[list[int]] = []

    @classmethod
    def of(cls, _: Facts, rows: Rows) -> Total:
        """Add the numbers."""
        cls.computed.append(len(rows.numbers))
        if not rows.numbers:
            raise Missing("its rows are empty")
        return cls(sum(rows.numbers))


@dataclass(frozen=True)
class Mean:
    """The mean of the numbers."""

    number: float
    needs: ClassVar[tuple[type, ...]] = (Rows, Total)

    @classmethod
    def of(cls, _: Facts, rows: Rows, total: Total) -> Mean:
        """Divide the sum by the number of rows."""
        return cls(total.number / len(rows.numbers))


def test_a_part_is_computed_once_from_what_it_needs() -> None:
    Total.computed.clear()
    facts = Facts(given={Rows: lambda: Rows((1, 2, 3))})
    assert facts.known(Mean) is None and facts.part(Mean).number == 2 and facts.part(Mean) is facts.known(Mean)
    assert facts.part(Total).number == 6 and Total.computed == [3]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts(), "it has no rows"),
        (Facts(missing={Rows: "it is a log"}), "it is a log"),
        (Facts(given={Rows: Rows((1,))}, missing={Total: "it is not added up"}), "it is not added up"),
        (Facts(given={Rows: Rows(())}), "its rows are empty"),
    ],
)
def test_a_part_is_missing_for_the_reason_of_what_it_needs(facts: Facts, reason: str) -> None:
    for _ in range(2):
        with pytest.raises(Missing) as missing:
            facts.part(Mean)
        assert missing.value.reason == reason and not facts.has(Mean) and facts.known(Mean) is None


def test_what_is_given_counts_more_than_a_reason_and_a_computation() -> None:
    facts = Facts(given={Total: Total(7)}, missing={Total: "it is not added up"})
    assert facts.part(Total).number == 7


def test_a_reason_is_computed_once() -> None:
    Total.computed.clear()
    facts = Facts(given={Rows: Rows(())})
    assert not facts.has(Total) and not facts.has(Mean) and Total.computed == [0]
