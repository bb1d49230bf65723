"""Are losses called rightly: trial batches of a size they run on, copies, float32 constants, any signature?"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lossscope import LossScope
from lossscope.core.similarity import normalise, pair_mask
from lossscope.errors import InputError, SpecError, UnsupportedLoss
from lossscope.objectives.base import Traits
from lossscope.objectives.checks.suite import check
from lossscope.objectives.counting.units import saturated_weight
from lossscope.objectives.custom.as_objective import as_objective, name_of_loss
from lossscope.registry import build
from lossscope.training.components import require_trainable
from lossscope.training.recipe import Recipe
from tests.each import each

pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name

S = torch.rand(20, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 2
MASK = pair_mask(torch.arange(20))
Loss = Callable[..., Any]


def softmax(S: Tensor, tau: float = 0.1) -> Tensor:
    return cross_entropy(S / tau, torch.arange(len(S)))


def tau_first(tau: float, S: Tensor) -> Tensor:
    return softmax(S, tau)


class Softmax(nn.Module):
    def forward(self, S: Tensor) -> Tensor:
        return softmax(S)


def weights(loss: Loss) -> Tensor:
    return as_objective(loss)(S, MASK).W


EXPECTED = weights(softmax)


def top_8(S: Tensor) -> Tensor:
    others = S.masked_fill(torch.eye(len(S), dtype=torch.bool), -1)
    return (0.2 + others.topk(8, dim=1).values - S.diag()[:, None]).relu().sum()


def of_20_pairs(S: Tensor) -> Tensor:
    if len(S) < 20:
        raise ValueError("needs 20 pairs")
    return softmax(S)


@each("loss, pairs", [(softmax, 6), (top_8, 16), (of_20_pairs, 64)])
def test_a_loss_is_measured_on_as_many_pairs_as_it_needs(loss: Loss, pairs: int) -> None:
    objective: Any = as_objective(loss)
    assert objective.smallest_batch == pairs
    assert objective.traits.reduction == ("sum" if loss is top_8 else "mean")
    assert objective.counted_directions == ("i2t",)
    if loss is of_20_pairs:
        assert torch.equal(objective(S, MASK).W, EXPECTED)


def test_a_loss_that_runs_on_no_trial_batch_says_on_which_it_was_tried() -> None:
    def never(S: Tensor) -> Tensor:
        raise ValueError("a thousand pairs")

    message = "never must run on a batch of 6 pairs; .* on a trial batch of 6 pairs; those of 16 and 64 pairs fail too"
    with pytest.raises(InputError, match=message):
        as_objective(never)(S, MASK)


def test_what_is_known_of_a_loss_without_a_call_is_known_where_every_call_of_it_raises() -> None:
    def of_6_pairs(S: Tensor) -> Tensor:
        if len(S) != 6:
            raise ValueError("6 pairs")
        return softmax(S)

    objective: Any = as_objective(of_6_pairs)
    assert objective.traits == Traits(square=True, own_unit="relative")
    for measured in (lambda: objective(torch.eye(6), pair_mask(torch.arange(6))), lambda: objective.measured_traits):
        with pytest.raises(InputError, match="of_6_pairs must run on a batch of 12 pairs"):
            measured()


def test_an_option_of_a_loss_that_is_called_like_a_trait_is_no_trait() -> None:
    """A parameter `square` or `reduction` of a class replaced the measured traits of the loss."""

    class Own(nn.Module):
        def __init__(self, square: bool = False, reduction: str = "sum") -> None:
            super().__init__()

        def forward(self, S: Tensor) -> Tensor:
            return softmax(S)

    objective: Any = as_objective(Own)
    assert (objective.square, objective.reduction) == (False, "sum")
    assert (objective.traits.square, objective.traits.reduction) == (True, "mean")


def test_a_loss_that_needs_more_than_two_pairs_has_no_relative_unit_and_the_unit_to_take_is_named() -> None:
    with pytest.raises(InputError, match=r"runs on two pairs, .*top_8 must run.* --unit cosine"):
        saturated_weight(as_objective(top_8))
    row = LossScope(top_8, probes=("cocos:unit=cosine",)).watch(S)
    assert row is not None and 5 < row["i2t/C_neg"] <= 8


def test_a_loss_is_checked_on_batches_that_it_runs_on(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import torch\n\n"
        "def top(S, k: int = 8):\n"
        "    others = S.masked_fill(torch.eye(len(S), dtype=torch.bool), -1)\n"
        "    return (0.2 + others.topk(k, dim=1).values - S.diag()[:, None]).relu().sum()\n"
    )
    assert "fail" not in {verdict.outcome for verdict in check(f"{file}:top", processes=2)}
    with pytest.raises(InputError, match=r"must run on batches of 8 pairs for a check; .* It runs on 16 pairs: check"):
        check(f"{file}:top:k=12", processes=1)


def identity_in_float32(S: Tensor) -> Tensor:
    return softmax(S @ torch.eye(len(S)))


def weights_in_float32(S: Tensor) -> Tensor:
    identity = torch.zeros(len(S), len(S), dtype=torch.float32)
    identity[torch.arange(len(S)), torch.arange(len(S))] = torch.ones(len(S), dtype=torch.float64)
    return softmax(identity @ S)


class LayerOutside:
    """A callable with a float32 layer; it is no module, so the layer is no parameter of the loss."""

    def __init__(self) -> None:
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.layer.weight)

    def __call__(self, S: Tensor) -> Tensor:
        return softmax(self.layer(S[..., None])[..., 0])


class PlainTensor(nn.Module):
    """A module with a float32 tensor that is no buffer, so that `double()` leaves it."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = torch.eye(64)

    def forward(self, S: Tensor) -> Tensor:
        return softmax(S @ self.eye[: len(S), : len(S)])


