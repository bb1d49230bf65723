"""Count the rate of matches from labels with strata, or say why the labels give no rate."""

from __future__ import annotations

from collections.abc import Sequence

from .design import Counted, Stratum, counted_rate
from .labels import Labels

_SAME = 0.1  # relative difference allowed between shares of a stratum: batches of another seed differ a little


def count_labels(labels: Labels) -> tuple[Counted | None, tuple[str, ...]]:
    """Return the counted rate and notices about it; None if a stratum lacks an answer.

    Args:
        labels: answers with strata; answers without a stratum do not count.
    """
    where = labels.where
    answered = [(row, answer) for row, answer in zip(labels.design, labels.answers.tolist(), strict=True) if row]
    if not answered:
        return None, (
            f"{where} has no strata, so that no rate is counted from it without a model; sheets have them as columns",
        )
    whole = {row.of for row, _ in answered}
    if len(whole) > 1:
        numbers = " and ".join(str(number) for number in sorted(whole))
        return None, (f"{where} is of sheets with {numbers} strata, so that no rate is counted from it",)
    strata, missing = [], []
    for number in range(1, whole.pop() + 1):
        shares = [row.share for row, _ in answered if row.stratum == number]
        answers = [answer for row, answer in answered if row.stratum == number]
        if not shares:
            missing.append(number)
            continue
        if max(shares) > (1 + _SAME) * min(shares):
            return None, (
                f"{where} is of different sheets, as stratum {number} has the shares {min(shares):g} and "
                f"{max(shares):g}, so that no rate is counted from it",
            )
        strata.append(Stratum(sum(shares) / len(shares), len(answers), sum(answers)))
    if missing:
        return None, (f"no rate is counted from {where}: {_strata(missing)} no answer, yes or no",)
    total = sum(stratum.share for stratum in strata)
    if total > 1.001:
        return None, (f"no rate is counted from {where}: the shares of its strata sum to {total:g}, which is above 1",)
    counted = counted_rate(strata)
    assert counted is not None
    if counted.is_in_order:
        return counted, ()
    return counted, (
        "the counted rate is above what answers allow if fewer pairs match where scores are lower: by chance, where "
        "strata have few answers, or because the score says little of these data. Label more pairs",
    )


def _strata(numbers: Sequence[int]) -> str:
    text = ", ".join(str(number) for number in numbers)
    return f"stratum {text} has" if len(numbers) == 1 else f"strata {text} have"
