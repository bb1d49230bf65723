"""Do three processes give what one gives: gathers with gradients, sums, batch norm? How do processes connect?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.distributed import (
    ProcessGroup,
    is_lost_process,
    join_group,
    launched_group,
    local_rank,
    process_group,
)
from lossscope.errors import InputError
from lossscope.objectives.checks.spawn import gather_with_gradients
from lossscope.training.data_parallel import sum_gradients, sum_tensors
from lossscope.training.sync_batch_norm import sync_batch_norms, uncounted_batches
from tests.each import each
from tests.farm import run_ranks

RANKS = 3
COUNTS = {"uneven": (2, 4, 1), "one empty": (2, 0, 3), "all but one empty": (0, 0, 4), "even": (2, 2, 2)}
NORMS: dict[str, Callable[[], nn.Module]] = {
    "1d": lambda: nn.BatchNorm1d(4),
    "1d of sets": lambda: nn.BatchNorm1d(4, eps=1e-3, momentum=0.3),
    "2d": lambda: nn.BatchNorm2d(4, momentum=None),
    "plain": lambda: nn.BatchNorm1d(4, affine=False),
    "memoryless": lambda: nn.BatchNorm1d(4, track_running_stats=False),
}
SHAPES = {"1d of sets": (4, 5), "2d": (4, 3, 2)}


def part(x: Tensor, counts: tuple[int, ...], rank: int) -> Tensor:
    return x[sum(counts[:rank]) : sum(counts[: rank + 1])]


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def run_collectives(group: ProcessGroup) -> dict[str, Any]:
    """Return the results of one process, by name."""
    results: dict[str, Any] = {"rank": (group.rank, group.size), "gathered": group.gather({"rank": group.rank})}
    results["sum"] = group.sum(torch.arange(3) + group.rank)
    results["max"] = group.max(torch.tensor([-1.0 * group.rank, group.rank]))
    results["stack"] = group.stack(torch.tensor([group.rank, 7]))
    results["any"] = [group.any(group.rank == 2), group.any(False)]
    group.barrier()
    for name, counts in COUNTS.items():
        results[f"rows {name}"] = of_rows(group, counts)
        for kind in (torch.bool, torch.int64, torch.bfloat16):
            rows = (torch.arange(sum(counts) * 2).view(-1, 2) % 3).to(kind)
            results[f"{kind} {name}"] = group.gather_rows(part(rows, counts, group.rank))
    for name, make in NORMS.items():
        for shares, counts in COUNTS.items():
            results[f"norm {name} {shares}"] = of_norm(group, make(), name, counts)
    results["lonely norm"] = of_norm(group, nn.BatchNorm1d(4), "1d", (0, 1, 0))
    results |= of_gradients(group)
    return results


def of_rows(group: ProcessGroup, counts: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return all rows, the gradient with one loss a process, and the gradient with a third of one loss a process."""
    all_rows = numbers(sum(counts), 2)
    first, second = (part(all_rows, counts, group.rank).clone().requires_grad_() for _ in range(2))
    gathered_rows = group.gather_rows(first)
    ((group.rank + 1) * gathered_rows.pow(3)).sum().backward()  # type: ignore[no-untyped-call]
    (gather_with_gradients(second).prod(0).sum() / group.size).backward()  # type: ignore[no-untyped-call]
    assert first.grad is not None and second.grad is not None
    return gathered_rows.detach(), first.grad, second.grad


def of_norm(group: ProcessGroup, norm: nn.Module, name: str, counts: tuple[int, ...]) -> dict[str, Tensor]:
    """Return y, dx, dw, db and running statistics of two batches; a process without rows gets one uncounted row."""
    shape = SHAPES.get(name, (4,))
    norm = norm.double()
    for parameter in norm.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5, generator=torch.Generator().manual_seed(3))
    sync_batch_norms(norm, group)
    results: dict[str, Tensor] = {}
    for turn in range(2):
        all_rows = numbers(sum(counts), *shape, seed=turn) + 3
        share = part(all_rows, counts, group.rank)
        x = (share if len(share) else torch.full((1, *shape), 1e3, dtype=all_rows.dtype)).clone().requires_grad_()
        with contextlib.nullcontext() if len(share) else uncounted_batches(norm):
            y = norm(x)[: len(share)]
        slope = numbers(*all_rows.shape, seed=5)
        (y * part(slope, counts, group.rank)).sum().backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        results |= {f"y {turn}": y.detach(), f"dx {turn}": x.grad[: len(share)], f"rest {turn}": x.grad[len(share) :]}
    results |= {f"d{k}": group.sum(p.grad) for k, p in norm.named_parameters() if p.grad is not None}
    norm.eval()
    return results | dict(norm.named_buffers()) | {"eval": norm(torch.ones(3, *shape, dtype=torch.float64)).detach()}


def of_gradients(group: ProcessGroup) -> dict[str, Any]:
    on_one, on_none, on_all = (
        nn.Parameter(torch.zeros(2, 2, dtype=d)) for d in (torch.float32, torch.float32, torch.float64)
    )
    on_one.grad = torch.full((2, 2), 1.0) if group.rank == 1 else None
    on_all.grad = torch.full((2, 2), 0.5 + group.rank, dtype=torch.float64)
    sum_gradients(group, [on_one, on_none, on_all])
    mixed = sum_tensors(group, [torch.ones(2), torch.tensor(group.rank), torch.ones(2, 2)])
    return {"gradients": [on_one.grad, on_none.grad, on_all.grad], "sums": mixed}


def results_of_rank() -> dict[str, Any]:
    return run_collectives(process_group())


