"""Do the callbacks keep the protocols of Lightning and Hugging Face, with the real trainers where installed?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.live import callbacks
from lossscope.live.callbacks import LightningHooks, SentenceTransformersHooks, TrainerHooks, watch_arguments
from lossscope.live.logged_columns import LoggedColumns
from lossscope.live.monitor import LossScope

NTXENT = "ntxent:tau=0.05"


def scope(**options: Any) -> LossScope:
    return LossScope(NTXENT, ("cocos", "similarity"), **options)


def units(seed: int) -> Tensor:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
    return nn.functional.normalize(x)


class Module(nn.Module):
    """The part of a LightningModule that a callback uses."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[dict[str, float]] = []

    def log_dict(self, values: dict[str, float]) -> None:
        self.logged.append(values)


def test_neither_framework_is_imported_with_the_module() -> None:
    code = (
        "import sys, lossscope.live.callbacks\n"
        "print([m for m in ('transformers', 'lightning', 'pytorch_lightning') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_arguments_of_watch_are_taken_from_outputs() -> None:
    S, V, T = torch.eye(3), units(0), units(1)
    assert watch_arguments({"S": S, "loss": 1})["S"] is S  # type: ignore[index]
    assert watch_arguments(SimpleNamespace(similarity=S))["S"] is S  # type: ignore[index]
    both = watch_arguments({"logits_per_image": S, "image_embeds": V, "text_embeds": T})
    assert both is not None and both.keys() == {"images", "captions"}
    assert watch_arguments({"logits_per_image": S, "image_embeds": V})["S"] is S  # type: ignore[index]
    assert watch_arguments({"mine": S, "S": T}, "mine")["S"] is S  # type: ignore[index]
    texts = watch_arguments({"query_embeds": V, "document_embeds": T, "S": S})
    assert texts is not None and texts["queries"] is V and texts["documents"] is T
    items = watch_arguments({"embeddings": V, "labels": S[0]})
    assert items is not None and items.keys() == {"embeddings", "labels"}
    assert watch_arguments({"embeddings": V, "labels": S[0], "S": S}).keys() == {"S"}  # type: ignore[union-attr]
    assert (
        watch_arguments({"S": S}, "mine")
        is watch_arguments({"S": [1.0]})
        is watch_arguments(torch.ones(()))
        is watch_arguments(None)
        is None
    )


def test_lightning_logs_what_the_step_returned() -> None:
    hooks, module, S = LightningHooks(scope(every=2)), Module(), torch.eye(5)
    for step in range(1, 5):
        hooks.on_train_batch_end(SimpleNamespace(global_step=step), module, {"loss": S.sum(), "S": S}, None, step)
    assert hooks.scope.frame()["step"].tolist() == [2, 4]
    assert len(module.logged) == 2
    row = scope().watch(S)
    assert row is not None
    assert module.logged[0] == LoggedColumns("lossscope/").of(row)
    everything = LightningHooks(scope(), columns="all")
    everything.on_train_batch_end(SimpleNamespace(global_step=1), module, {"S": S}, None, 0)
    assert module.logged[-1] == {f"lossscope/{name}": value for name, value in row.items()}


def test_lightning_reads_an_attribute_of_the_module_by_its_name() -> None:
    hooks, module = LightningHooks(scope(), name="last_S", prefix=""), Module()
    module.last_S = torch.eye(5)
    hooks.on_train_batch_end(SimpleNamespace(global_step=1), module, torch.zeros(()), None, 0)
    assert module.logged[0]["i2t/s_pos"] == 1
    with pytest.raises(InputError, match="training_step must return, or leave on the module, last_S; it does not"):
        hooks.on_train_batch_end(SimpleNamespace(global_step=2), Module(), None, None, 0)


def test_batches_that_are_accumulated_to_one_step_are_one_step() -> None:
    hooks, module = LightningHooks(scope()), Module()
    for step in (0, 1, 1, 2, 2):
        hooks.on_train_batch_end(SimpleNamespace(global_step=step), module, {"S": torch.eye(5)}, None, 0)
    assert hooks.scope.frame()["step"].tolist() == [0, 1, 2]


class Towers(nn.Module):
    """Two linear towers that return what CLIP's model returns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image, self.text = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        V, T = nn.functional.normalize(self.image(x)), nn.functional.normalize(self.text(x))
        return {"image_embeds": V, "text_embeds": T, "logits_per_image": 20 * V @ T.T}


@pytest.fixture(name="handler")
def callback_handler() -> Any:
    """Return the Trainer's dispatcher around a callback, without the Trainer."""
    trainer_callback = pytest.importorskip("transformers.trainer_callback")
    callback = callbacks.hugging_face(scope())
    model = Towers()
    handler = trainer_callback.CallbackHandler(
        [trainer_callback.DefaultFlowCallback(), callback], model, None, None, None
    )
    state, control = trainer_callback.TrainerState(), trainer_callback.TrainerControl()
    never = dict.fromkeys(("logging_strategy", "eval_strategy", "save_strategy"), "no")
    args = SimpleNamespace(logging_first_step=False, eval_delay=0, **never)
    return SimpleNamespace(handler=handler, callback=callback, model=model, state=state, control=control, args=args)


def log(it: Any, logs: dict[str, float]) -> dict[str, float]:
    """Log as Trainer.log does."""
    it.state.log_history.append({**logs, "step": it.state.global_step})
    it.handler.on_log(it.args, it.state, it.control, logs)
    return logs


def test_the_trainers_dispatcher_brings_rows_into_its_logs(handler: Any) -> None:
    it, x = handler, units(0)
    it.handler.on_train_begin(it.args, it.state, it.control)
    for step in range(1, 4):
        it.handler.on_step_begin(it.args, it.state, it.control)
        out = it.model.train()(x + step)
        it.state.global_step = step
        with torch.no_grad():
            it.model.eval()(x)  # is no step
        it.handler.on_step_end(it.args, it.state, it.control)
    row = scope().watch(out["image_embeds"] @ out["text_embeds"].T)
    assert row is not None
    logs = log(it, {"loss": 1.0})
    assert logs["lossscope/i2t/s_pos"] == pytest.approx(row["i2t/s_pos"], rel=1e-5)
    assert it.state.log_history[-1] == {**logs, "step": 3}
    assert log(it, {"loss": 0.9}) == {"loss": 0.9}
    assert it.callback.scope.frame()["step"].tolist() == [1, 2, 3]
    it.handler.on_train_end(it.args, it.state, it.control)
    assert not it.model._forward_hooks


def test_rows_do_not_get_into_the_logs_of_an_evaluation(handler: Any) -> None:
    it = handler
    it.handler.on_train_begin(it.args, it.state, it.control)
    it.model.train()(units(0))
    it.handler.on_step_end(it.args, it.state, it.control)
    assert log(it, {"eval_loss": 1.0}) == {"eval_loss": 1.0}
    assert "lossscope/i2t/C_neg" in log(it, {"loss": 1.0})


def test_training_twice_registers_one_hook(handler: Any) -> None:
    it = handler
    for _ in range(2):
        it.handler.on_train_begin(it.args, it.state, it.control)
    assert len(it.model._forward_hooks) == 1


def test_a_model_that_returns_no_similarities_is_an_error() -> None:
    hooks, model = TrainerHooks(scope()), nn.Linear(4, 4)
    state = SimpleNamespace(global_step=1, log_history=[])
    hooks.on_train_begin(None, state, None, model=model)
    model.train()(units(0))
    with pytest.raises(
        InputError,
        match=(
            "the model must return S, similarity, logits_per_image, image_embeds and text_embeds, "
            "query_embeds and document_embeds or embeddings and labels when it trains"
        ),
    ):
        hooks.on_step_end(None, state, None)


def test_a_step_without_a_call_of_the_watched_loss_is_an_error() -> None:
    """A trainer with another loss than the callback's logged nothing and gave no warning."""
    hooks = SentenceTransformersHooks(LossScope(every=2), nn.Identity())
    for step in range(2):
        hooks.on_step_begin(None, SimpleNamespace(global_step=step), None)
        if step == 0:
            hooks.on_step_end(None, SimpleNamespace(global_step=step + 1), None)  # the callback skips this step
    with pytest.raises(InputError, match=r"a watched step must call the loss; .* use attach\(trainer, scope\)"):
        hooks.on_step_end(None, SimpleNamespace(global_step=2), None)


def test_no_graph_is_kept_between_forward_and_step() -> None:
    hooks, model = TrainerHooks(scope()), Towers()
    hooks.on_train_begin(None, None, None, model=model)
    model.train()(units(0))
    assert hooks._arguments is not None
    assert not any(tensor.requires_grad for tensor in hooks._arguments.values())


def test_a_training_that_ends_within_a_step_leaves_nothing_of_its_batch() -> None:
    """After Ctrl-C or an error its tensors stayed in memory, and the next training began with them."""
    hooks, model, state = TrainerHooks(scope()), Towers(), SimpleNamespace(global_step=0)
    hooks.on_train_begin(None, state, None, model=model)
    model.train()(units(0))
    assert hooks._arguments is not None
    hooks.on_train_end(None, state, None)
    assert hooks._arguments is None
    of_losses = SentenceTransformersHooks(LossScope(), {})
    of_losses.on_train_begin(None, state, None)
    of_losses.on_step_begin(None, state, None)
    assert of_losses._step == 1
    of_losses.on_train_end(None, state, None)
    assert of_losses._step is None and not of_losses._observed


def test_attach_puts_the_callback_before_those_that_log(handler: Any) -> None:
    trainer = SimpleNamespace(callback_handler=handler.handler)
    callback = callbacks.attach(trainer, scope())
    assert handler.handler.callbacks[0] is callback


@pytest.mark.parametrize(("name", "module"), [("hugging_face", "transformers"), ("lightning", "lightning")])
def test_a_framework_that_is_not_installed_is_named(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="this callback needs"):
        getattr(callbacks, name)(scope())


@pytest.mark.filterwarnings("ignore")
def test_a_real_trainer_of_clip_trains_to_the_same_bits_and_logs_rows(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    from transformers import CLIPConfig, CLIPModel, Trainer, TrainingArguments

    tower = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**tower, "vocab_size": 30, "max_position_embeddings": 8, "eos_token_id": 2, "bos_token_id": 1}
    config = CLIPConfig(text_config=text, vision_config={**tower, "image_size": 16, "patch_size": 8}, projection_dim=8)
    random = torch.Generator().manual_seed(0)
    data = [
        {
            "pixel_values": torch.randn(3, 16, 16, generator=random),
            "input_ids": torch.randint(3, 30, (8,), generator=random),
        }
        for _ in range(16)
    ]

    def collate(items: list[dict[str, Tensor]]) -> dict[str, Any]:
        return {**{name: torch.stack([item[name] for item in items]) for name in items[0]}, "return_loss": True}

    def train(*trainer_callbacks: Any) -> Any:
        torch.manual_seed(0)
        arguments = TrainingArguments(
            str(tmp_path), max_steps=4, per_device_train_batch_size=8, logging_steps=2, report_to=[], use_cpu=True,
            remove_unused_columns=False, save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(
            CLIPModel(config), arguments, train_dataset=data, data_collator=collate, callbacks=list(trainer_callbacks)
        )
        trainer.train()
        return trainer

    callback = callbacks.hugging_face(scope())
    watched, plain = train(callback), train()
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(tensor, watched.model.state_dict()[name])
    assert callback.scope.frame()["step"].tolist() == [1, 2, 3, 4]
    rows = [log["lossscope/i2t/s_pos"] for log in watched.state.log_history if "loss" in log]
    assert rows == callback.scope.frame()["i2t/s_pos"].tolist()[1::2]


@pytest.mark.filterwarnings("ignore")
def test_a_real_lightning_trainer_calls_the_callback(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tower = Towers()

        def training_step(self, batch: list[Tensor], index: int) -> dict[str, Tensor]:
            S = self.tower(batch[0])["logits_per_image"] / 20
            return {"loss": (S / 0.1).logsumexp(1).mean() - S.diag().mean() / 0.1, "S": S}

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24, 4)), 6)
    callback = callbacks.lightning(scope(every=2))
    trainer = lightning.Trainer(
        max_epochs=1, callbacks=[callback], logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(Model(), data)
    frame = callback.scope.frame()
    assert frame["step"].tolist() == [2, 4]
    assert float(trainer.logged_metrics["lossscope/i2t/s_pos"]) == pytest.approx(frame["i2t/s_pos"].iloc[-1])
