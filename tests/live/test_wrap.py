"""Does `wrap` leave functions and modules as they are, and read open_clip's layout of several processes?"""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid

from lossscope.core.similarity import normalise
from lossscope.errors import InputError, SpecError
from lossscope.live.monitor import LossScope
from tests.farm import run_ranks

B, WIDTH = 6, 4


def units(seed: int, rows: int = B) -> Tensor:
    return normalise(torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed))).requires_grad_()


def of_s(S: Tensor) -> Tensor:
    return cross_entropy(S / 0.1, torch.arange(len(S)))


def of_embeddings(a: Tensor, b: Tensor) -> Tensor:
    return of_s(normalise(a) @ normalise(b).T)


class ClipLoss(nn.Module):
    """The parts of open_clip's class that lossscope reads, rewritten: logits of this process against all."""

    def __init__(self, local_loss: bool = False, rank: int = 0, world_size: int = 1) -> None:
        super().__init__()
        self.local_loss, self.rank, self.world_size = local_loss, rank, world_size
        self.others: tuple[Tensor, Tensor] | None = None  # features of all processes

    def get_logits(
        self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor, logit_bias: Any = None
    ) -> Any:
        images, texts = self.others or (image_features, text_features)
        if self.local_loss:
            of_images, of_texts = logit_scale * image_features @ texts.T, logit_scale * text_features @ images.T
        else:
            of_images = logit_scale * images @ texts.T
            of_texts = of_images.T
        return (of_images, of_texts) if logit_bias is None else (of_images + logit_bias, of_texts + logit_bias)

    def forward(
        self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor, logit_bias: Any = None,
        output_dict: bool = False,
    ) -> Any:  # fmt: skip
        of_images, of_texts = self.get_logits(image_features, text_features, logit_scale, logit_bias)
        target = torch.arange(len(of_images)) + (self.rank * len(of_images) if self.local_loss else 0)
        loss = (cross_entropy(of_images, target) + cross_entropy(of_texts, target)) / 2
        return {"contrastive_loss": loss} if output_dict else loss


