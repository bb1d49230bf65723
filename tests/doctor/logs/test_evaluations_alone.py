"""Does the doctor read an evaluator's file without a loss, in each form that sentence-transformers writes?"""

from __future__ import annotations

from pathlib import Path

import pytest

import lossscope
from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError

FORMS = {
    "epoch,steps,cosine_accuracy": "cosine_accuracy",
    "epoch,steps,accuracy_cosinus,accuracy_manhattan,accuracy_euclidean": "accuracy_cosinus",
    "epoch,steps,cosine-Accuracy@1,cosine-Recall@1,cosine-MRR@10,cosine-NDCG@10,cosine-MAP@100": "cosine-NDCG@10",
    "epoch,steps,cosine_pearson,cosine_spearman,dot_pearson,dot_spearman": "cosine_spearman",
    "epoch,steps,cosine_accuracy,cosine_accuracy_threshold,cosine_f1,cosine_recall,cosine_ap": "cosine_ap",
    "epoch,steps,MAP,MRR@10,NDCG@10": "NDCG@10",
}


@pytest.mark.parametrize(("header", "chosen"), FORMS.items())
@pytest.mark.parametrize(
    "positions", [[(1, 100), (2, 200)], [(0, -1), (1, -1)], [(0, 50), (0, -1)], [(-1, -1), (-1, -1)]]
)
def test_every_form_and_every_way_to_count_is_read(
    header: str, chosen: str, positions: list[tuple[int, int]], tmp_path: Path
) -> None:
    """A step of -1 means the end of an epoch, an epoch of -1 an evaluation outside of training."""
    names = header.split(",")[2:]
    rows = [[*position, *(round(0.5 + row / 10, 2) for _ in names)] for row, position in enumerate(positions)]
    path = tmp_path / "evaluation_results.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    log = read_log(path)
    assert not log.has_loss and log.columns["val_recall"] == chosen
    assert log.evaluations["val_recall"].tolist() == [0.5, 0.6] and log.evaluations["step"].is_monotonic_increasing
    assert log.scores.columns.tolist() == ["step", *names] and len(log.scores) == 2
    reasons = lossscope.doctor(log=path).examinations[0].reasons
    assert reasons["diverged"] == reasons["loss-spike"] == "its log has evaluations only, and no training loss"
    assert "with a loss" in reasons["non-finite"]


def test_a_training_whose_loss_has_an_unknown_name_is_no_file_of_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for header in ("iteration,loss_t,acc", "step,objective,accuracy,lr"):
        path.write_text(f"{header}\n1,2,3" + ",4" * (header.count(",") - 2) + "\n")
        with pytest.raises(InputError, match="--column loss=NAME"):
            read_log(path)


def test_scores_are_those_of_the_validation_without_times(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,loss,eval_loss,eval_runtime,eval_samples_per_second,eval_x_ap\n1,4,,,,\n2,3,2,1,1,0.5\n")
    assert read_log(path).scores.to_dict("list") == {"step": [2], "eval_loss": [2], "eval_x_ap": [0.5]}
