"""Map each name of the field to the names that trainers use for it, the best first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .name_parts import Direction, NameParts, Split, normal_name, parse_name

INVERSE = frozenset({"tau", "temperature", "temp", "learned_temperature", "learnt_temperature"})
"""Quantities that are 1 / logit_scale."""
LOGARITHM = frozenset({"t_prime", "log_logit_scale", "logit_scale_log", "log_scale", "log_temperature"})
"""Quantities that are ln(logit_scale), or its negative."""
_LOSSES = (
    *("loss", "total_loss", "loss_total", "contrastive_loss", "clip_loss", "siglip_loss", "infonce_loss"),
    *("info_nce_loss", "infonce", "nt_xent_loss", "ntxent_loss", "ntxent", "itc_loss", "loss_itc", "triplet_loss"),
    *("running_loss", "mean_loss", "loss_mean", "batch_loss", "epoch_loss"),
)
_ACCURACIES = (
    *("acc", "accuracy", "acc@1", "accuracy@1", "top@1", "contrastive_acc", "contrastive_accuracy", "clip_acc"),
    *("clip_accuracy", "in_batch_acc", "in_batch_accuracy", "batch_acc", "batch_accuracy"),
    *(r"top@\d+_categorical_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"),
    *(r"accuracy_cos\w*", "triplet_accuracy", "prec@1", "precision@1", "rank_1", "rank@1"),
)
_RECALLS = ("r@1", "recall@1", "recall", "mean_recall", "r_mean", "rmean", "r@5", "recall@5", "r@10", "recall@10")
_OTHER_TASKS = frozenset({"zeroshot", "imagenet"})  # of a validation, beside retrieval
_SCORES = (
    *(
        "rsum",
        "r_sum",
        "recall_sum",
        "ndcg@10",
        "ndcg",
        "ap",
        "average_precision",
        *_RECALLS,
        "mrr@10",
        "mrr",
        "map@100",
        "map@10",
        "map",
    ),
    *("spearman", r"spearman_\w+", "pearson", r"pearson_\w+"),
)


@dataclass(frozen=True)
class ColumnNames:
    """The names that mean one column."""

    quantities: tuple[str, ...]  # the best first; a regular expression
    splits: tuple[Split, ...] = ("", "train")
    direction: Direction | None = ""  # None: any, or without a direction
    with_prefix: bool = False  # whether words may precede the quantity, such as the name of a data set

    def rank(self, parts: NameParts) -> tuple[int, ...] | None:
        """Return the rank of a name, the smaller the better; None where it means something else."""
        if parts.split not in self.splits or (self.direction is not None and parts.direction != self.direction):
            return None
        for position, quantity in enumerate(self.quantities):
            match = re.fullmatch(rf"(?:(?P<prefix>\w+)_)?(?:{quantity})", parts.quantity)
            prefix = match["prefix"] if match else None
            words = prefix.split("_") if prefix else []
            if match and (self.with_prefix or not words) and _OTHER_TASKS.isdisjoint(words):
                is_one_of_many = bool(words) and "mean" not in words
                return (int(is_one_of_many), position, int(parts.direction == "second"), len(words), *parts.preference)
        return None


_NAMES: Mapping[str, ColumnNames] = {
    "loss": ColumnNames(_LOSSES),
    "lr": ColumnNames(("lr", "learning_rate", r"lr_\w+", r"learning_rate_\w+")),
    "grad_norm": ColumnNames(
        (
            *("grad_norm", "gradient_norm", "total_norm", "total_grad_norm", "grad_norm_total", "global_grad_norm"),
            *("gnorm", "global_norm", "grad_total_norm", r"grad_2_0_norm_total"),
        )
    ),
    "logit_scale": ColumnNames(
        (
            *("logit_scale", "logit_scale_exp", "scale", "clip_scale", "inverse_temperature", "inv_temperature"),
            *sorted(INVERSE),
            *sorted(LOGARITHM),
        )
    ),
    "logit_bias": ColumnNames(("logit_bias", "bias")),
    "positive": ColumnNames(
        (
            *("positive", "s_pos", "pos_mean", "mean_pos", "positive_mean", "pos_sim", "sim_pos", "positive_sim"),
            *("positive_similarity", "pos_similarity", "pos_cos", "mean_pos_sim", "pos_sim_mean"),
        ),
        direction=None,
    ),
    "hardest_negative": ColumnNames(
        (
            *("hardest_negative", "s_neg", "hard_neg", "hardest_neg", "hard_negative", "hardest_negative_similarity"),
            *("hard_neg_sim", "hardest_neg_sim", "neg_max", "max_neg", "neg_mean", "mean_neg", "negative_mean"),
            *("neg_sim", "sim_neg", "negative_sim", "negative_similarity", "neg_similarity", "neg_cos", "neg_sim_mean"),
        ),
        direction=None,
    ),
    "train_recall": ColumnNames((*_RECALLS, *_ACCURACIES), ("train",), None),
    "counted_negatives": ColumnNames(("c_neg",), direction=None),
    "val_loss": ColumnNames(_LOSSES, ("val",), with_prefix=True),
    "val_recall": ColumnNames((*_SCORES, *_ACCURACIES), ("val",), with_prefix=True),
    "val_recall_first": ColumnNames((*_RECALLS, *_ACCURACIES), ("val", ""), "first", with_prefix=True),
    "val_recall_second": ColumnNames((*_RECALLS, *_ACCURACIES), ("val", ""), "second", with_prefix=True),
    "val_train_recall": ColumnNames((*_SCORES, *_ACCURACIES), ("val_train",), None, with_prefix=True),
}
_WITHOUT_SPLIT: Mapping[str, ColumnNames] = {
    "train_recall": ColumnNames(_ACCURACIES, ("",)),
    "val_recall": ColumnNames(_SCORES, ("",)),
}
_PLACES = {
    "step": (
        *("global_step", "step", "iteration", "iterations", "iter", "it", "n_iter", "num_updates", "update"),
        *("updates", "steps", "batch", "batch_idx", "trainer_global_step"),
    ),
    "epoch": ("epoch", "epochs"),
}
PLACES = tuple(_PLACES)
READ = tuple(_NAMES)
"""Names of the field that are read from a log, beside its steps and epochs."""


def rank_name(field: str, name: str) -> tuple[int, ...] | None:
    """Return the rank of a column's name for a name of the field, the smaller the better; None where it does not fit.

    Args:
        field: `step`, `epoch`, `loss`, ...
        name: of a column of a log.
    """
    if field in _PLACES:
        bare = normal_name(name).removeprefix("training_").removeprefix("train_")
        return (_PLACES[field].index(bare),) if bare in _PLACES[field] else None
    parts = parse_name(name)
    rank = _NAMES[field].rank(parts)
    if rank is None and field in _WITHOUT_SPLIT:
        rank = _WITHOUT_SPLIT[field].rank(parts)
    return rank


def names_of(field: str) -> tuple[str, ...]:
    """Return the quantities that a name of the field may have in a log, the best first."""
    return _PLACES[field] if field in _PLACES else _NAMES[field].quantities
