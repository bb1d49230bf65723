"""Do trainers tell each callback their number of steps, so that lossscope examines a short training in time?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from lossscope.live.callbacks import LightningHooks, SentenceTransformersHooks, TrainerHooks
from lossscope.live.doctor_options import DoctorOptions
from lossscope.live.monitor import LossScope

from .short_trainings import Encoder, Training, both_sides, softmax_loss, trained_encoder

STEPS, BATCH = 40, 32


class Towers(nn.Module):
    """The encoder of both sides, as a model of transformers that computes its loss itself."""

    def __init__(self, tau: float = 0.05) -> None:
        super().__init__()
        self.encoder, self.tau = Encoder(), tau
        self.encoder.load_state_dict(trained_encoder().state_dict())

    def forward(self, query: torch.Tensor, document: torch.Tensor, **_: Any) -> dict[str, torch.Tensor]:
        Q, D = self.encoder(query), self.encoder(document)
        return {"loss": softmax_loss(Q @ D.T, self.tau), "query_embeds": Q, "document_embeds": D}


def scope(tau: float) -> LossScope:
    return LossScope(f"ntxent:tau={tau}", ("similarity",), doctor=True)


def expected(watched: LossScope) -> int | None:
    assert watched._safeguards.doctor is not None
    return watched._safeguards.doctor._expected


def test_the_state_of_a_trainer_says_the_steps_and_those_that_are_done() -> None:
    for state, args, left in (
        (SimpleNamespace(max_steps=40, global_step=0), None, 40),
        (SimpleNamespace(max_steps=40, global_step=10), None, 30),
        (SimpleNamespace(max_steps=0, global_step=0), SimpleNamespace(max_steps=20), 20),
        (SimpleNamespace(max_steps=0, global_step=0), SimpleNamespace(max_steps=-1), None),
        (None, None, None),
    ):
        for hooks in (TrainerHooks(scope(0.05)), SentenceTransformersHooks(LossScope(doctor=True), {})):
            hooks.on_train_begin(args, state, None, model=nn.Linear(2, 2))
            assert expected(hooks.scope) == left


def test_lightning_says_the_steps_where_it_knows_them() -> None:
    for steps, left in ((40, 36), (float("inf"), None), (-1, None)):
        hooks = LightningHooks(scope(0.05))
        hooks.on_train_start(SimpleNamespace(estimated_stepping_batches=steps, global_step=4), None)
        assert expected(hooks.scope) == left


def test_the_learning_rate_of_each_step_is_read_from_the_optimiser() -> None:
    hooks, model, state = TrainerHooks(scope(0.05)), Towers(), SimpleNamespace(global_step=0, max_steps=5)
    optimiser = torch.optim.SGD(model.parameters(), 0.25)
    hooks.on_train_begin(None, state, None, model=model)
    first, second = both_sides()
    hooks.on_step_begin(None, state, None, optimizer=optimiser)
    model(first[:16], second[:16])
    hooks.on_step_end(None, SimpleNamespace(global_step=1), None)
    assert hooks.scope._safeguards.doctor is not None
    (kind,) = hooks.scope._safeguards.doctor._kinds.values()
    assert kind.history.newest(1)["lr"].tolist() == [0.25]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("tau", "shift", "found"), [(0.05, 0, None), (1.0, 0, "temperature-too-high"),
                                                     (0.05, 1, "no-learning")])  # fmt: skip
def test_a_real_trainer_of_40_steps_is_diagnosed_by_default(
    tau: float, shift: int, found: str | None, tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    from lossscope.live.callbacks import attach

    first, second = both_sides()
    second = second.roll(shift, 0)
    data = [{"query": first[row], "document": second[row]} for row in range(STEPS * BATCH)]
    arguments = transformers.TrainingArguments(
        str(tmp_path), num_train_epochs=1, per_device_train_batch_size=BATCH, report_to=[], use_cpu=True,
        remove_unused_columns=False, save_strategy="no", disable_tqdm=True, learning_rate=1e-4, seed=0,
    )  # fmt: skip
    trainer = transformers.Trainer(Towers(tau), arguments, train_dataset=data)
    attach(trainer, watched := scope(tau))
    trainer.train()
    assert [event.id for event in watched.events][:1] == ([found] if found else [])
    assert watched.examined.steps == (1, STEPS)
    assert not {"temperature-too-low", "misaligned-pairs", "complete-collapse"} & set(watched.examined.not_yet)


def test_a_number_of_the_user_wins() -> None:
    watched = LossScope("ntxent", ("similarity",), doctor=DoctorOptions(max_steps=80))
    hooks = TrainerHooks(watched)
    hooks.on_train_begin(None, SimpleNamespace(max_steps=40, global_step=0), None, model=nn.Linear(2, 2))
    assert expected(watched) == 80


def test_every_nth_step_counts_for_n() -> None:
    watched = LossScope("ntxent:tau=1.0", ("similarity",), every=4, doctor=True)
    watched.begin(4 * STEPS)
    Training(tau=1.0).run(watched, 4 * STEPS)
    assert {event.id for event in watched.events} == {"temperature-too-high"}
