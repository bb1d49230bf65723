"""Does lossscope know the column names that trainers write, and take the user's choice?"""

from __future__ import annotations

import pytest

from lossscope.doctor.logs.column_names import PLACES, names_of
from lossscope.doctor.logs.find_columns import FIELDS, find_columns
from lossscope.doctor.logs.name_parts import parse_name
from lossscope.errors import InputError

OPEN_CLIP = ["train/data_time", "train/scale", "train/lr", "train/contrastive_loss", "train/loss", "val/clip_val_loss"]
OPEN_CLIP += ["val/image_to_text_R@1", "val/text_to_image_R@1", "val/imagenet-zeroshot-val-top1", "val/epoch"]
HUGGING_FACE = ["loss", "grad_norm", "learning_rate", "epoch", "step", "train_loss", "eval_loss", "eval_runtime"]


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("loss", ["loss", "train_loss", "train/loss", "Loss/train", "training.loss", "contrastive_loss", "Total Loss"]),
        ("loss", ["clip_loss", "trainLoss", "train_loss_step", "run 3 - train/loss", "epoch_loss", "train_loss_epoch"]),
        ("lr", ["lr", "learning_rate", "train/learning_rate", "lr-AdamW", "lr-AdamW/pg1", "Learning Rate"]),
        ("grad_norm", ["grad_norm", "gradient_norm", "train/grad_norm", "total_norm", "grad_2.0_norm_total"]),
        ("logit_scale", ["logit_scale", "scale", "train/scale", "logit_scale.exp", "tau", "temperature", "t_prime"]),
        ("logit_bias", ["logit_bias", "bias", "train/logit_bias"]),
        ("positive", ["pos_mean", "pos_sim", "positive_similarity", "i2t/s_pos", "lossscope/q2d/s_pos"]),
        ("hardest_negative", ["neg_mean", "neg_sim", "hardest_negative", "i2t/s_neg"]),
        ("counted_negatives", ["i2t/C_neg", "lossscope/q2d/C_neg"]),
        ("train_recall", ["batch_top_100_categorical_accuracy", "categorical_accuracy"]),
        ("val_recall", ["val_factorized_top_k/top_100_categorical_accuracy", "eval_sts-dev_spearman_cosine"]),
        ("val_loss", ["val/loss_epoch", "val_loss_step"]),
        ("train_recall", ["train_recall", "train/R@1", "train_acc", "train/accuracy", "accuracy", "train_acc_epoch"]),
        (
            "val_loss",
            ["val_loss", "eval_loss", "validation/loss", "valid_loss", "clip_val_loss", "loss_val", "test/loss"],
        ),
        (
            "val_recall",
            ["val_recall", "rsum", "val_R@1", "val/recall@1", "val_acc", "eval_NanoBEIR_mean_cosine_ndcg@10"],
        ),
        ("val_recall", ["eval_nq-dev_cosine_recall@10", "val_recall_at_1", "validation.mrr@10", "R@1"]),
        ("val_recall_first", ["i2t_R@1", "val/image_to_text_R@1", "q2d_R@1", "eval/img2txt_r1", "val_a2b_recall@1"]),
        ("val_recall_second", ["t2i_R@1", "val/text_to_image_R@1", "d2q_R@1", "eval/txt2img_r1", "val_b2a_recall@1"]),
        ("val_train_recall", ["val_train_recall", "eval/train_R@1"]),
        (
            "step",
            ["step", "global_step", "Step", "_step", "iteration", "iter", "trainer/global_step", "train/global_step"],
        ),
        ("epoch", ["epoch", "Epoch", "epochs"]),
    ],
)
def test_every_name_is_known_as_its_column_alone(field: str, names: list[str]) -> None:
    for name in names:
        found = find_columns([name, *(["loss"] if field != "loss" else [])], "a.csv")
        assert found.pop("loss") == (name if field == "loss" else "loss")
        assert found == ({} if field == "loss" else {field: name}), name


def test_the_best_name_wins() -> None:
    assert find_columns(OPEN_CLIP, "x") == {
        "loss": "train/loss",
        "lr": "train/lr",
        "logit_scale": "train/scale",
        "val_loss": "val/clip_val_loss",
        "val_recall_first": "val/image_to_text_R@1",
        "val_recall_second": "val/text_to_image_R@1",
    }
    assert find_columns(HUGGING_FACE, "x")["loss"] == "loss"
    assert find_columns(["val_rsum", "val_R@1", "loss"], "x")["val_recall"] == "val_rsum"
    assert find_columns(["train_loss_epoch", "train_loss_step"], "x")["loss"] == "train_loss_step"
    assert find_columns(["test_loss", "val_loss", "loss"], "x")["val_loss"] == "val_loss"
    assert find_columns(["eval_a_ndcg@10", "eval_b_mean_ndcg@10", "loss"], "x")["val_recall"] == "eval_b_mean_ndcg@10"


@pytest.mark.parametrize(
    "name", ["aux_loss", "loss_scale", "s_pos_q10", "val_runtime", "rescale", "i2t/C_B", "runtime"]
)
def test_other_names_are_no_column(name: str) -> None:
    assert find_columns(["loss", name], "x") == {"loss": "loss"}


def test_the_users_choice_wins() -> None:
    found = find_columns(["loss", "aux", "val"], "x", {"loss": "aux", "val_recall": "val"})
    assert found == {"loss": "aux", "val_recall": "val"}


def test_a_wrong_choice_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"--column must name one of step, epoch, loss, .*; got 'los'; .* 'loss'"):
        find_columns(["loss"], "x", {"los": "loss"})
    with pytest.raises(InputError, match=r"column 'trian/loss' for loss must be one of x .*did you mean 'train/loss'"):
        find_columns(["train/loss", "b"], "x", {"loss": "trian/loss"})


def test_a_log_without_a_loss_says_what_to_type() -> None:
    with pytest.raises(
        InputError, match=r"such as loss, total_loss, .*; got step, objective_value.*--column loss=NAME"
    ):
        find_columns(["step", "objective_value"], "x")
    many = [f"column {number}" for number in range(50)]
    with pytest.raises(InputError, match="column 19 and 30 more"):
        find_columns(many, "x")


def test_an_export_of_several_runs_is_refused() -> None:
    names = ["Step", "a - loss", "a - loss__MIN", "b - loss"]
    with pytest.raises(
        InputError, match=r"must be the log of one training; it has 2 columns of loss: a - loss, b - loss"
    ):
        find_columns(names, "x")
    assert find_columns(names[:3], "x") == {"step": "Step", "loss": "a - loss"}
    assert find_columns(names, "x", {"loss": "b - loss"})["loss"] == "b - loss"


def test_all_fields_have_names_and_names_have_parts() -> None:
    assert all(names_of(field) for field in FIELDS)
    assert PLACES == ("step", "epoch")
    assert parse_name("").quantity == ""
