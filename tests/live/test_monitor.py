"""Does LossScope give the numbers of a sweep for each type of S, without any effect on the training loop?"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

import lossscope
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Mask, group_mask, normalise, pair_mask
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError, SpecError
from lossscope.live.monitor import LossScope
from lossscope.registry import build, names

NTXENT = "ntxent:tau=0.05"
WITHIN = [name for name in names("probes") if "gradients" not in build("probes", name).reads]
PLUGIN = """
from dataclasses import dataclass
from lossscope.probes.base import Accumulator, Statistic

@dataclass(frozen=True)
class Mine:
    axis, needs_objective, cheap = "batch", False, False
    reads = frozenset({READS})

    def tile(self, view):
        return {"n": Accumulator(view.embeddings()[0].norm(dim=-1).sum(1))}

    def finish(self, accumulators):
        return {"n": accumulators["n"].value}

    def statistics(self, objective):
        return (Statistic("length", "n", "mean", "1"),)

    def check(self, objective):
        pass
"""


@pytest.fixture(name="S")
def similarities() -> Tensor:
    noise = torch.randn(12, 12, generator=torch.Generator().manual_seed(0))
    return (0.2 * noise + 0.4 * torch.eye(12)).clamp(-1, 1)


def plugin(folder: Path, reads: str) -> str:
    (folder / "mine.py").write_text(PLUGIN.replace("READS", repr(reads)))
    return f"{folder / 'mine.py'}:Mine"


def sweep_all(embedded: SplitEmbeddings, objective: str, probes: tuple[str, ...]) -> dict[str, float]:
    """Return the statistics of a whole split as one batch."""
    rows = Sweep((objective,), probes, batch_size=None, shuffle=False).run(embedded).summary
    return {f"{d}/{s}": m for d, s, m in zip(rows["direction"], rows["statistic"], rows["mean"], strict=True)}


def embedded_of(images: Tensor, captions: Tensor, owner: np.ndarray[Any, Any]) -> SplitEmbeddings:
    ids = [[str(row) for row in range(len(x))] for x in (images, captions)]
    return SplitEmbeddings("s", images, captions, None, owner, ids[0], ids[1], "f" * 64)


def same(row: dict[str, float] | None, other: dict[str, float] | None, tolerance: float = 1e-6) -> None:
    assert row is not None and other is not None
    assert row.keys() == other.keys()
    for name, value in row.items():
        assert value == pytest.approx(other[name], rel=tolerance, abs=tolerance, nan_ok=True), name


def units(rows: int, seed: int) -> Tensor:
    x = torch.randn(rows, 6, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(x)


def test_the_package_exports_it() -> None:
    assert lossscope.LossScope is LossScope
    assert "LossScope" in dir(lossscope)


def test_a_loop_that_is_watched_imports_no_library_of_frames_and_tables() -> None:
    """A training chooses its own imports: only `frame` and `save` need pandas."""
    code = (
        "import sys, torch, lossscope; lossscope.LossScope('ntxent').watch(torch.eye(8)); "
        "print([name for name in ('pandas', 'pyarrow', 'scipy', 'matplotlib', 'typer', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_counts_of_a_batch_by_hand() -> None:
    S = torch.tensor([[0.9, 0.8, 0.0], [0.1, 0.6, 0.7], [0.0, 0.0, 0.5]])
    row = LossScope("ntxent:tau=0.1", ("similarity", "cocos:eps=0.1")).watch(S)
    assert row is not None
    rows = [[math.exp(10 * s) for s in line] for line in S.tolist()]
    p = [[e / sum(line) for e in line] for line in rows]
    negatives = [p[q][c] for q in range(3) for c in range(3) if c != q]
    assert row["i2t/C_neg"] == pytest.approx(sum(w > 0.1 for w in negatives) / 3)
    assert row["i2t/W_pos"] == pytest.approx(sum(1 - p[q][q] for q in range(3)) / 3, rel=1e-5)
    assert row["i2t/s_pos"] == row["t2i/s_pos"] == pytest.approx((0.9 + 0.6 + 0.5) / 3)
    assert row["i2t/s_neg"] == pytest.approx((0.8 + 0.7 + 0.0) / 3)
    assert row["t2i/s_neg"] == pytest.approx((0.1 + 0.8 + 0.7) / 3)
    assert row["t2i/inverted"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("objective", [NTXENT, "triplet", "goal", "siglip"])
def test_a_row_equals_a_sweep_over_the_same_batch(objective: str) -> None:
    images, captions = units(20, 0), units(20, 1)
    probes = ("similarity", "cocos", "contributors")
    scope = LossScope(objective, probes)
    row = scope.watch(images @ captions.T)
    expected = {
        name: value
        for probe in probes
        for name, value in sweep_all(embedded_of(images, captions, np.arange(20)), objective, (probe,)).items()
    }
    assert row is not None
    for name, value in row.items():
        last = name.split("/")
        if name != "finite":
            assert value == pytest.approx(expected[f"{last[0]}/{last[-1]}"], rel=1e-5, abs=1e-7, nan_ok=True), name


def test_images_with_several_captions_are_watched_with_their_mask() -> None:
    images, owner = units(5, 0), np.repeat(np.arange(5), 3)
    captions = units(15, 1)
    mask = group_mask(torch.arange(5), torch.from_numpy(owner))
    row = LossScope("smoothap", ("cocos",)).watch(images @ captions.T, mask)
    assert row is not None
    expected = sweep_all(embedded_of(images, captions, owner), "smoothap", ("cocos",))
    same({k: v for k, v in row.items() if k != "finite"}, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_float_type_counts_the_same(dtype: torch.dtype, S: Tensor) -> None:
    rounded = S.to(dtype)
    same(LossScope(NTXENT).watch(rounded), LossScope(NTXENT).watch(rounded.float()))


def test_autocast_has_no_effect(S: Tensor) -> None:
    images, captions = units(8, 0), units(8, 1)
    plain = LossScope(NTXENT).watch(S), LossScope(NTXENT).watch(images=images, captions=captions)
    with torch.autocast("cpu", torch.bfloat16):
        cast = LossScope(NTXENT).watch(S), LossScope(NTXENT).watch(images=images, captions=captions)
    assert cast == plain


def test_inference_mode_has_no_effect(S: Tensor) -> None:
    with torch.inference_mode():
        row = LossScope("unified").watch(S.clone())
    assert row == LossScope("unified").watch(S)


def test_embeddings_are_compared_by_their_cosine() -> None:
    images, captions = 3 * units(8, 0), 0.5 * units(8, 1)
    row = LossScope(NTXENT).watch(images=images, captions=captions)
    same(row, LossScope(NTXENT).watch(units(8, 0) @ units(8, 1).T), 1e-5)


@pytest.mark.parametrize("name", WITHIN)
def test_the_training_loop_is_not_changed(name: str) -> None:
    def train(scope: LossScope | None) -> Tensor:
        torch.manual_seed(0)
        x, weight = torch.randn(8, 6), torch.randn(6, 6, requires_grad=True)
        for _ in range(3):
            images, captions = (x + 0.1 * torch.randn(8, 6)) @ weight, x
            S = torch.nn.functional.normalize(images) @ torch.nn.functional.normalize(captions).T
            if scope is not None:
                assert scope.watch(S, images=images, captions=captions) is not None
            ((S / 0.1).logsumexp(1) - S.diag() / 0.1).mean().backward()
            with torch.no_grad():
                assert weight.grad is not None
                weight -= 0.01 * weight.grad
        return torch.cat([weight.detach().flatten(), torch.rand(1)])

    assert torch.equal(train(LossScope(NTXENT, (name,))), train(None))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_similarities_that_are_not_finite_are_recorded_and_nothing_raises(bad: float, S: Tensor) -> None:
    scope = LossScope(NTXENT)
    broken = S.clone()
    broken[3, 4] = bad
    assert scope.watch(S) == scope.watch(S)
    row = scope.watch(broken)
    assert row is not None
    assert row["finite"] == 0
    assert all(math.isnan(value) for name, value in row.items() if name != "finite")
    assert scope.frame()["finite"].tolist() == [1, 1, 0]
    assert LossScope("triplet").watch(torch.full((4, 4), bad)) is not None


def test_invalid_entries_may_have_any_value(S: Tensor) -> None:
    eye = torch.eye(12, dtype=torch.bool)
    mask = Mask(eye, eye | (torch.arange(12) < 6))
    scope = LossScope(NTXENT)
    row = scope.watch(S.masked_fill(~mask.valid, math.nan), mask)
    assert row is not None and row["finite"] == 1
    same(row, scope.watch(S, mask))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (torch.zeros(3, 4),),
            r"must be \(b, b\), pair i on the diagonal; got \(3, 4\)\. .* offset=\.\.\., or a lossscope\.Mask",
        ),
        ((torch.zeros(1, 1),), r"must have 2 pairs or more, .*; got 1\. .*DataLoader\(\.\.\., drop_last=True\)"),
        ((torch.zeros(4, 4).long(),), r"of floating point; got \(4, 4\) of torch\.int64\. Write S\.float\(\)"),
        ((torch.zeros(3),), r"S must be \(images, captions\) of floating point; got \(3,\)"),
        ((torch.zeros(3, 3, dtype=torch.long),), r"got \(3, 3\) of torch.int64"),
        ((torch.zeros(3, 3), pair_mask(torch.arange(4))), r"S and mask must have one shape; got \(3, 3\) and \(4, 4\)"),
        ((), "watch must be given S, or images and captions; got neither"),
    ],
)
def test_a_wrong_shape_is_an_error(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LossScope(NTXENT).watch(*arguments)


def test_logits_are_named_once_for_each_scope(S: Tensor, caplog: pytest.LogCaptureFixture) -> None:
    scope = LossScope("ntxent:tau=0.05")
    for _ in range(3):
        scope.watch(S / 0.05)
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "lossscope")
    assert f"reach {float((S / 0.05).abs().max()):.3g}, so they are not cosines" in record.getMessage()
    assert "watch(S) in place of watch(S / tau)" in record.getMessage()
    LossScope("ntxent:tau=0.05").watch(S / 0.05)
    assert len(caplog.records) == 2


def test_cosines_and_what_no_query_is_compared_with_are_no_logits(S: Tensor, caplog: pytest.LogCaptureFixture) -> None:
    mask = pair_mask(torch.arange(len(S)))
    masked = replace(mask, valid=mask.match | (torch.arange(len(S)) % 3 > 0))
    for given, of in ((S, None), (S.half(), None), (S.masked_fill(~masked.valid, -1e4), masked)):
        LossScope("ntxent:tau=0.05").watch(given, of)
    LossScope("ntxent:tau=0.05").watch(images=9 * S, captions=9 * S)  # lossscope takes their cosines
    assert not caplog.records


def test_logits_are_looked_for_in_the_first_batch_alone(S: Tensor, caplog: pytest.LogCaptureFixture) -> None:
    scope = LossScope("ntxent:tau=0.05")
    for scale in (1, 20):
        scope.watch(scale * S)
    assert not caplog.records


def test_half_a_pair_of_embeddings_is_an_error(S: Tensor) -> None:
    with pytest.raises(InputError, match="images and captions must be given together"):
        LossScope(NTXENT).watch(S, images=units(12, 0))
    with pytest.raises(InputError, match=r"embeddings must be \(n, d\) and \(m, d\) with one d"):
        LossScope(NTXENT).watch(images=units(4, 0), captions=torch.zeros(4, 3))
    with pytest.raises(InputError, match=r"S must be of its images and captions, \(4, 4\); got \(12, 12\)"):
        LossScope(NTXENT).watch(S, images=units(4, 0), captions=units(4, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every must be at least 1 and keep at least 0; got 0"),
        ({"keep": -1}, "got 1 and -1"),
        ({"probes": ()}, "probes must be specs"),
        ({"probes": "cocos"}, "probes must be specs"),
        ({"probes": ("cocoa",)}, "did you mean 'cocos'"),
        ({"objective": "ntxnt"}, "did you mean 'ntxent'"),
        ({"objective": "goal", "probes": ("cocos:convention=released",)}, "convention of Goal must be one of"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, SpecError), match=message):
        LossScope(**{"objective": NTXENT, **options})


def test_probes_that_read_gradients_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="probes of a batch must not need gradients of layers"):
        LossScope(NTXENT, (plugin(tmp_path, "gradients"),))


def test_probes_that_read_embeddings_get_them(tmp_path: Path, S: Tensor) -> None:
    scope = LossScope(NTXENT, (plugin(tmp_path, "embeddings"),))
    with pytest.raises(InputError, match="this probe needs embeddings"):
        scope.watch(S)
    row = scope.watch(images=2 * units(5, 0), captions=units(5, 1))
    assert row is not None
    assert row["i2t/length"] == row["t2i/length"] == pytest.approx(5)


def test_every_skips_steps() -> None:
    scope = LossScope(NTXENT, ("cocos",), every=3)
    assert [scope.watch(torch.eye(4)) is not None for _ in range(7)] == [True, False, False, True, False, False, True]
    assert scope.frame()["step"].tolist() == [0, 3, 6]
    assert scope.watch(torch.zeros(3, 4), step=10) is None
    assert scope.watch(torch.eye(4), step=12) is not None


def test_history_is_bounded_and_the_sink_sees_all() -> None:
    seen: list[tuple[int, float]] = []
    scope = LossScope(NTXENT, ("cocos",), keep=2, sink=lambda step, row: seen.append((step, row["finite"])))
    for _ in range(4):
        scope.watch(torch.eye(4))
    assert scope.frame()["step"].tolist() == [2, 3]
    assert seen == [(0, 1), (1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_history_is_saved_whole(suffix: str, tmp_path: Path, S: Tensor) -> None:
    scope = LossScope(NTXENT)
    scope.watch(S)
    scope.watch(S * math.nan)
    path = scope.save(tmp_path / "deep" / f"history.{suffix}")
    read: Callable[[Path], pd.DataFrame] = {"csv": pd.read_csv, "parquet": pd.read_parquet}[suffix]
    pd.testing.assert_frame_equal(read(path), scope.frame())
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(InputError, match=r"must have the suffix \.csv or \.parquet; got 'history.txt'"):
        scope.save(tmp_path / "history.txt")


def test_an_empty_history_has_its_columns() -> None:
    assert list(LossScope(NTXENT, ("cocos",)).frame())[:4] == ["step", "finite", "i2t/C_neg", "i2t/W_neg"]


def test_statistics_of_one_name_are_prefixed_by_their_probes(S: Tensor) -> None:
    row = LossScope(NTXENT, ("cocos", "cocos:eps=0.1", "similarity", "cocos")).watch(S)
    assert row is not None
    assert row["i2t/cocos/C_neg"] > row["i2t/cocos:eps=0.1/C_neg"]
    assert "i2t/s_pos" in row


@pytest.mark.parametrize("name", WITHIN)
def test_every_probe_can_watch(name: str) -> None:
    row = LossScope("triplet", (name,)).watch(images=units(8, 0), captions=units(8, 1))
    assert row is not None
    assert {column.partition("/")[0] for column in row} == {"finite", "i2t", "t2i"}


class Waits(TorchDispatchMode):
    """Track operations after which a program waits for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        boolean = "index" in str(func) and any(
            isinstance(x, Tensor) and x.dtype == torch.bool for x in (args[1] if len(args) > 1 else ()) or ()
        )
        if boolean or any(word in str(func) for word in ("local_scalar", "nonzero", "equal", "masked_select")):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_nothing_but_the_last_transfer_waits_for_the_device(S: Tensor) -> None:
    scope = LossScope(NTXENT, ("similarity",))
    scope.watch(S)
    with Waits() as waits:
        scope.watch(S)
    assert waits.seen == []
    with Waits() as waits:
        _ = float(S.sum()), S[S > 0], S.nonzero()
    assert len(waits.seen) == 3


