"""Does the doctor read transformers' trainer_state.json, and JSON lines?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError

HISTORY: list[dict[str, Any]] = [
    {"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 1e-4, "loss": 4.5, "step": 10},
    {"epoch": 1.0, "grad_norm": math.nan, "learning_rate": 5e-5, "loss": math.nan, "step": 20},
    {"epoch": 1.0, "eval_loss": 4.2, "eval_NanoBEIR_mean_cosine_ndcg@10": 0.4, "eval_runtime": 1.0, "step": 20},
    {"epoch": 1.0, "step": 20, "total_flos": 0.0, "train_loss": 4.25, "train_runtime": 1.0},
]
STATE = {"best_metric": None, "global_step": 20, "log_history": HISTORY, "train_batch_size": 64}


def read(folder: Path, value: object, name: str = "trainer_state.json") -> Any:
    """Return the log of a file with this content."""
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return read_log(folder / name)


def test_the_history_of_a_trainer(tmp_path: Path) -> None:
    log = read(tmp_path, STATE)
    assert log.steps["step"].tolist() == [10, 20] and log.steps["grad_norm"][0] == 1.5
    assert log.steps["loss"][0] == 4.5 and math.isnan(log.steps["loss"][1])
    assert log.evaluations.to_dict("list") == {"step": [20], "val_loss": [4.2], "val_recall": [0.4]}
    assert log.batch_size == 64 and log.notices == ()


def test_a_real_trainer_writes_what_is_read(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers import TrainerState

    TrainerState(log_history=HISTORY, train_batch_size=8).save_to_json(str(tmp_path / "trainer_state.json"))
    log = read_log(tmp_path)
    assert len(log.steps) == 2 and log.batch_size == 8


def test_rows_of_a_batch_are_not_the_candidates_of_a_query(tmp_path: Path) -> None:
    """Four rows of eight passages are 32 candidates, and several devices gather theirs: the file states neither."""
    log = read(tmp_path, STATE)
    assert log.batch_size == 64 and not log.pairs_are_candidates and log.candidates is None


def test_what_lossscope_logged_into_the_history_is_read_back(tmp_path: Path) -> None:
    values = {"lossscope/q2d/C_neg": 31.0, "lossscope/q2d/s_pos": 0.996, "lossscope/q2d/s_neg": 0.997}
    log = read(tmp_path, {"log_history": [{"loss": 3.466, "step": 10, **values, "lossscope/q2d/N_eff": 30.0}]})
    assert log.steps[["positive", "hardest_negative", "counted_negatives"]].values.tolist() == [[0.996, 0.997, 31.0]]


def test_a_history_of_evaluations_alone_says_so(tmp_path: Path) -> None:
    log = read(tmp_path, {"log_history": [{"step": 1, "eval_loss": 1}]})
    assert not log.has_loss and log.evaluations["val_loss"].tolist() == [1] and "--column loss=NAME" in log.notices[-1]


def test_the_newest_checkpoint_of_a_folder_is_read(tmp_path: Path) -> None:
    for number in (5, 20, 100):
        (tmp_path / f"checkpoint-{number}").mkdir()
        rows = [{"loss": 1.0, "step": step} for step in range(number)]
        read(tmp_path / f"checkpoint-{number}", {"log_history": rows})
    assert len(read_log(tmp_path).steps) == 100


def test_a_list_and_lines_of_objects(tmp_path: Path) -> None:
    assert read(tmp_path, HISTORY).batch_size is None
    lines = "".join(json.dumps(row) + "\n" for row in HISTORY)
    for name in ("log.jsonl", "log.txt"):
        log = read(tmp_path, lines + '{"loss": 1', name)
        assert len(log.steps) == 2 and log.notices == ("the last line is cut off and left out",)
        assert len(read(tmp_path, lines.rstrip(), name).steps) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "must be whole JSON"),
        ("3", "must be an object"),
        ({"rows": []}, "must have the key 'log_history'"),
        ({"log_history": []}, "must have rows; it has none"),
        ({"log_history": [3]}, "row 1 of log_history of .* must be an object"),
        ({"log_history": [{"step": 1, "loss": "bad"}]}, "loss in row 1 of log_history of .* must be a number"),
        ({"log_history": [{"step": 1, "loss": True}]}, "must be a number, nan, inf or empty; got True"),
        ({"log_history": [{"step": 1, "loss": [1]}]}, r"got \[1\]"),
        ({"log_history": [{"step": 1, "my_value": 1}]}, "--column loss=NAME"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, content)


def test_a_line_that_is_no_object_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2 of .*log.jsonl"):
        read(tmp_path, '{"loss": 1}\n{"loss": }\n', "log.jsonl")
    with pytest.raises(InputError, match="loss in line 3 of"):
        read(tmp_path, '{"loss": 1}\n\n{"loss": "x"}\n', "log.jsonl")
