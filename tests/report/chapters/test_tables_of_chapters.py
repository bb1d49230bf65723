"""Do the tables of the page agree with the summary rows, and name missing runs and seeds?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.build import gather
from lossscope.report.chapters import comparison, contributors, geometry, retrieval, runs, training
from lossscope.report.chapters.base import ReportData, build_sections, over_seeds
from lossscope.report.papers import build_paper_tables
from lossscope.report.results import FRAMES
from lossscope.report.sections import Picture, Section
from lossscope.tables.base import Table

WithRows = Callable[[Callable[[pd.DataFrame], pd.DataFrame]], ReportData]


def tables(sections: object) -> dict[str, Table]:
    listed: list[Section] = list(sections)  # type: ignore[call-overload]
    return {item.name: item for section in listed for item in section.all_items if isinstance(item, Table)}


def column(table: Table, heading: str) -> list[float | None]:
    return [row[table.headings.index(heading)].mean for row in table.rows]


def test_recall_is_the_mean_over_seeds(report_data: ReportData) -> None:
    table, rows = tables(retrieval.build(report_data))["retrieval"], report_data.results.rows
    rsum = rows[rows["statistic"] == "rsum"].groupby("objective_label", sort=False)["mean"].mean()
    assert column(table, "rsum") == pytest.approx(rsum.tolist())
    assert "n = 2 runs (seeds)" in table.caption


def test_a_missing_seed_is_named(with_rows: WithRows) -> None:
    """One loss lacks a seed of the other: its mean is over other trainings, and a reader must see that."""
    data = with_rows(lambda rows: rows[~((rows["objective_label"] == "Triplet") & (rows["seed"] == 1))])
    table = tables(retrieval.build(data))["retrieval"]
    assert "n = 1 to 2 runs" in table.caption
    assert any("seed 1 of scenes, VSE++, Triplet missing: n = 1" in note for note in table.notes)


def test_the_tables_of_a_paper_take_the_place_of_the_plain_ones(report_data: ReportData, with_rows: WithRows) -> None:
    data = with_rows(lambda rows: rows.assign(dataset="flickr30k", method="VSE++ (ResNet50, frozen)"))
    data = replace(data, results=replace(data.results, paper="bleeker2022"))
    names = tables(retrieval.build(data))
    assert names and all(name.startswith("bleeker2022_1") for name in names)
    counts = tables(contributors.build(data))
    assert {name.partition("-")[0] for name in counts} == {"bleeker2022_2", "bleeker2022_3"}
    assert list(build_paper_tables(None, data.results.rows, data.tests, counts=False)) == []  # no paper has it


def test_counts_have_the_layout_of_the_paper(report_data: ReportData) -> None:
    by_name = tables(contributors.build(report_data))
    assert set(by_name) == {"cocos_triplet", "cocos_softmax"}
    rows = report_data.results.rows
    counted = rows[
        (rows["probe"] == "cocos") & (rows["objective_label"] == "Triplet") & (rows["convention"] == "corrected")
    ]
    table = by_name["cocos_triplet"]
    (line,) = [row for row in table.rows if "corrected" in [cell.text for cell in row]]
    for direction in ("i2t", "t2i"):
        expected = counted[(counted["statistic"] == "C_q") & (counted["direction"] == direction)]["mean"]
        assert len(expected) == 2 and line[table.headings.index(f"{direction} C_q")].mean == pytest.approx(
            expected.mean()
        )


def test_weight_is_drawn_as_means_over_seeds(report_data: ReportData) -> None:
    (section,) = contributors.build(report_data)
    (picture,) = [item for item in section.all_items if isinstance(item, Picture)]
    assert picture.name == "weight_mass-1" and picture.caption.startswith("Where the weight")
    assert "Triplet i2t" in picture.alt and "NT-Xent t2i" in picture.alt


def test_tests_of_rsum_are_shown_and_those_of_each_recall_folded(report_data: ReportData) -> None:
    (section,) = comparison.build(report_data)
    assert [item.name for item in section.items] == ["comparison_intervals", "comparison"]
    assert [item.name for item in section.more] == ["comparison_recalls"]
    rsum = report_data.comparisons[report_data.comparisons["statistic"] == "rsum"]
    assert column(tables([section])["comparison"], "difference") == rsum["difference"].tolist()
    assert len(tables([section])["comparison_recalls"].rows) == 6


def test_geometry_is_the_mean_over_seeds_or_a_dash(report_data: ReportData, with_rows: WithRows) -> None:
    table, rows = tables(geometry.build(report_data))["geometry"], report_data.results.rows
    similarities = rows[
        (rows["statistic"] == "s_pos") & (rows["objective_label"] == "Triplet") & (rows["direction"] == "i2t")
    ]["mean"]
    (line,) = [row for row in table.rows if (row[1].text, row[2].text) == ("Triplet", "i2t")]
    cell = line[table.headings.index("s_pos")]
    assert cell.mean == pytest.approx(similarities.mean()) and cell.std == pytest.approx(similarities.std())

    def remove(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["statistic"] == "s_pos", "mean"] = math.nan
        return rows

    table = tables(geometry.build(with_rows(remove)))["geometry"]
    assert all(row[table.headings.index("s_pos")].plain() == "–" for row in table.rows)


def test_every_run_is_listed_with_the_fingerprint_of_its_data(report_data: ReportData) -> None:
    table, rows = tables(runs.build(report_data))["runs"], report_data.results.rows
    assert [row[0].text for row in table.rows] == report_data.results.runs["run"].tolist()
    fingerprints = {str(value)[:12] for value in rows["data_fingerprint"].unique()}
    assert {row[table.headings.index("fingerprint")].text for row in table.rows} == fingerprints
    assert "gaps" not in tables(runs.build(report_data))


def test_runs_without_numbers_are_listed_with_their_reason(report_data: ReportData) -> None:
    all_runs = report_data.results.runs.copy()
    all_runs.loc[0, ["status", "reason"]] = ["failed", "no memory & <left>"]
    rows = report_data.results.rows[report_data.results.rows["run"] != all_runs["run"].iloc[0]]
    by_name = tables(runs.build(replace(report_data, results=replace(report_data.results, runs=all_runs, rows=rows))))
    (line,) = by_name["gaps"].rows
    assert [cell.text for cell in line] == [all_runs["run"].iloc[0], "failed", "no memory & <left>"]
    assert len(by_name["runs"].rows) == 3 and by_name["gaps"].caption.startswith("1 run of the study")


def test_every_choice_of_the_trainings_is_listed_with_its_runs(report_data: ReportData) -> None:
    choices = {row[0].text: [] for row in tables(runs.build(report_data))["choices"].rows}
    for name, value, where in tables(runs.build(report_data))["choices"].rows:
        choices[name.text].append((value.text, where.text))
    assert choices["batch-size"] == [("16", "all")] and choices["lr"] == [("0.01", "all")]
    assert not {"data", "encoder", "objective", "seed"} & set(choices)


def test_training_is_drawn_for_each_model(report_data: ReportData) -> None:
    (section,) = training.build(report_data)
    assert [item.name for item in section.items] == ["training_end", "training-1", "separation-1"]
    assert "seed 0" in section.items[2].caption


def test_the_end_of_training_is_the_mean_over_seeds(report_data: ReportData) -> None:
    (section,) = training.build(report_data)
    table, epochs = tables([section])["training_end"], report_data.results.epochs
    last = epochs[(epochs["split"] == "val") & (epochs["epoch"] == 1) & (epochs["objective_label"] == "Triplet")]
    (line,) = [row for row in table.rows if row[1].text == "Triplet"]
    assert line[2].mean == 2 and line[3].mean == pytest.approx(last["pos_mean"].mean())
    assert line[6].mean == pytest.approx(last["rsum"].mean()) and line[6].std == pytest.approx(last["rsum"].std())
    assert line[8].missing  # its only epoch is a warm-up epoch


def test_the_end_of_a_training_that_diverged_is_dashes(report_data: ReportData) -> None:
    numbers = ["loss", *(column for column in report_data.results.epochs if column.startswith(("pos_", "neg_")))]
    epochs = report_data.results.epochs.assign(**dict.fromkeys(numbers, math.nan))
    (section,) = training.build(replace(report_data, results=replace(report_data.results, epochs=epochs)))
    table = tables([section])["training_end"]
    assert all(cell.missing for line in table.rows for cell in (*line[3:6], *line[7:]))
    assert "nan" not in table.to_html() + table.to_latex() + table.to_csv()


def without_warmup(data: ReportData, epochs: pd.DataFrame) -> ReportData:
    recipes = {run: {**recipe, "warmup": 0} for run, recipe in data.results.recipes.items()}
    return replace(data, results=replace(data.results, epochs=epochs, recipes=recipes))


def test_a_loss_that_ends_at_its_plateau_is_reported_as_a_collapse(report_data: ReportData) -> None:
    epochs = report_data.results.epochs.copy()
    steps = (epochs["objective_label"] == "Triplet") & (epochs["split"] == "train")
    epochs.loc[steps, "loss"] = 2 * 16 * 15 * 0.2 * 1.2
    (section,) = training.build(without_warmup(report_data, epochs))
    assert "ended at its plateau" not in section.text
    (line,) = [row for row in tables([section])["training_end"].rows if row[1].text == "Triplet"]
    assert line[8].mean == pytest.approx(2 * 16 * 15 * 0.2)  # hinges of a batch of 16, both directions, times margin
    epochs.loc[steps, "loss"] = 2 * 16 * 15 * 0.2
    (section,) = training.build(without_warmup(report_data, epochs))
    assert "Triplet on VSE++ ended at its plateau: in the last epoch its median loss was 96.0" in section.text


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("data_fingerprint", "data_fingerprint of scenes must be one"),
        ("n", "number of queries of scenes, i2t, .* must be one; got .* Evaluate all runs on the same data"),
    ],
)
def test_recall_on_other_data_is_refused(with_rows: WithRows, column: str, message: str) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["seed"] == 1, column] = "another" if column == "data_fingerprint" else 7
        return rows

    with pytest.raises(InputError, match=message):
        retrieval.build(with_rows(other))


def captions(sections: list[Section]) -> str:
    """Return the captions and notes of tables, pictures and charts, and the texts, of all chapters."""
    items = [item for section in sections for item in section.all_items]
    notes = [note for item in items if isinstance(item, Table) for note in item.notes]
    return " ".join([*(item.caption for item in items), *(section.text for section in sections), *notes])


def of_one_seed(data: ReportData) -> ReportData:
    """Return the study with the runs of seed 0 alone."""
    results = data.results
    frames = {kind: (frame := getattr(results, kind))[frame["seed"] == 0] for kind in (*FRAMES, "epochs", "runs")}
    return gather(replace(results, **frames), data.diagrams, resamples=99)


def test_of_one_seed_no_caption_speaks_of_a_deviation_over_seeds(report_data: ReportData) -> None:
    """Captions of sliders, tables and pictures explained ± over seeds where no number had a ±."""
    text = captions(build_sections(of_one_seed(report_data)))
    assert "One seed each, so no deviation." in text
    for words in ("over seeds", "± sample", "Circles are single runs", "bars one"):
        assert words not in text


def test_of_two_seeds_the_deviation_is_said_to_be_their_distance(sections: list[Section]) -> None:
    text = captions(sections)
    sentence = "± sample standard deviation over 2 seeds; of two it is 0.71 times their distance."
    assert text.count(sentence) >= 5 and "One seed each" not in text


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        ({"a": 1, "b": 1}, "One seed each, so no deviation."),
        ({"a": 5, "b": 5}, "Mean ± sample standard deviation over 5 seeds."),
        (
            {"a": 1, "b": 3},
            "Mean ± sample standard deviation over 1 to 3 seeds; of one seed there is none.",
        ),
    ],
)
def test_what_a_deviation_is_depends_on_the_number_of_seeds(seeds: dict[str, int], sentence: str) -> None:
    rows = [{"data": "d", "encoder": "e", "objective_label": k, "seed": s} for k, n in seeds.items() for s in range(n)]
    assert over_seeds(pd.DataFrame(rows)) == sentence


def test_hubness_is_said_to_be_within_a_batch_and_the_picture_over_all(report_data: ReportData) -> None:
    """A page had hub_skewness twice with different values and no explanation."""
    (section,) = geometry.build(report_data)
    table = tables([section])["geometry"]
    assert "within a batch, mean over batches: hub_max_count, hub_skewness" in table.caption
    pictures = [item for item in section.all_items if isinstance(item, Picture) and item.name == "hubness-1"]
    assert "counted over all batches together; the table counts within a batch" in pictures[0].caption
    assert "skewness" not in pictures[0].alt