def test_the_doctor_waits_for_the_device_no_oftener_where_each_batch_has_a_mask_of_its_own(S: Tensor) -> None:
    def waits(doctor: bool) -> list[str]:
        scope = LossScope(NTXENT, ("similarity",), doctor=doctor)
        scope.watch(S, pair_mask(torch.arange(12)))
        match = torch.eye(12, dtype=torch.bool)
        with Waits() as seen:
            scope.watch(S, Mask(match, torch.ones_like(match)))
        return seen.seen

    assert waits(True) == waits(False)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", WITHIN)
def test_embeddings_that_are_not_finite_are_recorded_and_nothing_raises(name: str, bad: float, S: Tensor) -> None:
    images, captions = units(12, 0), units(12, 1)
    scope = LossScope(NTXENT, (name,))
    captions[3, 2] = bad
    for similarities in (None, S):
        row = scope.watch(similarities, images=images, captions=captions)
        assert row is not None
        assert row["finite"] == 0
        assert all(math.isnan(value) for column, value in row.items() if column != "finite")


def test_a_mask_of_the_other_direction_is_refused(S: Tensor) -> None:
    mask = replace(pair_mask(torch.arange(12)), direction="t2i")
    with pytest.raises(InputError, match=r"mask must be i2t, as S has images as rows; got t2i\. Give S\.T and mask\.t"):
        LossScope(NTXENT).watch(S.T, mask)
    same(LossScope(NTXENT).watch(S, mask.t()), LossScope(NTXENT).watch(S))


