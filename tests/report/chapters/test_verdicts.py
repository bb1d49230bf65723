"""Does the chapter state what the runs decide, with Kendall's name, and nothing where runs are too few?"""

from __future__ import annotations

import pandas as pd

from lossscope.report.chapters._verdicts import verdict_sentence
from lossscope.stats.rank_association import association


def counts(seeds: int, better: float = 1.0, losses: str = "ABC") -> pd.DataFrame:
    """Return losses whose runs do not overlap: with better = 1, a greater count has a greater rsum."""
    rows = [
        {"label": label, "panel": "p", "direction": direction, "seed": seed, "count": base + seed / 100,
         "rsum": 100 + better * (base + seed / 100)}
        for base, label in enumerate(losses, 1) for seed in range(seeds) for direction in ("i2t", "t2i")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_sentence_names_kendalls_tau_and_never_tau_alone() -> None:
    text = verdict_sentence(association(counts(3)))
    assert text == (
        "Too few runs to tell (5 of each loss or more are needed): Kendall's tau between count and rsum is 1.00."
    )
    assert verdict_sentence(association(counts(5, better=-1.0))) == (
        "Losses that count fewer samples retrieve better beyond the chance of training: Kendall's tau between count "
        "and rsum is −1.00."
    )


def test_settings_with_other_verdicts_are_named() -> None:
    rows = pd.concat([association(counts(5)), association(counts(2)).assign(panel="q")])
    text = verdict_sentence(rows)
    assert "more samples retrieve better beyond the chance of training in p, i2t; p, t2i" in text
    assert "too few runs to tell (5 of each loss or more are needed) in q, i2t; q, t2i" in text


def test_an_interval_with_0_decides_nothing() -> None:
    frame = counts(6)
    frame.loc[frame["seed"] % 2 == 0, "rsum"] = 250 - frame["rsum"]
    assert verdict_sentence(association(frame)).startswith("The interval includes 0, so that the runs do not decide it")


def test_of_two_losses_no_tau_is_printed() -> None:
    """With two losses tau is +1 or -1 whatever they count: the sign of one difference."""
    assert verdict_sentence(association(counts(1, losses="AB"))) == (
        "Too few runs to tell (5 of each loss or more are needed)."
    )
    mixed = pd.concat([association(counts(1, -1.0, "AB")), association(counts(1)).assign(panel="q")])
    assert "is 1.00" in verdict_sentence(mixed) and "−1.00" not in verdict_sentence(mixed)


def test_one_loss_is_no_verdict() -> None:
    frame = counts(5)
    assert verdict_sentence(association(frame[frame["label"] == "A"])) == "One loss says nothing."