@each("loss", [identity_in_float32, weights_in_float32, LayerOutside(), PlainTensor()])
def test_constants_in_float32_leave_the_precision_of_float64(loss: Loss) -> None:
    torch.testing.assert_close(weights(loss), EXPECTED, rtol=1e-12, atol=1e-14)


def test_a_wrong_type_that_nothing_can_promote_is_explained() -> None:
    def wrong(S: Tensor) -> Tensor:
        return softmax(S) + S.view(dtype=torch.int64)[0, 0].index_fill(0, torch.zeros(1), 0)

    with pytest.raises(InputError, match=r"create its constants in the type of its input, torch.eye"):
        weights(wrong)


def test_a_loss_in_float32_is_measured_within_the_rounding_of_float32() -> None:
    def short(image_emb: Tensor, text_emb: Tensor) -> Tensor:
        return softmax(image_emb.float() @ text_emb.float().T)

    images, captions = torch.randn(2, 20, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    row = LossScope(short).watch(images=images, captions=captions)
    expected = LossScope(softmax).watch(normalise(images) @ normalise(captions).T)
    assert row is not None and expected is not None
    assert row["i2t/C_neg"] == pytest.approx(expected["i2t/C_neg"], abs=0.1)


def optional_s(S: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    assert S is not None and mask is None
    return softmax(S)


@dataclass
class Unhashable:
    tau: float = 0.1

    def __call__(self, S: Tensor) -> Tensor:
        return softmax(S, self.tau)


def scripted(S: Tensor) -> Tensor:
    return cross_entropy(S / 0.1, torch.arange(S.shape[0]))


class Traceable(nn.Module):
    """A module whose batch size stays open in a trace; `len(S)` would fix it."""

    def forward(self, S: Tensor) -> Tensor:
        return scripted(S)


def trace(loss: Loss) -> Loss:
    return torch.jit.trace(loss, S)  # type: ignore[no-untyped-call, no-any-return]


def compile_loss(kind: str) -> Loss:
    with warnings.catch_warnings(action="ignore"):  # torch.jit is deprecated, and still in use
        if kind == "compile":
            return torch.compile(Softmax())
        if kind == "compiled function":
            return torch.compile(softmax)
        if kind == "script":
            return torch.jit.script(scripted)
        return trace(Traceable() if kind == "traced module" else scripted)


FORMS: dict[str, Callable[[], Loss]] = {
    "partial": lambda: partial(softmax, tau=0.1),
    "partial by position": lambda: partial(tau_first, 0.1),
    "partial of a module": lambda: partial(Softmax()),
    "compiled module": lambda: compile_loss("compile"),
    "compiled function": lambda: compile_loss("compiled function"),
    "unhashable object": Unhashable,
    "method of a module": lambda: Softmax().forward,
    "S=None": lambda: optional_s,
    "lambda": lambda: lambda S: softmax(S),
    "script": lambda: compile_loss("script"),
    "trace": lambda: compile_loss("trace"),
    "traced module": lambda: compile_loss("traced module"),
}


@each("form", FORMS)
def test_every_way_of_writing_a_loss_gives_its_weights(form: str) -> None:
    loss = FORMS[form]()
    torch.testing.assert_close(weights(loss), EXPECTED)
    assert as_objective(loss) == as_objective(loss)


def test_an_error_inside_a_trace_is_one_line() -> None:
    with warnings.catch_warnings(action="ignore"):
        fixed = trace(Softmax())
    with pytest.raises(InputError, match=r"raised RuntimeError: Expected input batch_size \(6\) to match") as raised:
        weights(fixed)
    assert "\n" not in str(raised.value)


def test_names_and_options_are_those_of_the_function_inside_a_partial() -> None:
    objective: Any = as_objective(partial(softmax, tau=0.2))
    assert (name_of_loss(partial(softmax)), objective.tau) == ("softmax", 0.2)
    assert type(as_objective(compile_loss("compile"))).__name__ == "Softmax"
    softmax_sum = partial(softmax)
    softmax_sum.lossscope_reduction = "sum"  # type: ignore[attr-defined]
    assert as_objective(softmax_sum).traits.reduction == "sum"


def test_equal_objects_are_losses_of_their_own() -> None:
    first, second = Unhashable(), Unhashable()
    objectives = as_objective(first), as_objective(second)
    second.tau = 0.5
    assert torch.equal(objectives[0](S, MASK).W, EXPECTED)
    assert not torch.allclose(objectives[1](S, MASK).W, EXPECTED)


def of_anything(*args: Tensor, **kwargs: Any) -> Tensor:
    return softmax(args[0])


def by_name(*, S: Tensor) -> Tensor:
    return softmax(S)


def with_scores(S: Tensor, valid: Tensor) -> Tensor:
    return softmax(S)


def with_labels(logits: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(logits, labels)


def of_logits(logits: Tensor) -> Tensor:
    return softmax(logits, 1.0)


def of_both(logits_per_image: Tensor, logits_per_text: Tensor) -> Tensor:
    return softmax(logits_per_image, 1.0) + softmax(logits_per_text, 1.0)


@each("loss, message", [
    (of_anything, r"takes \(\*args, \*\*kwargs\)\. Say which .* `def loss\(S\): return of_anything\(S\)`"),
    (by_name, r"takes \(S\)\. Say which .* `def loss\(S\): return by_name\(S=S\)`"),
    (with_scores, r"without valid.*`def loss\(S\): return with_scores\(S, torch.eye\(len\(S\), dtype=torch.bool\)\)`"),
    (with_labels, r"`def loss\(S\): return with_labels\(S / 0.05, torch.arange\(len\(S\)\)\)`"),
    (nn.CrossEntropyLoss(), r"\(input, target\).*`def loss\(S\): return criterion\(S / 0.05, torch.arange"),
    (of_logits, r"may be S or S / temperature. Say which: of_logits.lossscope_takes = 'S'"),
    (of_both, r"`def loss\(S\): return of_both\(S / 0.05, S.T / 0.05\)`"),
])  # fmt: skip
def test_a_call_that_is_not_plain_is_refused_with_what_to_write(loss: Loss, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        as_objective(loss)


def test_what_is_advised_for_labels_is_a_loss() -> None:
    torch.testing.assert_close(weights(lambda S: with_labels(S / 0.1, torch.arange(len(S)))), EXPECTED)


def test_a_loss_of_distances_is_refused_with_what_to_write() -> None:
    def distances(D: Tensor) -> Tensor:
        return (0.2 + D.diag()[:, None] - D).relu().triu(1).sum()

    with pytest.raises(
        UnsupportedLoss, match=r"as of a loss of distances.* `def loss\(S\): return your_loss\(1 - S\)`"
    ):
        weights(distances)
    assert bool((weights(lambda S: distances(1 - S)).diagonal() <= 0).all())


class Queue(nn.Module):
    """Earlier captions are negatives too, as in MoCo."""

    def __init__(self, length: int = 4) -> None:
        super().__init__()
        self.length, self.kept = length, list[Tensor]()

    def forward(self, image_emb: Tensor, text_emb: Tensor) -> Tensor:
        logits = torch.cat([image_emb @ x.T for x in (text_emb, *self.kept)], 1) / 0.1
        self.kept = [*self.kept, text_emb.detach()][-self.length :] if self.length else []
        return cross_entropy(logits, torch.arange(len(image_emb)))


def test_a_queue_is_refused_and_stays_as_it_was() -> None:
    queue = Queue()
    with pytest.raises(UnsupportedLoss, match=r"keeps a queue or an average of earlier batches.* length 0"):
        weights(queue)
    assert queue.kept == []
    assert weights(Queue(length=0)).shape == S.shape


class Counting:
    """A plain object that keeps its arguments without using them."""

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def __call__(self, S: Tensor) -> Tensor:
        self.seen.append(S)
        self.last = softmax(S)
        return self.last


def test_trial_batches_leave_nothing_in_the_object_of_the_user() -> None:
    loss = Counting()
    loss(S.clone().requires_grad_())  # now it keeps a result with a graph
    assert torch.equal(weights(loss), EXPECTED)
    assert torch.equal(weights(loss.__call__), EXPECTED)
    assert len(loss.seen) == 1


def test_a_module_that_keeps_its_last_result_is_copied_without_its_graph() -> None:
    class Keeps(nn.Module):
        def forward(self, S: Tensor) -> Tensor:
            self.last = softmax(S)
            return self.last

    loss = Keeps()
    last = loss(S.clone().requires_grad_())
    assert torch.equal(weights(loss), EXPECTED)
    assert loss.last is last


def test_an_object_that_cannot_be_copied_is_called_itself_with_a_warning() -> None:
    loss = Counting()
    loss.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="copy.deepcopy refuses Counting .* run on the object itself"):
        assert torch.equal(weights(loss), EXPECTED)


def test_a_module_that_cannot_be_copied_is_refused() -> None:
    loss = Softmax()
    loss.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"Softmax must be a module that copy.deepcopy can copy"):
        weights(loss)


class Annealed(nn.Module):
    """The temperature falls at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.tau = 0.5

    def forward(self, S: Tensor) -> Tensor:
        self.tau *= 0.9
        return softmax(S, self.tau)


def test_a_memory_is_left_as_it_is_when_watched_and_refused_in_training() -> None:
    loss = Annealed()
    objective: Any = as_objective(loss)
    first = objective(S, MASK).W
    assert torch.equal(objective(S, MASK).W, first) and loss.tau == 0.5
    with pytest.raises(InputError, match="must be a function of one batch for train"):
        require_trainable(Recipe(objective="./own.py:Annealed"), objective)
    require_trainable(Recipe(), as_objective(Softmax()))


def test_a_layer_of_a_fixed_width_is_explained() -> None:
    projection = torch.eye(32)

    def projected(image_emb: Tensor, text_emb: Tensor) -> Tensor:
        return softmax(image_emb @ projection @ text_emb.T)

    with pytest.raises(InputError, match="a layer or a memory of a fixed width must be left out"):
        weights(projected)


def test_a_loss_of_embeddings_says_what_to_give_in_place_of_similarities() -> None:
    def pairs(image_emb: Tensor, text_emb: Tensor) -> Tensor:
        return softmax(image_emb @ text_emb.T)

    with pytest.raises(
        InputError, match=r"pairs takes embeddings, and got S alone, .* `images` and `captions` in place"
    ):
        as_objective(pairs)(2 * torch.eye(9) - 1, pair_mask(torch.arange(9)))


def test_a_file_that_holds_a_lambda_and_a_partial_is_read(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from functools import partial\n"
        "import torch, torch.nn.functional as F\n"
        "loss = lambda S: F.cross_entropy(S / 0.1, torch.arange(len(S)))\n"
        "def at(S, tau=0.5): return F.cross_entropy(S / tau, torch.arange(len(S)))\n"
        "sharp = partial(at, tau=0.1)\n"
        "number = 3\n"
    )
    for name in ("loss", "sharp", "at:tau=0.1", "sharp:tau=0.1"):
        torch.testing.assert_close(build("objectives", f"{file}:{name}")(S, MASK).W, EXPECTED)
    with pytest.raises(SpecError, match=r"number of .* got int. It defines at, loss, sharp: write .*own.py:at"):
        build("objectives", f"{file}:number")
    with pytest.raises(SpecError, match=r"it defines at, loss, sharp. Write"):
        build("objectives", str(file))