class SigLipLoss(nn.Module):
    """The parts of open_clip's class that lossscope reads, rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Tensor] = []  # texts of other processes

    def get_logits(
        self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor, logit_bias: Tensor
    ) -> Tensor:
        return logit_scale * image_features @ text_features.T + logit_bias

    def forward(self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor, logit_bias: Tensor) -> Tensor:
        loss = torch.zeros(())
        for index, texts in enumerate([text_features, *self.received]):
            logits = self.get_logits(image_features, texts, logit_scale, logit_bias)
            signs = 2 * torch.eye(len(logits)) - 1 if index == 0 else -torch.ones_like(logits)
            loss = loss - logsigmoid(signs * logits).sum() / len(logits)
        return loss


SCALE, BIAS = torch.tensor(14.0), torch.tensor(-5.0)


def test_a_loss_of_s_and_one_of_embeddings_are_watched_as_they_are_called() -> None:
    scopes = LossScope(probes=("cocos",)), LossScope(probes=("cocos",)), LossScope("ntxent:tau=0.1", ("cocos",))
    a, b = units(0), units(1)
    values = [scopes[0].wrap(of_s)(a @ b.T), scopes[1].wrap(of_embeddings)(a, b)]
    scopes[2].wrap(of_embeddings)(a, b=b)
    assert torch.equal(values[0], of_s(a @ b.T)) and torch.equal(values[1], of_embeddings(a, b))
    rows = [scope.history[-1] for scope in scopes]
    assert rows[0]["i2t/C_neg"] == rows[1]["i2t/C_neg"] == rows[2]["i2t/C_neg"]
    assert "t2i/C_neg" in rows[2] and "t2i/C_neg" not in rows[0]


def test_sides_name_the_directions_of_a_loss() -> None:
    scope = LossScope(probes=("cocos", "similarity"), sides=("query", "document"))
    scope.wrap(of_embeddings)(units(0), units(1))
    assert "q2d/C_neg" in scope.history[-1] and "d2q/s_pos" in scope.history[-1]


def test_training_is_the_same_bit_for_bit() -> None:
    def train(scope: LossScope | None) -> Tensor:
        torch.manual_seed(0)
        net, scale = nn.Sequential(nn.Linear(WIDTH, 8), nn.Dropout(0.2)), nn.Parameter(torch.tensor(2.0))
        loss: Any = ClipLoss() if scope is None else scope.wrap(ClipLoss())
        optimizer = torch.optim.SGD([*net.parameters(), scale], 0.1)
        for step in range(3):
            a, b = (normalise(net(units(2 * step + side).detach())) for side in (0, 1))
            optimizer.zero_grad()
            loss(a, b, scale.exp()).backward()
            optimizer.step()
        return torch.cat([*(p.detach().flatten() for p in net.parameters()), scale.detach()[None], torch.rand(1)])

    scope = LossScope()
    assert torch.equal(train(scope), train(None))
    assert len(scope.history) == 3


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("rank", [0, 2])
def test_clip_loss_is_ntxent_at_the_scale_of_the_step(local: bool, rank: int) -> None:
    images, texts = units(0, 3 * B), units(1, 3 * B)
    share = slice(rank * B, rank * B + B)
    loss = ClipLoss(local, rank, 3)
    loss.others = images, texts
    scope = LossScope(probes=("cocos", "similarity"))
    value = scope.wrap(loss)(images[share], texts[share], SCALE, output_dict=True)["contrastive_loss"]
    row = scope.history[-1]
    assert row["loss"] == float(value.detach()) and row["loss_gap"] < 1e-6
    whole = LossScope(f"ntxent:tau={1 / 14}", ("cocos", "similarity")).watch(images @ texts.T)
    assert whole is not None
    if not local:
        assert row["i2t/C_neg"] == pytest.approx(whole["i2t/C_neg"])
        return
    each = [rows_of(images, texts, part) for part in range(3)]
    assert sum(part["i2t/s_pos"] for part in each) / 3 == pytest.approx(whole["i2t/s_pos"], rel=1e-5)
    assert sum(part["t2i/C_neg"] for part in each) / 3 == pytest.approx(whole["t2i/C_neg"], rel=1e-5)
    own_value = {name: row[name] for name in ("step", "loss", "loss_gap")}
    assert row == pytest.approx({**each[rank], **own_value}, rel=1e-4, abs=1e-6)


def rows_of(images: Tensor, texts: Tensor, rank: int) -> dict[str, float]:
    share = slice(rank * B, rank * B + B)
    scope = LossScope(f"ntxent:tau={1 / 14}", ("cocos", "similarity"))
    row = scope.watch(images[share] @ texts.T, offset=rank * B, S_second=texts[share] @ images.T)
    assert row is not None
    return row


def test_a_bias_is_taken_off_and_siglip_is_siglip() -> None:
    a, b = units(0), units(1)
    scope = LossScope(probes=("similarity",))
    scope.wrap(ClipLoss())(a, b, SCALE, BIAS)
    assert scope.history[-1]["i2t/s_pos"] == pytest.approx(float((a * b).sum(1).mean().detach()), rel=1e-5)
    assert scope.history[-1]["loss_gap"] < 1e-6
    scope = LossScope(probes=("cocos", "similarity"))
    scope.wrap(SigLipLoss())(a, b, SCALE, BIAS)
    ours = LossScope("siglip:scale=14,bias=-5", ("cocos", "similarity")).watch(a @ b.T)
    assert ours is not None and scope.history[-1]["loss_gap"] < 1e-6
    assert {k: v for k, v in scope.history[-1].items() if "/" in k} == pytest.approx(
        {k: v for k, v in ours.items() if "/" in k}, rel=1e-4
    )
    loss = SigLipLoss()
    loss.received = [units(2).detach()]
    scope = LossScope(probes=("similarity",))
    scope.wrap(loss)(a, b, SCALE, BIAS)
    rows = LossScope("siglip", ("similarity",)).watch(a @ torch.cat([b, loss.received[0]]).T, offset=0)
    assert rows is not None and "t2i/s_pos" not in scope.history[-1] and "t2i/s_pos" not in rows
    assert scope.history[-1]["i2t/s_neg"] == pytest.approx(rows["i2t/s_neg"], rel=1e-5)


class Features(nn.Module):
    """A loss of features and their scale; it hides its logits."""

    def forward(self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor) -> Tensor:
        S = logit_scale * image_features @ text_features.T
        target = torch.arange(len(S))
        return (cross_entropy(S, target) + cross_entropy(S.T, target)) / 2


def test_a_loss_of_features_is_measured_at_the_scale_of_the_step() -> None:
    a, b = units(0), units(1)
    scope = LossScope(probes=("cocos:unit=cosine",))
    loss = scope.wrap(Features())
    for scale in (5.0, 20.0):
        loss(a, b, torch.tensor(scale))
        both = LossScope(
            lambda S, scale=scale: Features()(S, torch.eye(len(S), dtype=S.dtype), scale), ("cocos:unit=cosine",)
        )
        expected = both.watch(a @ b.T)
        assert expected is not None
        assert scope.history[-1]["both/W_neg"] == pytest.approx(expected["both/W_neg"], rel=1e-4)


def sigmoid_loss(a: Tensor, b: Tensor, scale: Any, bias: Any) -> Tensor:
    logits = scale * a @ b.T + bias
    return -logsigmoid((2 * torch.eye(len(a)) - 1) * logits).sum() / len(a)


class Biased(nn.Module):
    """A loss of features whose bias has a default."""

    def forward(
        self, image_features: Tensor, text_features: Tensor, logit_scale: Any, logit_bias: Any = None
    ) -> Tensor:
        return sigmoid_loss(image_features, text_features, logit_scale, 0.0 if logit_bias is None else logit_bias)


class BiasedByNumber(nn.Module):
    """The same loss with the bias 0."""

    def forward(self, image_features: Tensor, text_features: Tensor, logit_scale: Any, logit_bias: Any = 0.0) -> Tensor:
        return sigmoid_loss(image_features, text_features, logit_scale, logit_bias)


def biased_function(image_features: Tensor, text_features: Tensor, logit_scale: Any, logit_bias: Any = None) -> Tensor:
    return sigmoid_loss(image_features, text_features, logit_scale, 0.0 if logit_bias is None else logit_bias)


class BiasFirst(nn.Module):
    """A loss with its bias at another position than ours."""

    def forward(
        self, image_features: Tensor, text_features: Tensor, logit_bias: Any = None, logit_scale: Any = 1.0
    ) -> Any:
        return sigmoid_loss(image_features, text_features, logit_scale, 0.0 if logit_bias is None else logit_bias)


@pytest.mark.parametrize("loss", [Biased(), BiasedByNumber(), biased_function])
def test_a_bias_that_has_a_default_counts_where_the_call_gives_one(loss: Any) -> None:
    scope = LossScope(probes=("cocos:unit=cosine",))
    watched, expected = scope.wrap(loss), []
    for bias in (None, BIAS):
        watched(units(0), units(1), SCALE, **({} if bias is None else {"logit_bias": bias}))
        ours = LossScope(f"siglip:scale=14,bias={0.0 if bias is None else float(bias)}", ("cocos:unit=cosine",))
        expected.append(ours.watch(units(0) @ units(1).T))
    for row, other in zip(scope.history, expected, strict=True):
        assert other is not None and row["i2t/W_neg"] == pytest.approx(other["i2t/W_neg"], rel=1e-4)
    assert scope.history[0]["i2t/W_neg"] > 1.5 * scope.history[1]["i2t/W_neg"]


def test_a_bias_that_could_not_be_passed_on_is_refused() -> None:
    watched = LossScope(probes=("cocos",)).wrap(BiasFirst())
    with pytest.raises(InputError, match="logit_scale and logit_bias of BiasFirst must be its third and fourth"):
        watched(units(0), units(1), BIAS, SCALE)


def test_arguments_by_name_are_those_parameters_in_any_order() -> None:
    a, b = units(0), units(1)

    def one_sided(a: Tensor, b: Tensor) -> Tensor:
        return of_embeddings(a, b)

    rows = []
    for arguments in ({"a": a, "b": b}, {"b": b, "a": a}):
        scope = LossScope("ntxent:tau=0.1", ("cocos",))
        scope.wrap(one_sided)(**arguments)
        rows.append({name: x for name, x in scope.history[0].items() if "/" in name})
    assert rows[0] == rows[1] and rows[0]["i2t/C_neg"] != rows[0]["t2i/C_neg"]
    scope = LossScope(probes=("cocos:unit=cosine",))
    watched = scope.wrap(Biased())
    watched(a, b, SCALE)
    watched(logit_bias=None, logit_scale=SCALE, text_features=b, image_features=a)
    first, second = ({name: x for name, x in row.items() if name != "step"} for row in scope.history)
    assert first == second


def test_what_a_partial_has_fixed_is_not_taken_for_the_similarities() -> None:
    def scaled(tau: Tensor, S: Tensor) -> Tensor:
        return cross_entropy(S / tau, torch.arange(len(S)))

    scaled.lossscope_takes = "S"  # type: ignore[attr-defined]
    S = (units(0) @ units(1).T).detach().requires_grad_()
    scope, expected = LossScope("ntxent:tau=0.1", ("cocos",)), LossScope("ntxent:tau=0.1", ("cocos",))
    scope.wrap(partial(scaled, tau=torch.tensor(0.1)))(S=S)
    expected.wrap(of_s)(S)
    assert scope.history[0]["i2t/C_neg"] == expected.history[0]["i2t/C_neg"]


def test_a_loss_of_features_without_a_scale_is_refused_as_its_own() -> None:
    def unscaled(image_features: Tensor, text_features: Tensor, logit_scale: Any = None) -> Tensor:
        return of_embeddings(image_features, text_features)

    with pytest.raises(InputError, match="unscaled must be called with a logit_scale to be watched; got none"):
        LossScope(probes=("cocos",)).wrap(unscaled)(units(0), units(1))


class Projected(nn.Module):
    """A loss with a weight, a temperature and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.tau = nn.Parameter(torch.ones(())), 0.1
        self.register_buffer("shift", torch.zeros(()))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return cross_entropy(self.weight * normalise(a) @ normalise(b).T / self.tau + self.shift, torch.arange(len(a)))


