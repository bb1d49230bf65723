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
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import Items
from lossscope.errors import InputError
from lossscope.objectives.checks.spawn import join_file_group
from lossscope.registry import build, names
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

RANKS = 3
SIZE, WORDS, N = 16, 12, 5
WIDTHS = {"face": 5, "rgb": 4}
LENGTHS = torch.tensor([5, 3, 6, 2, 4])
REGIONS = "dim=8,words=4"
XVLM = (
    "xvlm:embed=32,depths=1/1,window=4,patch=2,width=64,layers=2,fused=1,positions=16,max_tokens=8,dim=8,dropout=0,"
    "drop_path=0,augment=false"
)
SPECS = {
    "bfan": [f"bfan:{REGIONS}"],
    "ce": ["ce:dim=8,clusters=face=2,text_clusters=3,word_dim=4,words=embedding", "ce:dim=8,clusters=face=2,"
           "text_clusters=3,word_dim=4,words=embedding,padded=true,rows=face=3,keep_missing=true"],
    "clip": ["clip:width=16,depth=1,heads=2,dim=8"],
    "mmt": ["mmt:dim=8,layers=1,heads=2,ffn=12,bert=1x64,dropout=0",
            "mmt:dim=8,layers=1,heads=2,bert=1x64,dropout=0,keep_missing=false"],
    "scan": [f"scan:direction={direction},{REGIONS}" for direction in ("t2i", "i2t")],
    "sgraf": [f"sgraf:module={module},sim_dim=4,{REGIONS}" for module in ("sgr", "saf")],
    "siglip": ["siglip:path={folder}"],
    "vse_infty": [f"vse_infty:text=bigru,drop=0,{REGIONS}", "vse_infty:bert=1x64,drop=0,dim=8"],
    "vsepp": [
        f"vsepp:{REGIONS},width=4",
        f"vsepp:{REGIONS},width=4,centre=false",
        f"vsepp:image=resnet18,finetune=true,{REGIONS}",
        f"vsepp:image=linear,measure=order,{REGIONS}",
    ],
    "vsrn": [f"vsrn:{REGIONS},captions=true", f"vsrn:{REGIONS},region_norm_axis=regions"],
    "xvlm": [f"{XVLM},score=itc", f"{XVLM},score=itc,itm_loss=true", f"{XVLM},score=itm,itm_loss=true"],
}  # fmt: skip
EVERY = [spec for specs in SPECS.values() for spec in specs]
BATCHES = (N, 2)  # of two pairs, one of three processes has none
PIXELS = ("clip", "siglip", "xvlm", "vsepp:dim", "vsepp:image=resnet")


def items(spec: str) -> tuple[Any, Items]:
    """The shape of an item, and N of them."""
    made = torch.Generator().manual_seed(1)
    if spec.startswith(("ce", "mmt")):
        experts: dict[str, Tensor] = {}
        for name, width in WIDTHS.items():
            experts |= {name: torch.randn(N, 3, width, generator=made), f"{name}.length": torch.tensor([3, 2, 1, 3, 0])}
            experts |= {f"{name}.time": torch.rand(N, 3, generator=made)}
        return item_shape_of(WIDTHS, 3), experts
    if spec.startswith(PIXELS):
        side = 48 if "resnet" in spec else SIZE  # so that its last batch norms see more than a number of each picture
        return (3, side, side), torch.randint(0, 256, (N, 3, side, side), dtype=torch.uint8, generator=made)
    return (5, 7), torch.randn(N, 5, 7, generator=made)


class StoredImages:
    """Images of a split, in memory."""

    def __init__(self, stored: Items) -> None:
        self.stored = stored

    def take(self, rows: Any) -> Any:
        if isinstance(self.stored, Tensor):
            return self.stored[rows].numpy()
        return {name: column[rows].numpy() for name, column in self.stored.items()}


