"""Does training on the device repeat its bits, also after a resume, and learn as on the CPU?"""

from __future__ import annotations

import csv
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lossscope.errors import Interrupted
from lossscope.io.run_folder import Run
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from tests.gpu.second_device import NAME

CNN = "vsepp:dim=16,words=8,width=4"
PLAIN = Recipe(
    data="scenes:train=30,val=10,test=10,size=16", encoder=CNN, objective="ntxent", epochs=2, batch_size=32, lr=0.002
)
RECIPES = {
    "plain": PLAIN,
    "learnt scale and bias": replace(PLAIN, objective="siglip"),
    "coupled": replace(PLAIN, objective="goal:triplet=con,pair=sig-ms"),
    "many positives": replace(PLAIN, objective="supcon", batch_size=7),
    "outer step": replace(PLAIN, objective="meta_spn:hidden=3", warmup=0),
    "scored pairs": replace(PLAIN, encoder=f"{CNN},measure=order"),
    "transformers": replace(PLAIN, encoder="clip:width=16,depth=1,heads=2,dim=8", objective="infonce"),
    "masked": replace(PLAIN, same_image="mask", weight_decay=0.01, optimiser="adamw"),
    "texts": replace(
        PLAIN, data="passages:train=60,val=20,test=20,negatives=3", encoder="biencoder:dim=16,words=16", min_count=1,
        mask="same-item;same-text;above:margin=0.05",
    ),
}  # fmt: skip
FIRST_STEPS = 3  # later, rounding has grown too much to compare two devices
RANDOM = replace(PLAIN, data="scenes:train=30,val=10,test=10,size=20", encoder=f"{CNN},crop=16", epochs=3)


def rows(run: Run) -> list[dict[str, str]]:
    with open(run.trajectory, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def train_recipe(recipe: Recipe, out: Path, device: torch.device) -> Run:
    return train(recipe, out, str(device))


def weights(run: Run) -> dict[str, torch.Tensor]:
    return Checkpoint.load(run.path / "checkpoints" / "last.pt").weights


def assert_same_bits(first: Run, second: Run) -> None:
    assert first.trajectory.read_bytes() == second.trajectory.read_bytes()
    expected = weights(first)
    assert [name for name, x in weights(second).items() if not torch.equal(x, expected[name])] == []


@pytest.fixture(autouse=True)
def _inference(device: torch.device, request: pytest.FixtureRequest) -> None:
    """Skip views in inference mode, which transformers take and the simulated device cannot make."""
    if device.type == NAME and "transformers" in request.node.name:
        pytest.skip("views in inference mode of tensors that are made in Python")


@pytest.mark.parametrize("name", RECIPES)
def test_the_device_learns_what_the_cpu_learns(name: str, device: torch.device, tmp_path: Path) -> None:
    recipe = replace(RECIPES[name], epochs=1)
    expected = rows(train_recipe(recipe, tmp_path / "expected", torch.device("cpu")))
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # else convolutions use TF32
        ours = rows(train_recipe(recipe, tmp_path / "ours", device))
    assert len(ours) == len(expected)
    for row, other in zip(ours[:FIRST_STEPS], expected, strict=False):
        assert float(row["loss"]) == pytest.approx(float(other["loss"]), rel=2e-3, nan_ok=True)


@pytest.mark.parametrize("name", RECIPES)
def test_two_trainings_have_the_same_bits(name: str, device: torch.device, tmp_path: Path) -> None:
    assert_same_bits(*(train_recipe(RECIPES[name], tmp_path / str(turn), device) for turn in range(2)))


@pytest.mark.parametrize("recipe", [RANDOM, RECIPES["outer step"]], ids=["random crops", "outer step"])
def test_a_stopped_run_resumes_to_the_same_bits(recipe: Recipe, device: torch.device, tmp_path: Path) -> None:
    whole = train_recipe(recipe, tmp_path / "whole", device)
    done: list[str] = []

    def stop(label: str, _step: int, _total: int) -> None:
        done.append(label)
        if label.startswith("epoch") and len(done) >= 4:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "broken", str(device), observers=Observers(progress=stop))
    assert_same_bits(whole, resume(tmp_path / "broken", device=str(device)))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_learns(precision: str, device: torch.device, is_cuda: bool, tmp_path: Path) -> None:
    if precision == "fp16" and not is_cuda:
        pytest.skip("float16 is trained on GPUs")
    recipe = replace(PLAIN, precision=precision, epochs=4)  # type: ignore[arg-type]
    losses = [float(row["loss"]) for row in rows(train_recipe(recipe, tmp_path / "one", device))]
    assert losses[-1] < losses[0] and all(loss == loss for loss in losses)
    assert_same_bits(train_recipe(recipe, tmp_path / "two", device), train_recipe(recipe, tmp_path / "three", device))


def test_mixed_precision_resumes_to_the_same_bits(device: torch.device, is_cuda: bool, tmp_path: Path) -> None:
    recipe = replace(PLAIN, precision="fp16" if is_cuda else "bf16", epochs=2)
    whole = train_recipe(recipe, tmp_path / "whole", device)
    half = train_recipe(replace(recipe, epochs=1), tmp_path / "half", device)
    assert_same_bits(whole, resume(half.path, 2, str(device)))


def test_a_run_of_the_device_is_read_on_the_cpu(device: torch.device, tmp_path: Path) -> None:
    run = train_recipe(replace(PLAIN, epochs=1), tmp_path / "run", device)
    expected = load(run.best, cache=False, device="cpu")
    ours = load(run.best, cache=False, device=str(device))
    assert expected.images is not None and ours.images is not None
    torch.testing.assert_close(ours.images.cpu(), expected.images, rtol=1e-4, atol=1e-5)
