"""Is docs/audit.md what its script makes of signals and measurements, and do these keep its promises?"""

from __future__ import annotations

import make_audit
import pandas as pd
import pytest

from lossscope.registry import names


def results(name: str) -> pd.DataFrame:
    return pd.read_csv(make_audit.RESULTS / f"{name}.csv", keep_default_na=name != "mask_worth")


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_audit.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_every_signal_has_a_row() -> None:
    page = make_audit.PAGE.read_text(encoding="utf-8")
    assert all(page.count(f"| `{name}` | {group} |") == 1 for name, group in _groups().items())


def _groups() -> dict[str, str]:
    from lossscope.registry import build

    return {name: make_audit.GROUPS[build("signals", name).group] for name in names("signals")}


def test_probabilities_agree_with_people() -> None:
    rows = results("judgements")
    rows = rows[rows["scored by"] == "cross-validated"].set_index(["judgements", "signals"])
    assert rows.loc[("expert", "texts"), "AUC"] > 0.94 and rows.loc[("crowd", "texts"), "AUC"] > 0.90
    assert (rows["calibration error"] < 0.01).all()


def test_the_interval_has_the_true_rate_of_nine_in_ten_data_sets() -> None:
    of_data = results("interval_coverage").groupby("data")["inside"]
    assert (of_data.size() == 20).all() and (of_data.mean() >= 0.9).all()


def test_sixty_labels_count_a_rate_without_bias() -> None:
    rows = results("sixty_labels")
    error = (rows["counted"] - rows["rate"]).groupby([rows["data"], rows["score"], rows["seed"]]).mean()
    of_seeds = error.groupby(["data", "score"])
    assert (of_seeds.mean().abs() <= 2 * of_seeds.std() / 20**0.5).all()


def test_the_interval_of_sixty_labels_has_the_true_rate() -> None:
    of_score = results("sixty_labels").groupby(["score", "data"])["inside"]
    assert (of_score.size() == 200).all()
    assert (of_score.mean()["texts"] >= 0.93).all() and (of_score.mean()["chance"] >= 0.88).all()


def test_no_data_set_passes_for_photos_whose_rate_would_be_wrong() -> None:
    rows = results("transfer")
    ratio = rows["stated"] / rows["true rate"]
    wrong = rows[(rows["collection"] == "other") & ~((ratio > 0.5) & (ratio < 2))]
    assert len(wrong) >= 30 and not wrong["transferred"].any()


def test_the_mask_of_a_labelled_audit_closes_most_of_the_gap_of_scenes() -> None:
    rows = results("mask_worth")
    for objective, runs in rows[rows["data"] == "scenes"].groupby("objective"):
        assert make_audit.gap(runs, "audit and 100 labels") >= 0.6, objective


def test_the_gap_is_that_of_means_over_seeds() -> None:
    runs = pd.DataFrame({"mask": ["none", "none", "perfect", "half"], "mAP_truth": [0.1, 0.3, 0.4, 0.3]})
    assert make_audit.gap(runs, "half") == pytest.approx(0.5)


def test_what_the_page_says_of_intervals_is_what_was_measured() -> None:
    middle = results("interval_coverage").groupby("data").median()
    span = middle["high, labelled"] / middle["low, labelled"]
    assert "a factor of ten where one negative in a hundred" in _page()
    assert span["scenes, ambiguity 0.4"] == pytest.approx(10, abs=1)
    assert "a factor of three hundred on scenes, and of six on passages" in _page()
    assert span["passages"] == pytest.approx(6, abs=1)
    assert 250 < span["scenes, ambiguity 0.1"] < 350


def test_what_is_said_where_few_negatives_are_false_is_what_was_measured() -> None:
    """The page and the command: a mask changes less than the seed, and half of the hidden pairs are true negatives."""
    rows = results("mask_worth")
    rows = rows[rows["data"] == "passages"]
    perfect, labelled = (rows[rows["mask"] == mask] for mask in ("perfect", "audit and 100 labels"))
    assert pd.to_numeric(perfect["hidden"]).max() < 1e-4, "one pair in 10,000"
    assert pd.to_numeric(labelled["precision"]).mean() == pytest.approx(0.5, abs=0.1)
    for _, objective_rows in rows.groupby("objective"):
        found = {mask: runs["mAP_truth"].astype(float) for mask, runs in objective_rows.groupby("mask")}
        change = found["audit and 100 labels"].mean() - found["none"].mean()
        assert abs(change) < found["none"].std()


def test_what_is_said_of_the_trials_of_masks_is_what_was_measured() -> None:
    """The exact mask helps scenes by truth, not with suspects left out or wrong; passages hardly."""
    rows = results("worth")
    assert set(rows["seed"]) == {101, 102, 103} and len(rows) == 2 * 2 * 3 * 3
    chosen = rows[rows["mask"] != "random"].assign(seen=lambda table: table["by truth low"] > 0)
    scenes, passages = (chosen[chosen["data"] == name] for name in ("scenes", "passages"))
    assert scenes["seen"].all()
    assert (scenes[scenes["mask"] != "perfect"]["by probability low"] > 0).sum() == 2, "two of six trials"
    exact = scenes[scenes["mask"] == "perfect"]
    for way in ("left out", "as labelled"):
        assert ((exact[f"{way} low"] < 0) & (exact[f"{way} high"] > 0)).all()
    assert passages["seen"].mean() < 0.5
    lost = passages[(passages["mask"] != "perfect") & (passages["objective"] == "ntxent:tau=0.05")]
    assert lost["by truth"].mean() > 0 and lost["by probability"].mean() > 0


def test_the_trial_does_not_say_that_random_masks_help() -> None:
    rows = results("worth")
    assert (rows[rows["mask"] == "random"]["by probability low"] <= 0).all()


def test_the_number_of_judgements_is_that_of_the_table() -> None:
    pairs = results("judgements").groupby("judgements")["pairs"].first().sum()
    assert f"judgements of {round(pairs / 1000)},000 pairs" in _page()


def _page() -> str:
    return " ".join(make_audit.PAGE.read_text(encoding="utf-8").split())