def captions() -> Tensor:
    ids = torch.randint(4, WORDS, (N, 6), generator=torch.Generator().manual_seed(2))
    ids[:, 0] = 2
    ids[torch.arange(N), LENGTHS - 1] = 3
    return ids * (torch.arange(6) < LENGTHS[:, None])


CPU, SEED = torch.device("cpu"), StepSeed(3, 0, 4)


def step(spec: str, pairs: int, here: ProcessGroup) -> dict[str, Any]:
    """S and the extra loss of a batch, and what one step leaves: gradients and buffers."""
    torch.manual_seed(0)
    shape, stored = items(spec)
    model: Encoder = build("encoders", spec).build(shape, WORDS).train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    sync_batch_norms(model, here)
    rows = np.arange(pairs, dtype=np.int64)
    words = captions()[:pairs], LENGTHS[:pairs]
    pixels: Any = StoredImages(stored)
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder of a small SigLIP."""
    transformers = pytest.importorskip("transformers")
    tower = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**tower, "vocab_size": WORDS, "max_position_embeddings": 8, "projection_size": 16, "pad_token_id": 1}
    text |= {"bos_token_id": 2, "eos_token_id": 3}
    config = transformers.SiglipConfig(text_config=text, vision_config={**tower, "image_size": SIZE, "patch_size": 8})
    path = tmp_path_factory.mktemp("siglip")
    transformers.SiglipModel(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def results(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Any]]:
    """What each of three processes computes."""
    path = tmp_path_factory.mktemp("three")
    command = [sys.executable, __file__, str(path), str(folder)]
    running = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
    errors = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0] * RANKS, errors
    return [torch.load(path / f"{rank}.pt", weights_only=True) for rank in range(RANKS)]


def test_every_encoder_is_shared_here() -> None:
    assert set(SPECS) == set(names("encoders"))


@pytest.mark.slow
@pytest.mark.parametrize("pairs", BATCHES)
@pytest.mark.parametrize("spec", EVERY)
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


@pytest.mark.slow
def test_all_processes_end_with_the_same_bits(results: list[Mapping[str, Any]]) -> None:
    for spec in EVERY:
        for pairs in BATCHES:
            first, *others = (mine[f"{spec} {pairs}"] for mine in results)
            for other in others:
                assert [n for n, x in first.items() if x is not None and not torch.equal(x, other[n])] == []


@pytest.mark.slow
def test_random_numbers_are_of_one_process_or_of_all_and_a_step_repeats_them(results: list[Mapping[str, Any]]) -> None:
    own, same = ([mine["random numbers"][kind] for mine in results] for kind in ("own", "same"))
    assert same[0] == same[1] == same[2]
    assert len({draws[0] for draws in own} | {draws[2] for draws in own} | {same[0][0], same[0][2]}) == 8
    assert all(draws[0] == draws[1] for draws in (*own, *same))


@pytest.mark.slow
def test_parameters_that_differ_by_a_bit_are_an_error_that_names_the_rank(results: list[Mapping[str, Any]]) -> None:
    message = "parameters must be the same in all processes; rank 1's in epoch 0 are not rank 0's. "
    assert [mine["disagreement"].startswith(message) for mine in results] == [True] * RANKS


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # batch norms of two items magnify what rounding leaves
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    path, given, rank = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with join_file_group(path / "meeting", rank, RANKS):
        results: dict[str, Any] = {
            f"{spec} {pairs}": step(spec.format(folder=given), pairs, process_group())
            for spec in EVERY
            for pairs in BATCHES
        }
        if rank == 0:
            results |= {
                f"{spec} {pairs} alone": step(spec.format(folder=given), pairs, ProcessGroup())
                for spec in EVERY
                for pairs in BATCHES
            }
        results |= {"random numbers": random_numbers(process_group()), "disagreement": disagreement(process_group())}
        torch.save(results, path / f"{rank}.pt")
    os._exit(0)  # threads of torch's may abort a process that takes its time