def test_attributes_of_a_loss_are_written_and_deleted_through_its_wrapper() -> None:
    loss = Projected()
    watched, plain = LossScope().wrap(loss), Projected()
    for module in (watched, plain):
        module.tau = 0.5
        module.weight = nn.Parameter(torch.full((), 2.0))
        module.shift = torch.ones(())
        module.note = "kept"
        module.register_buffer("late", torch.zeros(2))
    a, b = units(0), units(1)
    assert torch.equal(watched(a, b), plain(a, b))
    assert (loss.tau, loss.note) == (0.5, "kept")
    assert float(loss.shift) == 1 and float(loss.weight.detach()) == 2 and loss.late.shape == (2,)
    del watched.note, watched.late
    assert not hasattr(loss, "note")
    assert not hasattr(loss, "late")
    with pytest.raises(AttributeError, match="note"):
        _ = watched.note
    loss.tau = 0.25  # and the other way round
    assert watched.tau == 0.25


def test_a_wrapped_loss_is_a_module_of_its_class_with_the_same_names() -> None:
    loss = Projected()
    watched = LossScope().wrap(loss)
    assert isinstance(watched, Projected) and type(watched).__name__ == "Projected"
    assert [name for name, _ in watched.named_parameters()] == ["weight"]
    assert list(watched.state_dict()) == ["weight", "shift"] and repr(watched) == repr(loss)
    assert list(nn.ModuleDict({"loss": watched}).state_dict()) == ["loss.weight", "loss.shift"]
    watched.load_state_dict({"weight": torch.tensor(3.0), "shift": torch.tensor(1.0)})
    assert float(loss.weight.detach()) == 3
    assert watched.to(torch.float64) is watched and loss.weight.dtype == torch.float64
    watched.eval()
    assert not (watched.training or loss.training)


