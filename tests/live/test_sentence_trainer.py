"""Does a real SentenceTransformerTrainer have the same weights, bit for bit, with the callback, and logged rows?"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.errors import InputError
from lossscope.live.callbacks import attach, sentence_transformers
from lossscope.live.monitor import LossScope
from lossscope.training.loss_module import Loss

library = pytest.importorskip("sentence_transformers")
losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
datasets = pytest.importorskip("datasets")
pytest.importorskip("accelerate")

from tests.lengths import thorough  # noqa: E402
from tests.live.tiny_sentences import sentence_model, texts  # noqa: E402 - after the skip

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, STEPS, BATCH = 48, 4, 8
OF_EVERY_RUN = ("ranking", "lossscope's", "cached hard", "gist", "cosent", "matryoshka, one dimension a step")


def pairs(negatives: int = 0) -> Any:
    names = ["anchor", "positive", *(f"negative_{k}" for k in range(negatives))]
    return datasets.Dataset.from_dict({name: texts(ROWS, seed) for seed, name in enumerate(names)})


def labelled(graded: bool = False) -> Any:
    labels = [(row * 7 % 11) / 10 if graded else row % 2 for row in range(ROWS)]
    return datasets.Dataset.from_dict({"first": texts(ROWS, 0), "second": texts(ROWS, 1), "label": labels})


def gist(model: Any, cached: bool = False) -> Any:
    guide = sentence_model(Path(model.guide_folder), seed=5)
    return losses.CachedGISTEmbedLoss(model, guide, mini_batch_size=4) if cached else losses.GISTEmbedLoss(model, guide)


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[], Any], str]] = {
    "ranking": (lambda m: losses.MultipleNegativesRankingLoss(m), lambda: pairs(1), "q2d/C_neg"),
    "cached": (
        lambda m: losses.CachedMultipleNegativesRankingLoss(m, mini_batch_size=4), lambda: pairs(3), "q2d/C_neg",
    ),
    "lossscope's": (lambda m: Loss("unified:gamma=60").for_sentence_transformers(m), lambda: pairs(1), "d2q/C_neg"),
    "lossscope's goal": (lambda m: Loss("goal").for_sentence_transformers(m), pairs, "q2d/C_neg"),
    "symmetric": (
        lambda m: losses.MultipleNegativesRankingLoss(
            m, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
        ), pairs, "d2q/C_neg",
    ),
    "hard": (
        lambda m: losses.MultipleNegativesRankingLoss(m, hardness_mode="hard_negatives", hardness_strength=5.0),
        lambda: pairs(1), "q2d/C_neg",
    ),
    "cached hard": (
        lambda m: losses.CachedMultipleNegativesRankingLoss(
            m, mini_batch_size=4, hardness_mode="all_negatives", hardness_strength=5.0
        ), lambda: pairs(1), "q2d/C_neg",
    ),
    "gist": (gist, lambda: pairs(1), "q2d/masked"),
    "cached gist": (lambda m: gist(m, cached=True), pairs, "q2d/masked"),
    "cosent": (lambda m: losses.CoSENTLoss(m), lambda: labelled(graded=True), "pairs/in_order"),
    "angle": (lambda m: losses.AnglELoss(m), lambda: labelled(graded=True), "pairs/in_order"),
    "contrastive": (lambda m: losses.ContrastiveLoss(m), labelled, "pairs/active_neg"),
    "online": (lambda m: losses.OnlineContrastiveLoss(m), labelled, "pairs/active_neg"),
    "cosine": (lambda m: losses.CosineSimilarityLoss(m), lambda: labelled(graded=True), "pairs/s_pos"),
    "matryoshka": (
        lambda m: losses.MatryoshkaLoss(m, losses.MultipleNegativesRankingLoss(m), [32, 16]), pairs, "dim16/q2d/C_neg",
    ),
    "matryoshka cached": (
        lambda m: losses.MatryoshkaLoss(m, losses.CachedMultipleNegativesRankingLoss(m, mini_batch_size=4), [32, 16]),
        pairs, "dim16/q2d/C_neg",
    ),
    "matryoshka, one dimension a step": (
        lambda m: losses.MatryoshkaLoss(m, losses.MultipleNegativesRankingLoss(m), [32, 16], n_dims_per_step=1),
        pairs, "finite",
    ),
}  # fmt: skip


def train(
    folder: Path,
    loss_of: Callable[[Any], Any],
    data: Any,
    scope: LossScope | None = None,
    columns: Any = "main",
    **options: Any,
) -> Any:
    """Train a new model for a few steps, with dropout; return the trainer."""
    model = sentence_model(folder / "model")
    object.__setattr__(model, "guide_folder", str(folder / "guide"))
    torch.manual_seed(0)
    arguments = library.SentenceTransformerTrainingArguments(
        str(folder / "out"), max_steps=STEPS, per_device_train_batch_size=BATCH, logging_steps=2, report_to=[],
        use_cpu=True, save_strategy="no", disable_tqdm=True, learning_rate=1e-2, seed=3, **options,
    )  # fmt: skip
    loss = loss_of(model)
    trainer = library.SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
    if scope is not None:
        attach(trainer, scope, columns=columns)
    trainer.train()
    return trainer


def logged(trainer: Any) -> list[dict[str, float]]:
    """Return the rows of lossscope in a trainer's history, without the prefix."""
    rows = [log for log in trainer.state.log_history if "loss" in log]
    return [{name[10:]: x for name, x in log.items() if name.startswith("lossscope/")} for log in rows]