@pytest.fixture(scope="module")
def results() -> list[Mapping[str, Any]]:
    """Return the results of each of three processes."""
    return run_ranks(results_of_rank, RANKS)


def test_collectives_agree_on_all_processes(results: list[Mapping[str, Any]]) -> None:
    for rank, result in enumerate(results):
        assert result["rank"] == (rank, RANKS)
        assert result["gathered"] == [{"rank": 0}, {"rank": 1}, {"rank": 2}]
        assert result["sum"].tolist() == [3, 6, 9] and result["max"].tolist() == [0, 2]
        assert result["stack"].tolist() == [[0, 7], [1, 7], [2, 7]]
        assert result["any"] == [True, False]


@each("name", COUNTS)
def test_rows_are_gathered_by_rank_with_the_gradient_of_all_losses(name: str, results: list[Mapping[str, Any]]) -> None:
    counts = COUNTS[name]
    all_rows = numbers(sum(counts), 2).requires_grad_()
    (6 * all_rows.pow(3)).sum().backward()  # type: ignore[no-untyped-call]
    other = all_rows.detach().clone().requires_grad_()
    other.prod(0).sum().backward()  # type: ignore[no-untyped-call]
    assert all_rows.grad is not None and other.grad is not None
    for rank, result in enumerate(results):
        rows, first, second = result[f"rows {name}"]
        assert torch.equal(rows, all_rows)
        torch.testing.assert_close(first, part(all_rows.grad, counts, rank), rtol=1e-14, atol=0)
        torch.testing.assert_close(second, part(other.grad, counts, rank), rtol=1e-14, atol=0)
        for kind in (torch.bool, torch.int64, torch.bfloat16):
            expected = (torch.arange(sum(counts) * 2).view(-1, 2) % 3).to(kind)
            assert torch.equal(result[f"{kind} {name}"], expected)


@each("shares", COUNTS, "name", NORMS)
def test_batch_norm_of_several_processes_is_that_of_one(
    name: str, shares: str, results: list[Mapping[str, Any]]
) -> None:
    counts = COUNTS[shares]
    expected = of_norm(ProcessGroup(), NORMS[name](), name, (sum(counts),))
    for key in expected:
        parts = [result[f"norm {name} {shares}"][key] for result in results]
        if key.startswith(("y", "dx")):
            parts = [torch.cat(parts)]
        elif key.startswith("rest"):
            assert all(not bool(given.any()) for given in parts)
            continue
        for actual in parts:
            torch.testing.assert_close(
                actual, expected[key], rtol=1e-12, atol=1e-12, msg=f"{key}: {actual} {expected[key]}"
            )


def test_one_value_of_all_processes_is_normalised_by_running_statistics(results: list[Mapping[str, Any]]) -> None:
    result = results[1]["lonely norm"]
    assert not result["running_mean"].any() and not result["num_batches_tracked"]
    assert bool(result["y 0"].isfinite().all()) and len(result["y 0"]) == 1


def test_gradients_are_summed_and_none_stays_none_where_no_process_has_one(results: list[Mapping[str, Any]]) -> None:
    for result in results:
        on_one, on_none, on_all = result["gradients"]
        assert on_none is None
        assert on_one.tolist() == [[1, 1], [1, 1]] and on_all.tolist() == [[4.5, 4.5], [4.5, 4.5]]
        assert [x.tolist() for x in result["sums"]] == [[3, 3], 3, [[3, 3], [3, 3]]]


@each("size", [1, 2, 3, 7], "n", [0, 1, 2, 6, 7, 128])
def test_shares_cover_everything_in_order_and_differ_by_at_most_one(n: int, size: int) -> None:
    shares = [list(range(n))[ProcessGroup(rank, size).share(n)] for rank in range(size)]
    assert [item for share in shares for item in share] == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_group_of_one_returns_its_input() -> None:
    group, x = process_group(), torch.ones(2, requires_grad=True)
    assert group == ProcessGroup(0, 1) and group.main
    assert group.gather_rows(x) is x and group.sum(x) is x and group.max(x) is x
    assert group.gather(x) == [x] and group.any(True) and not group.any(False)
    with join_group("cpu") as inside:
        assert inside == group and not torch.distributed.is_initialized()
    norm = nn.BatchNorm1d(2)
    sync_batch_norms(norm, group)
    assert "forward" not in norm.__dict__


ENVIRONMENT = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1", "LOCAL_RANK": "1"}


def test_the_environment_of_torchrun_gives_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert launched_group() == ProcessGroup(0, 1) and local_rank() == 0
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert launched_group() == ProcessGroup(1, 4) and local_rank() == 1
    monkeypatch.delenv("MASTER_PORT")  # a cluster may set the others for other purposes
    assert launched_group() == ProcessGroup(0, 1)


@each("changed, message", [
    ({"RANK": "4"}, r"RANK must be in 0\.\.WORLD_SIZE-1; got 4 of 4"),
    ({"RANK": "first"}, r"RANK of the environment must be a whole number; got 'first'"),
    ({"LOSSSCOPE_TIMEOUT": "soon"}, r"LOSSSCOPE_TIMEOUT of the environment must be a whole number; got 'soon'"),
    ({"LOSSSCOPE_TIMEOUT": "1"}, r"4 processes must be able to connect at localhost:1; "),
])  # fmt: skip
def test_processes_that_cannot_connect_raise(
    changed: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "lo", **changed}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message), join_group("cpu"):
        raise AssertionError("it has connected")


def test_a_lost_process_is_distinguished_from_other_errors() -> None:
    assert is_lost_process("[gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    assert is_lost_process("NCCL communicator was aborted on rank 1")
    assert not is_lost_process("S must be one matrix to train")