def test_attributes_named_as_those_of_a_wrapper_are_of_the_loss() -> None:
    loss = Projected()
    loss.loss, loss.scope = nn.Linear(2, 2), "wide"
    watched = LossScope().wrap(loss)
    assert watched.loss is loss.loss and watched.scope == "wide"
    assert "loss.weight" in watched.state_dict()


def test_the_given_loss_stays_unwatched_and_a_loss_wrapped_twice_is_watched_once() -> None:
    first, second = LossScope(probes=("cocos",)), LossScope(probes=("cocos",))
    loss = Projected()
    again = second.wrap(first.wrap(loss))
    assert torch.equal(again(units(0), units(1)), loss(units(0), units(1)))
    assert (len(first.history), len(second.history)) == (0, 1)
    assert again.lossscope_watch.loss is loss
    function = LossScope().wrap(LossScope().wrap(of_embeddings))
    assert function.lossscope_watch.given is of_embeddings


def test_hooks_of_a_loss_see_each_call_of_the_training_once_and_no_trial_batch() -> None:
    loss, seen = Projected(), []
    watched = LossScope().wrap(loss)
    watched.register_forward_hook(lambda module, arguments, value: seen.append(len(arguments[0])))
    watched.register_full_backward_hook(lambda *_: seen.append(-1))
    watched(units(0), units(1)).backward()
    assert seen == [B, -1]