def require_same_bits(watched: Any, plain: Any) -> None:
    """Assert equal weights and equal losses in the logs."""
    theirs = plain.model.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in watched.model.state_dict().items())
    mine, other = ([log["loss"] for log in trainer.state.log_history if "loss" in log] for trainer in (watched, plain))
    assert mine == other and len(mine) == 2


@pytest.mark.parametrize("case", [*OF_EVERY_RUN, *thorough(*(case for case in CASES if case not in OF_EVERY_RUN))])
def test_training_is_the_same_bit_for_bit_and_rows_are_logged(case: str, tmp_path: Path) -> None:
    loss_of, data, column = CASES[case]
    scope = LossScope()
    watched = train(tmp_path, loss_of, data(), scope)
    after = torch.rand(1)
    plain = train(tmp_path, loss_of, data())
    assert torch.equal(after, torch.rand(1))
    require_same_bits(watched, plain)
    assert scope.frame()["step"].tolist() == [1, 2, 3, 4]
    assert scope.frame()["finite"].tolist() == [1, 1, 1, 1]
    columns = [column] if column in {"finite", "pairs/active_neg"} else []  # logged on request
    assert not any(name in log for name in columns for log in logged(watched))
    assert columns or all(math.isfinite(log[column]) for log in logged(watched))
    assert all(math.isfinite(x) for x in scope.frame()[column])
    gaps = [x for row in scope.history for name, x in row.items() if name.endswith("loss_gap")]
    assert all(x < 1e-5 for x in gaps)
    assert bool(gaps) == (not column.startswith("pairs") and "hard" not in case and not case.startswith("lossscope"))
    assert "forward" not in vars(watched.loss)


