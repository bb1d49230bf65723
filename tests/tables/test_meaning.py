"""Do the sentence and the legend of counts agree with the frame?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from lossscope.declarations import declarations
from lossscope.tables import statistics
from lossscope.tables._legend import explanations, legend
from lossscope.tables._meaning import meaning

SOFTMAX = {"C_neg": 11.53, "W_neg": 0.646, "W_low": 0.086, "C_0": 0.0}


def frame(objective: str, i2t: dict[str, float], t2i: dict[str, float] | None = None, **more: Any) -> pd.DataFrame:
    """Return rows of 24 full batches of 128 pairs."""
    usual = {
        "source": "run.pt", "objective": objective, "probe": "cocos", "std": 0.1, "n": 24, "n_defined": 24,
        "n_spread": 24, "short_batch": None, "unit": "samples", "weight_unit": "paper", "convention": "corrected",
        "eps": 0.01, "batch_size": 128, "sampling": "pairs", "seed": 0,
    }  # fmt: skip
    sides = {"i2t": i2t, "t2i": i2t if t2i is None else t2i}
    return pd.DataFrame(
        {**usual, "direction": side, "statistic": name, "mean": mean, **more}
        for side, means in sides.items()
        for name, mean in means.items()
    )


def test_counts_and_the_share_of_the_weight() -> None:
    # 0.646 / (0.646 + 0.086) = 88.25 %
    assert meaning(frame("ntxent", SOFTMAX)) == (
        "On average 11.5 of 127 negatives carry 88 % of the push; none of the queries is idle.",
    )


def test_directions_that_differ_are_told_apart() -> None:
    (text,) = meaning(frame("ntxent", SOFTMAX, {**SOFTMAX, "C_neg": 14.0, "W_low": 0.6, "C_0": 3.2}))
    assert text == (
        "On average 11.5 (i2t) and 14.0 (t2i) of 127 negatives carry 88 % and 52 % of the push; 0.0 (i2t) and 3.2 "
        "(t2i) of the 128 queries of a batch have no negative above eps."
    )


def test_a_short_batch_or_a_single_one_may_have_fewer_candidates() -> None:
    for more in ({"short_batch": 56}, {"n": 1, "n_spread": 0}):
        assert "of at most 127 negatives" in meaning(frame("ntxent", SOFTMAX, **more))[0]
    older = frame("ntxent", SOFTMAX).drop(columns=["n_spread", "short_batch"])
    assert "of at most 127 negatives" in meaning(older)[0]


def test_batches_of_images_do_not_tell_how_many_captions_there_are() -> None:
    (text,) = meaning(frame("ntxent", {**SOFTMAX, "C_0": 2.0}, sampling="images"))
    assert text.startswith("On average 11.5 negatives carry 88 %")
    assert text.endswith("2.0 of the 128 queries (i2t) and 2.0 queries (t2i) of a batch have no negative above eps.")


def test_all_weight_and_nearly_all() -> None:
    assert "carry all of the push" in meaning(frame("goal", {**SOFTMAX, "W_low": 0.0}))[0]
    assert "carry more than 99.9 % of" in meaning(frame("goal", {**SOFTMAX, "W_low": 1e-5}))[0]
    assert "carry 99.5 % of" in meaning(frame("goal", {**SOFTMAX, "W_low": 0.646 * 0.005 / 0.995}))[0]


def test_a_triplet_loss_weighs_every_violating_negative_alike() -> None:
    counts = {"C_q": 6.0, "C_q_all": 5.5, "C_B": 704.0, "C_0": 4.0}
    assert meaning(frame("triplet:margin=0.2", counts)) == (
        "On average 5.5 of 127 negatives carry all of the push; 4.0 of the 128 queries of a batch are idle.",
    )
    assert meaning(frame("triplet_sh", {**counts, "C_q_all": 0.97})) == (
        "The hardest of 127 negatives carries all of the push; 4.0 of the 128 queries of a batch are idle.",
    )
    assert meaning(frame("triplet", counts, eps=1.0)) == ()  # no weight is above 1


def test_idle_queries_are_those_of_a_full_batch_where_one_is_short() -> None:
    rows = frame("triplet", {"C_q": 6.0, "C_q_all": 5.5, "C_0": 4.0}).assign(short_batch=56)
    assert meaning(rows)[0].endswith("; 4.0 of the 128 queries of a full batch are idle.")


def test_smoothap_counts_triplets() -> None:
    (text,) = meaning(frame("smoothap", {"C_q": 2.0, "C_q_all": 1.5, "C_0": 9.0}, sampling="images"))
    assert text == (
        "On average 1.5 triplets per positive have a weight above eps; 9.0 of the 128 queries (i2t) and 9.0 queries "
        "(t2i) of a batch have none."
    )


def test_a_loss_of_one_row_for_both_directions() -> None:
    both = frame("./mine.py:loss", SOFTMAX).query("direction == 'i2t'").assign(direction="both", weight_unit="relative")
    assert meaning(both) == ("On average 11.5 negatives carry 88 % of the push; none of the queries is idle.",)
    (table,) = statistics.build(both)
    assert [row[1].text for row in table.rows] == ["both"] and "weight unit relative" in table.caption


def test_each_eps_batch_size_and_loss_has_a_sentence_that_names_it() -> None:
    rows = [
        frame("ntxent", {**SOFTMAX, "C_neg": 10 / eps}, eps=eps, batch_size=size) for eps, size in ((1, 64), (2, 128))
    ]
    first, second = meaning(pd.concat(rows))
    assert first.startswith("eps 1, batch size 64: on average 10.0 of 63 negatives")
    assert second.startswith("eps 2, batch size 128: on average 5.0 of 127 negatives")
    losses = pd.concat([frame("ntxent:tau=0.1", SOFTMAX), frame("ntxent:tau=0.05", SOFTMAX)])
    assert [text.partition(":")[0] for text in meaning(losses)] == ["ntxent", "ntxent"]
    assert meaning(losses)[1].startswith("ntxent:tau=0.05: on average")


def test_of_many_lines_the_fewest_and_the_most_are_said() -> None:
    many = pd.concat([frame(f"ntxent:tau={k}", {**SOFTMAX, "C_neg": k}) for k in (3, 1, 5, 2, 4)])
    fewest, most = meaning(many)
    assert fewest.startswith("Fewest: ntxent:tau=1: on average 1.0") and most.startswith("Most: ntxent:tau=5")


def test_seeds_of_a_system_are_averaged() -> None:
    labels = {"data": "scenes", "encoder": "VSE++", "objective_label": "InfoNCE"}
    runs = [
        frame("ntxent", {**SOFTMAX, "C_neg": c}, seed=s, source=f"r{s}").assign(**labels) for s, c in ((0, 10), (1, 20))
    ]
    (text,) = meaning(pd.concat(runs))
    assert text.startswith("On average 15.0 of 127 negatives")


def test_nothing_is_said_of_other_conventions_and_of_counts_without_masses() -> None:
    assert meaning(frame("ntxent", SOFTMAX, convention="released")) == ()
    assert meaning(frame("ncr", {"C_q": 2.0, "C_q_all": 1.0})) == ()
    assert meaning(frame("ntxent", {**SOFTMAX, "W_neg": 0.0, "W_low": 0.0})) == ()


def test_the_legend_is_that_of_the_probe() -> None:
    (table,) = statistics.build(frame("ntxent", {**SOFTMAX, "W_pos": 0.7, "N_eff": 7.0}))
    assert [line.partition(":")[0] for line in table.legend] == ["C_neg", "W_neg", "W_low", "C_0", "W_pos", "N_eff"]
    assert table.legend[0] == "C_neg: negatives with weight above eps, per query"


def test_every_count_is_explained_in_a_line() -> None:
    names = ("C_q", "C_q_all", "C_B", "C_0", "C_neg", "W_neg", "W_low", "W_pos", "N_eff", "skipped")
    lines = legend(("cocos", name) for name in names)
    assert len(lines) == len(names) and max(map(len, lines)) <= 80
    assert all(explanations("cocos")[name] for name in names)


def test_legends_are_read_from_docstrings_of_all_probes() -> None:
    assert {probe.name for probe in declarations("probes") if explanations(probe.name)} >= {
        "cocos",
        "similarity",
        "influence",
    }
    assert legend([("influence", "share_pos"), ("influence", "share_neg")]) == (
        "share_pos, share_neg: share of all positives, share of all negatives",
    )
