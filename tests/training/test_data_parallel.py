"""Every encoder, a batch shared by three processes: S, the extra loss, gradients and buffers are those of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.core.similarity import pair_mask
from lossscope.core.weights import backward
from lossscope.encoders.types import Items
from lossscope.errors import InputError
from lossscope.objectives.checks.spawn import join_file_group
from lossscope.training.data_parallel import (
    StepSeed,
    checksums,
    encode_shared,
    require_agreement,
    seed_per_rank,
    shared_rng,
    sum_gradients,
)
from lossscope.training.sync_batch_norm import sync_batch_norms
from tests.encoders.examples import Example, N, captions, double_precision, examples, is_built_in, without_dropout

RANKS = 3
FIRST = {example.name: example for example in reversed(examples())}
SHARED = {  # of the other examples from files, only the initial weights differ; plug-ins are not tested here
    example.spec: example
    for example in examples()
    if is_built_in(example.name) and (example.files is None or example is FIRST[example.name])
}
BATCHES = (N, 2)  # of two pairs, one of three processes has none


class StoredImages:
    """Images of a split, in memory."""

    def __init__(self, stored: Items) -> None:
        self.stored = stored

    def take(self, rows: Any) -> Any:
        if isinstance(self.stored, Tensor):
            return self.stored[rows].numpy()
        return {name: column[rows].numpy() for name, column in self.stored.items()}


CPU, SEED = torch.device("cpu"), StepSeed(3, 0, 4)


def step(example: Example, folder: Path, pairs: int, here: ProcessGroup) -> dict[str, Any]:
    """S and the extra loss of a batch, and what one step leaves: gradients and buffers."""
    spec = example.options(folder, example.quiet)
    model = without_dropout(example.build(spec)).train()
    sync_batch_norms(model, here)
    rows = np.arange(pairs, dtype=np.int64)
    ids, lengths = captions(spec)
    words = ids[:pairs], lengths[:pairs]
    pixels: Any = StoredImages(example.items(spec))
    images, texts = encode_shared(model, pixels, Batch(rows, rows, "pairs"), words, here)
    with shared_rng(here, CPU, SEED):
        if here.size == 1:
            torch.manual_seed(SEED.of(-1))  # what many draw there
        S = model.score(images, texts)
        assert isinstance(S, Tensor)
        extra = model.extra_loss(images, texts, S, pair_mask(torch.arange(pairs)), *words)
    G = torch.randn(S.shape, generator=torch.Generator().manual_seed(9))
    backward(S, G, 1 / here.size, extra)
    sum_gradients(here, list(model.parameters()))
    return {
        "S": S.detach(),
        "extra loss": None if extra is None else extra.detach(),
        **{f"gradient of {name}": p.grad for name, p in model.named_parameters()},
        **dict(model.named_buffers()),
    }


def random_numbers(here: ProcessGroup) -> dict[str, list[int]]:
    """Random numbers of one process and of all, twice in the same step, then in the next."""
    drawn: dict[str, list[int]] = {"own": [], "same": []}
    for place in (4, 4, 5):
        seed = StepSeed(3, 0, place)
        seed_per_rank(here, seed)
        with shared_rng(here, CPU, seed):
            drawn["same"].append(int(torch.randint(1 << 40, ())))
        drawn["own"].append(int(torch.randint(1 << 40, ())))
    return drawn


def disagreement(here: ProcessGroup) -> str:
    """What is said when the parameters of rank 1 have moved by one bit."""
    model = nn.Linear(3, 3)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)

    def require() -> None:
        values = {"parameters": checksums(dict(model.named_parameters())), "training data": "f"}
        require_agreement(here, values, 0, Path("runs/x"))

    require()
    if here.rank == 1:
        with torch.no_grad():
            model.weight[1, 1] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    try:
        require()
    except InputError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Any]]:
    """What each of three processes computes."""
    pytest.importorskip("transformers")
    path = tmp_path_factory.mktemp("three")
    for index, example in enumerate(SHARED.values()):
        example.options(path / f"files{index}")
    command = [sys.executable, "-m", "tests.training.test_data_parallel", str(path)]
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen([*command, str(rank)], cwd=root, stderr=subprocess.PIPE, text=True) for rank in range(RANKS)
    ]
    errors = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0] * RANKS, errors
    return [torch.load(path / f"{rank}.pt", weights_only=True) for rank in range(RANKS)]


@pytest.mark.parametrize("pairs", BATCHES)
@pytest.mark.parametrize("spec", SHARED)
def test_a_batch_shared_by_three_gives_what_one_gives(spec: str, pairs: int, results: list[Mapping[str, Any]]) -> None:
    alone = results[0][f"{spec} {pairs} alone"]
    for mine in results:
        many = mine[f"{spec} {pairs}"]
        assert many.keys() == alone.keys()
        for name, expected in alone.items():
            assert far(many[name], expected) < 1e-8, name


def far(x: Tensor | None, expected: Tensor | None) -> float:
    """The largest difference, beside the largest number; 0 where neither is there."""
    if x is None or expected is None:
        return 0.0 if x is expected else float("inf")
    one, other = x.double(), expected.double()
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-3))


def test_all_processes_end_with_the_same_bits(results: list[Mapping[str, Any]]) -> None:
    for spec in SHARED:
        for pairs in BATCHES:
            first, *others = (mine[f"{spec} {pairs}"] for mine in results)
            for other in others:
                assert [n for n, x in first.items() if x is not None and not torch.equal(x, other[n])] == []


def test_random_numbers_are_of_one_process_or_of_all_and_a_step_repeats_them(results: list[Mapping[str, Any]]) -> None:
    own, same = ([mine["random numbers"][kind] for mine in results] for kind in ("own", "same"))
    assert same[0] == same[1] == same[2]
    assert len({draws[0] for draws in own} | {draws[2] for draws in own} | {same[0][0], same[0][2]}) == 8
    assert all(draws[0] == draws[1] for draws in (*own, *same))


def test_parameters_that_differ_by_a_bit_are_an_error_that_names_the_rank(results: list[Mapping[str, Any]]) -> None:
    message = "parameters must be the same in all processes; rank 1's in epoch 0 are not rank 0's. "
    assert [mine["disagreement"].startswith(message) for mine in results] == [True] * RANKS


if __name__ == "__main__":
    torch.set_num_threads(1)
    path, rank = Path(sys.argv[1]), int(sys.argv[2])
    # batch norms of two items magnify what rounding leaves
    with double_precision(), join_file_group(path / "meeting", rank, RANKS):
        own: dict[str, Any] = {}
        for index, (spec, example) in enumerate(SHARED.items()):
            for pairs in BATCHES:
                own[f"{spec} {pairs}"] = step(example, path / f"files{index}", pairs, process_group())
                if rank == 0:
                    own[f"{spec} {pairs} alone"] = step(example, path / f"files{index}", pairs, ProcessGroup())
        own |= {"random numbers": random_numbers(process_group()), "disagreement": disagreement(process_group())}
        torch.save(own, path / f"{rank}.pt")
    os._exit(0)  # threads of torch's may abort a process that takes its time
