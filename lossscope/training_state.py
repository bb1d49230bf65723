"""What training consists of at any moment: made fresh, kept in a checkpoint, and restored from one to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .checkpoint import Checkpoint, plain
from .datasets.base import Dataset, Split
from .encoders.base import Encoder
from .errors import InputError
from .recipe import Recipe
from .registry import build
from .run import Run
from .vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]
Listener = Callable[[dict[str, Any]], None]


@dataclass
class State:
    """What changes while training."""

    model: Encoder
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    epoch: int = 0
    step: int = 0
    best: float = float("-inf")


@dataclass(frozen=True)
class Task:
    """What does not."""

    recipe: Recipe
    run: Run
    train: Split
    val: Split
    words: Vocabulary
    tokens: list[list[int]]
    device: torch.device
    save_every: int
    progress: Progress | None
    listener: Listener | None


def same_choices(recipe: Recipe, checkpoint: Checkpoint, run: Run) -> None:
    """Raise InputError when a run is to go on with other choices than it began with, or to fewer epochs."""
    now, then = plain(recipe), checkpoint.training
    other = [f"{k} = {v!r} (was {then.get(k)!r})" for k, v in now.items() if k != "epochs" and v != then.get(k)]
    if other:
        raise InputError(
            f"{run.config} must state what the run began with; got {', '.join(other)}. Start a new run for that"
        )
    if recipe.epochs < checkpoint.epoch:
        raise InputError(
            f"--epochs must be at least the {checkpoint.epoch} that {run.path} has finished; got {recipe.epochs}"
        )


def prepared(
    recipe: Recipe,
    run: Run,
    device: str,
    save_every: int,
    progress: Progress | None,
    listener: Listener | None,
    checkpoint: Checkpoint | None,
) -> Task:
    """Data, vocabulary and tokens of a recipe, checked before anything is written. Raises InputError."""
    data: Dataset = build("datasets", recipe.data)
    splits = {name: data.split(name) for name in ("train", "val")}
    for split in splits.values():
        loader = getattr(split.images, "load_all", None)
        if loader is not None:
            loader(
                (lambda done, total, n=split.name: progress(f"reading {n} images", done, total)) if progress else None
            )
    if checkpoint is not None and splits["train"].fingerprint != checkpoint.data_fingerprint:
        raise InputError(f"data of {run.path} must be what the run began with; {recipe.data} has changed since")
    if len(set(splits["train"].caption_image.tolist())) < 2:
        raise InputError(f"the training split must hold at least 2 images with captions; {recipe.data} has fewer")
    recipe.batches()
    words = checkpoint.words() if checkpoint else Vocabulary.build(splits["train"].captions, recipe.min_count)
    tokens = [words.encode(caption) for caption in splits["train"].captions]
    return Task(
        recipe,
        run,
        splits["train"],
        splits["val"],
        words,
        tokens,
        torch.device(device),
        save_every,
        progress,
        listener,
    )


def fresh(task: Task) -> State:
    """A new model and optimiser, from the seed."""
    torch.manual_seed(task.recipe.seed)
    shape = tuple(task.train.images.shape)
    model: Encoder = build("encoders", task.recipe.encoder).build(shape, len(task.words))
    return _with_optimiser(task, model)


def restored(task: Task, checkpoint: Checkpoint, trust_code: bool) -> State:
    """Model, optimiser and random states of a checkpoint. Raises InputError when it has none or they are damaged."""
    state = _with_optimiser(task, checkpoint.model(trust_code))
    if checkpoint.optimiser is None or checkpoint.rng is None:
        raise InputError(f"{task.run.last} must hold the optimiser's state; it is for probing only")
    try:
        state.optimiser.load_state_dict(checkpoint.optimiser["adam"])
        state.scaler.load_state_dict(checkpoint.optimiser["scaler"])
        state.best = float(checkpoint.optimiser["best"])
        torch.set_rng_state(checkpoint.rng["cpu"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{task.run.last} must hold the state of Adam and of the random numbers; {error}") from error
    state.epoch, state.step = checkpoint.epoch, checkpoint.step
    if task.device.type == "cuda" and "cuda" in checkpoint.rng:
        torch.cuda.set_rng_state(checkpoint.rng["cuda"], task.device)
    return state


def _with_optimiser(task: Task, model: Encoder) -> State:
    model = model.to(task.device)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=task.recipe.lr)
    scaler = torch.amp.GradScaler(task.device.type, enabled=task.recipe.precision == "fp16")
    return State(model, optimiser, scaler)


def snapshot(task: Task, state: State, metrics: dict[str, float]) -> Checkpoint:
    """Everything of this moment, to go on from."""
    rng = {"cpu": torch.get_rng_state()}
    if task.device.type == "cuda":
        rng["cuda"] = torch.cuda.get_rng_state(task.device)
    return Checkpoint(
        encoder=task.recipe.encoder,
        objective=task.recipe.objective,
        data=task.recipe.data,
        vocabulary=task.words.to_list(),
        item_shape=list(task.train.images.shape),
        data_fingerprint=task.train.fingerprint,
        epoch=state.epoch,
        step=state.step,
        metrics=metrics,
        weights={name: tensor.detach().cpu() for name, tensor in state.model.state_dict().items()},
        training=plain(task.recipe),
        optimiser={
            "adam": state.optimiser.state_dict(),
            "scaler": state.scaler.state_dict(),
            "best": state.best,
        },
        rng=rng,
    )