@pytest.mark.parametrize("doctor", [False, True])
def test_a_step_logs_six_columns_all_are_logged_on_request_and_training_ends_with_a_summary(
    doctor: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step had 23 keys."""
    few, everything = (LossScope(doctor=doctor) for _ in range(2))
    short = train(tmp_path, losses.MultipleNegativesRankingLoss, pairs(), few)
    long = train(tmp_path, losses.MultipleNegativesRankingLoss, pairs(), everything, columns="all")
    require_same_bits(short, long)
    six = {"q2d/C_neg", "q2d/N_eff", "q2d/s_pos", "q2d/s_neg", "q2d/inverted", "loss_gap"}
    read = six | ({"loss"} if doctor else set())
    assert [set(log) for log in logged(short)] == [read, read]
    assert all(set(log) == {*everything.frame()} - {"step"} and len(log) == 23 for log in logged(long))
    assert all(log.items() <= full.items() for log, full in zip(logged(short), logged(long), strict=True))
    told = capsys.readouterr().err
    assert told.count("lossscope: 4 steps were watched") == 2 and few.summary() in told
    assert ("doctor: no finding" in told) == doctor and ("LossScope(..., doctor=True)" in told) != doctor


def test_the_callback_is_given_to_the_trainer_too_and_skips_steps(tmp_path: Path) -> None:
    model = sentence_model(tmp_path / "model")
    loss = losses.MultipleNegativesRankingLoss(model)
    scope = LossScope("infonce:tau=0.05", ("similarity",), every=3)
    arguments = library.SentenceTransformerTrainingArguments(
        str(tmp_path / "out"), max_steps=STEPS, per_device_train_batch_size=BATCH, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    trainer = library.SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=pairs(), eval_dataset=pairs(), loss=loss,
        callbacks=[sentence_transformers(scope, loss)],
    )  # fmt: skip
    trainer.train()
    trainer.evaluate()
    assert scope.frame()["step"].tolist() == [3]
    assert [column for column in scope.frame() if column.startswith("q2d")]


def test_losses_of_several_data_sets_have_their_names(tmp_path: Path) -> None:
    data = {"nli": pairs(), "sts": labelled(graded=True), "quora": pairs(1)}

    def loss_of(model: Any) -> Any:
        ranking = losses.MultipleNegativesRankingLoss(model)
        return {"nli": ranking, "sts": losses.CoSENTLoss(model), "quora": ranking}

    scope = LossScope(probes=("similarity",))
    watched = train(tmp_path, loss_of, datasets.DatasetDict(data), scope, multi_dataset_batch_sampler="round_robin")
    plain = train(tmp_path, loss_of, datasets.DatasetDict(data), multi_dataset_batch_sampler="round_robin")
    require_same_bits(watched, plain)
    columns = {name.rpartition("/")[0] for name in scope.frame() if "/" in name}
    assert columns == {"nli+quora/q2d", "nli+quora", "sts/pairs"}
    assert {name for log in watched.state.log_history for name in log if "in_order" in name} == {
        "lossscope/sts/pairs/in_order"
    }


def test_the_last_batch_of_accumulated_ones_is_watched(tmp_path: Path) -> None:
    def loss_of(model: Any) -> Any:
        return losses.MultipleNegativesRankingLoss(model)

    scope = LossScope()
    watched = train(tmp_path, loss_of, pairs(), scope, gradient_accumulation_steps=2)
    require_same_bits(watched, train(tmp_path, loss_of, pairs(), gradient_accumulation_steps=2))
    assert scope.frame()["step"].tolist() == [1, 2, 3, 4]


def test_a_loss_that_cannot_be_read_is_refused_before_the_first_step(tmp_path: Path) -> None:
    def loss_of(model: Any) -> Any:
        return losses.TripletLoss(model)

    with pytest.raises(InputError, match="TripletLoss has no readable weights on similarities"):
        train(tmp_path, loss_of, pairs(1), LossScope())
    scope = LossScope("triplet", ("cocos",))
    train(tmp_path, loss_of, pairs(1), scope)
    assert "q2d/C_q" in scope.frame()


def test_a_function_that_builds_the_loss_needs_attach(tmp_path: Path) -> None:
    hooks = sentence_transformers(LossScope(), {"nli": losses.MultipleNegativesRankingLoss})
    with pytest.raises(InputError, match=r"must be a module when training begins; got type.* attach\(trainer, scope\)"):
        hooks.on_train_begin(None, None, None)
    scope = LossScope()
    model = sentence_model(tmp_path / "model")
    arguments = library.SentenceTransformerTrainingArguments(
        str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=BATCH, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = library.SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=pairs(), loss=lambda m: losses.MultipleNegativesRankingLoss(m)
    )
    attach(trainer, scope)
    trainer.train()
    assert len(scope.history) == 1