def clip_loss(S: Tensor, tau: float = 0.07) -> Tensor:
    target = torch.arange(len(S))
    return (cross_entropy(S / tau, target) + cross_entropy(S.T / tau, target)) / 2


def rows_loss(images: Tensor, captions: Tensor) -> Tensor:
    return cross_entropy(images @ captions.T / 0.07, torch.arange(len(images)))


class LearntClip(torch.nn.Module):
    """A symmetric cross-entropy with a learnt temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.log_tau = torch.nn.Parameter(torch.tensor(0.07).log())

    def forward(self, images: Tensor, captions: Tensor) -> Tensor:
        return clip_loss(images @ captions.T / self.log_tau.exp(), 1.0)


def test_any_function_and_any_module_is_watched(S: Tensor) -> None:
    vectors = normalise(torch.randn(12, 5)), normalise(torch.randn(12, 5))
    both = LossScope(clip_loss).watch(S)
    assert both is not None and "both/C_neg" in both and "i2t/C_neg" not in both
    rows = LossScope(rows_loss).watch(images=vectors[0], captions=vectors[1])
    ours = LossScope("ntxent:tau=0.07").watch(images=vectors[0], captions=vectors[1])
    assert rows is not None and ours is not None
    assert {name: rows[name] for name in rows if "C_" in name} == {
        name: ours[name] for name in ours if "C_" in name and name.startswith("i2t")
    }
    of_module, of_function = (
        LossScope(loss).watch(images=vectors[0], captions=vectors[1])
        for loss in (LearntClip(), lambda a, b: clip_loss(a @ b.T))
    )
    assert of_module == pytest.approx(of_function)


def test_a_temperature_that_is_learnt_is_followed(S: Tensor) -> None:
    vectors, module = (normalise(torch.randn(12, 5)), normalise(torch.randn(12, 5))), LearntClip()
    scope = LossScope(module)
    before = scope.watch(images=vectors[0], captions=vectors[1])
    with torch.no_grad():
        module.log_tau.fill_(0.0)
    after = scope.watch(images=vectors[0], captions=vectors[1])
    fresh = LossScope(module).watch(images=vectors[0], captions=vectors[1])
    assert after == pytest.approx(fresh)
    assert before != pytest.approx(after)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_function_is_watched_where_no_gradients_are_computed(S: Tensor, context: Callable[[], Any]) -> None:
    expected = LossScope(clip_loss).watch(S)
    with context():
        assert LossScope(clip_loss).watch(S) == expected


def test_arrays_are_taken_and_a_tensor_is_no_mask(S: Tensor) -> None:
    scope = LossScope(NTXENT)
    assert scope.watch(S.numpy()) == scope.watch(S)
    with pytest.raises(InputError, match=r"mask must be a lossscope.Mask; got Tensor. Write lossscope.Mask\(match="):
        scope.watch(S, torch.eye(12, dtype=torch.bool))


def test_what_is_no_loss_is_refused() -> None:
    with pytest.raises(InputError, match=r"objective must be a spec such as .* or a function or module.*; got int"):
        LossScope(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lambda must compute similarities that lossscope finds"):
        LossScope().wrap(lambda z: z.sum())


def test_embeddings_of_two_types_are_promoted() -> None:
    images, captions = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    row, expected = (LossScope(NTXENT).watch(images=images, captions=x) for x in (captions.float(), captions))
    assert row is not None and row == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"S": "a caption"}, r"S must be a matrix of numbers, \(images, captions\) similarities; got str"),
        ({"S": [[1.0, 2.0], [3.0]]}, "S must be a matrix of numbers"),
        ({"images": ["a.jpg"], "captions": ["a cat"]}, "images must be a matrix .* not texts or pictures; got list"),
        ({"S": torch.eye(3), "mask": torch.eye(3)}, "got Tensor. .* name embeddings, images="),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LossScope(NTXENT).watch(**given)


@pytest.mark.parametrize("options", [{"every": "2"}, {"keep": 1.5}, {"probes": 3}])
def test_options_of_another_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))} must be|keep at least 0"):
        LossScope(NTXENT, **options)