def test_a_copy_of_a_wrapped_loss_is_watched_with_its_own_weights() -> None:
    """W of a copy was that of the loss it had been copied from."""
    watched = LossScope(probes=("cocos:unit=cosine",)).wrap(Projected())
    for other in (copy.deepcopy(watched), pickle.loads(pickle.dumps(watched))):
        with torch.no_grad():
            other.weight.fill_(0.5)
        other(units(0), units(1))
        half = LossScope(probes=("cocos:unit=cosine",))
        module = Projected()
        module.weight = nn.Parameter(torch.tensor(0.5))
        half.wrap(module)(units(0), units(1))
        assert dict(other.lossscope_watch.scope.history[-1]) == dict(half.history[-1])
        assert float(watched.weight.detach()) == 1
    shallow = copy.copy(watched)
    shallow.tau = 0.5
    assert watched.tau == 0.1
    assert not watched.lossscope_watch.scope.history


def test_a_wrapped_loss_is_an_objective_without_being_watched() -> None:
    scope = LossScope(probes=("cocos",))
    watched = scope.wrap(Projected())
    a, b = units(0).detach(), units(1).detach()
    rows = [LossScope(loss, ("cocos",)).watch(images=a, captions=b) for loss in (watched, Projected())]
    assert rows[0] == rows[1]
    assert scope.calls == 0


def test_replicas_of_a_wrapped_loss_are_refused() -> None:
    with pytest.raises(InputError, match=r"a wrapped loss must see whole batches; got one in torch\.nn\.DataParallel"):
        LossScope().wrap(Projected())._replicate_for_data_parallel()


def test_a_class_that_counts_its_subclasses_sees_none() -> None:
    seen: list[type] = []

    class Registered(Projected):
        def __init_subclass__(cls, *, name: str) -> None:
            seen.append(cls)

    watched = LossScope().wrap(Registered())
    assert isinstance(watched, Registered)
    assert not seen


class Scaled:
    """A loss that is no module, with a temperature."""

    def __init__(self) -> None:
        self.tau = 0.1

    def __call__(self, S: Tensor) -> Tensor:
        return cross_entropy(S / self.tau, torch.arange(len(S)))


def test_attributes_of_an_object_that_is_no_module_are_its_own() -> None:
    loss, scope = Scaled(), LossScope(probes=("cocos:unit=cosine",))
    watched = scope.wrap(loss)
    assert isinstance(watched, nn.Module)
    S = units(0).detach() @ units(1).detach().T
    watched(S)
    watched.tau = 0.5
    watched.note = 1
    del watched.note
    assert loss.tau == watched.tau == 0.5 and not hasattr(loss, "note")
    assert float(watched(S)) == float(loss(S))
    before, after = (row["i2t/W_neg"] for row in scope.history)
    assert before > after
    watched.eval()
    watched(S)
    assert len(scope.history) == 2


def test_what_cannot_be_watched_is_refused_when_it_is_wrapped() -> None:
    with pytest.raises(SpecError, match="may be S or S / temperature"):
        LossScope().wrap(lambda logits: logits.sum())
    with pytest.raises(InputError, match="LossScope must be given an objective to watch S or embeddings"):
        LossScope().watch(torch.eye(4))


def row_of_rank() -> dict[str, float]:
    """Watch open_clip's local loss in one of two processes; torch.distributed gathers the features."""
    import torch.distributed as distributed

    rank = distributed.get_rank()
    images, texts = units(0, 2 * B), units(1, 2 * B)
    share = slice(rank * B, rank * B + B)
    gathered = []
    for side in (images, texts):
        parts = [torch.zeros(B, WIDTH) for _ in range(2)]
        distributed.all_gather(parts, side[share].detach().contiguous())
        gathered.append(torch.cat(parts))
    loss = ClipLoss(local_loss=True, rank=rank, world_size=2)
    loss.others = gathered[0], gathered[1]
    scope = LossScope()
    scope.wrap(loss)(images[share], texts[share], SCALE)
    return dict(scope.history[-1])


def test_two_processes_see_their_own_rows_and_all_columns() -> None:
    rows = run_ranks(row_of_rank, 2)
    whole = LossScope(f"ntxent:tau={1 / 14}").watch(units(0, 2 * B) @ units(1, 2 * B).T)
    assert whole is not None and all(row["loss_gap"] < 1e-6 for row in rows)
    for name in ("i2t/s_pos", "t2i/s_neg", "i2t/C_neg", "t2i/W_neg"):
        assert sum(row[name] for row in rows) / 2 == pytest.approx(whole[name], rel=1e-4), name
