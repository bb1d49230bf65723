"""Does each system of a study get the numbers that its paper prints for it, and what is known of them?"""

from __future__ import annotations

import pandas as pd

from lossscope.tables.orderings import COLUMNS, printed_numbers
from lossscope.tables.published.base import load

LOSSES = {"Triplet": "triplet:margin=0.2", "NT": "ntxent:tau=0.05", "AP": "smoothap:tau=0.01"}
COUNTS = {"Triplet": ("C_q", "C_0"), "NT": ("C_neg",), "AP": ("C_q", "C_0")}


def runs(dataset: str | None = "flickr30k", method: str = "VSE++ (ResNet50, frozen)", **more) -> pd.DataFrame:
    rows = []
    for label, spec in LOSSES.items():
        constant = {
            "source": label, "run": label, "data": "scenes", "encoder": "VSE++", "objective_label": label, "spec": spec,
            "objective": spec, "dataset": dataset, "method": method, "std": 0.0, "n": 10, "unit": "", "seed": 0,
            "mean": 1.0,
        }  # fmt: skip
        recall = {"probe": "recall", "convention": None, "eps": None, "batch_size": None, "sampling": "test split"}
        cocos = {"probe": "cocos", "convention": "corrected", "eps": 0.01, "batch_size": 128.0, "sampling": "pairs"}
        rows += [{**constant, **recall, "direction": "both", "statistic": "rsum"}]
        rows += [{**constant, **recall, "direction": side, "statistic": "R@1"} for side in ("i2t", "t2i")]
        rows += [
            {**constant, **cocos, "direction": side, "statistic": name}
            for side in ("i2t", "t2i") for name in COUNTS[label]
        ]  # fmt: skip
    return pd.DataFrame(rows).assign(**more)


def test_numbers_are_those_of_the_files() -> None:
    found = printed_numbers(runs(), "bleeker2022")
    assert tuple(found.columns) == COLUMNS
    by_number = found.set_index(["objective_label", "direction", "statistic"])["printed"]
    printed = load("bleeker2022")
    for label, spec in LOSSES.items():
        of_loss = printed[
            (printed["dataset"] == "flickr30k") & (printed["method"] == "VSE++ (ResNet50, frozen)")
            & (printed["objective"] == spec.partition(":")[0])
        ]  # fmt: skip
        for row in of_loss.to_dict("records"):
            name = {"mAP@5": "mAP@5_hits"}.get(row["metric"], row["metric"])
            if name != "average_recall":
                assert by_number[label, row["direction"], name] == row["mean"], (label, name)


def test_known_errors_and_other_parameters_are_noted() -> None:
    found = printed_numbers(runs(), "bleeker2022").set_index(["objective_label", "direction", "statistic"])
    assert "(E2)" in found.loc[("AP", "t2i", "C_q"), "note"] and found.loc[("AP", "i2t", "C_q"), "note"] == ""
    assert found.loc[("NT", "both", "rsum"), "note"] == "NT: tau 0.05, printed 0.1"
    assert found.loc[("Triplet", "both", "rsum"), "note"] == ""


def test_data_that_the_paper_does_not_print_and_studies_without_a_paper_have_none() -> None:
    assert printed_numbers(runs(), None).empty
    assert printed_numbers(runs(dataset=None), "bleeker2022").empty
    assert printed_numbers(runs(method="CLIP"), "bleeker2022").empty


def test_a_mean_of_two_models_in_print_does_not_stand_beside_a_single_model() -> None:
    """Li et al. (2022) rank by two models: a note of `study table` says so, and no claim may compare them."""
    printed = load("li2022_unified")
    ensembles = printed[printed["ensemble"].astype(str).str.lower() == "true"]
    row = ensembles.iloc[0]
    single = runs(dataset=row["dataset"], method=row["method"]).assign(
        spec=f"{row['objective']}", objective=f"{row['objective']}", objective_label="loss"
    )
    single = single[single["run"] == "Triplet"]
    assert printed_numbers(single, "li2022").empty
