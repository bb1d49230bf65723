"""What training consists of at any moment: made fresh, kept in a checkpoint, and restored from one to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .checkpoint import Checkpoint, plain, stored_shape, stored_tokens
from .datasets.base import Dataset, Split
from .encoders.base import Encoder, encoder_spec
from .errors import InputError
from .files import fingerprint
from .objectives.base import Objective
from .offline import Offline
from .optimisers import optimiser_of
from .recipe import Recipe
from .registry import build, spec_of
from .run import Run
from .sentences import Sentences
from .tokens import Tokens
from .training_inputs import info_of, objective_of, offline_of
from .upstream import Upstream, upstream_of

Progress = Callable[[str, int, int], None]
Listener = Callable[[dict[str, Any]], None]


@dataclass
class State:
    """What changes while training."""

    model: Encoder
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    upstream: Upstream | None = None
    outer: torch.optim.Optimizer | None = None
    epoch: int = 0
    step: int = 0
    best: float = float("-inf")

    def parameters(self) -> list[nn.Parameter]:
        """Of the encoder, those that are trained."""
        return [p for p in self.model.parameters() if p.requires_grad]


@dataclass(frozen=True)
class Task:
    """What does not. main: the objective of the recipe, whose net, if it has one, learns.

    info: what is known of each training caption, by name. origins: fingerprints of the files named in the recipe.
    """

    recipe: Recipe
    run: Run
    train: Split
    val: Split
    words: Tokens
    sentences: Sentences
    kept: Mapping[str, str]
    device: torch.device
    save_every: int
    progress: Progress | None
    listener: Listener | None
    main: Objective
    offline: Offline | None = None
    info: Mapping[str, Tensor] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def objective(self, epoch: int) -> Objective:
        """What epoch `epoch` (from 0) trains with: the main one, or its warm-up."""
        return self.recipe.objective_of(epoch, self.main)  # type: ignore[no-any-return]

    @cached_property
    def val_sentences(self) -> Sentences:
        """The validation captions; only an outer step reads them."""
        return Sentences(self.val, self.words)


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
    main = objective_of(recipe)
    start = Checkpoint.load(recipe.init) if recipe.init and checkpoint is None else None
    known = checkpoint or start
    spec = encoder_spec(recipe.encoder)
    words = known.words() if known else spec.tokens(splits["train"].captions, recipe.min_count)
    sentences = Sentences(splits["train"], words)
    _ = sentences.lengths()  # encoded now: captions that do not fit are told of before anything is written
    info, offline = info_of(recipe, main, splits["train"]), offline_of(recipe, splits["train"])
    origins = {name: fingerprint(Path(path)) for name in ("init", "info") if (path := getattr(recipe, name))}
    origins |= {"offline": offline.fingerprint} if offline else {}
    if checkpoint is not None:
        for name, now in origins.items():
            if checkpoint.training.get(f"{name}_fingerprint", now) != now:
                raise InputError(
                    f"{name} of {run.path} must be what the run began with; {getattr(recipe, name)} changed"
                )
    return Task(
        recipe,
        run,
        splits["train"],
        splits["val"],
        words,
        sentences,
        known.kept if known else spec.kept(),
        torch.device(device),
        save_every,
        progress,
        listener,
        main,
        offline,
        info,
        origins,
    )


def fresh(task: Task) -> State:
    """A new model and optimiser, from the seed; the weights of `init` where one is named, of the same encoder."""
    torch.manual_seed(task.recipe.seed)
    if task.recipe.init:
        start = Checkpoint.load(task.recipe.init)
        if start.encoder != task.recipe.encoder:
            raise InputError(
                f"--init must be of the encoder {task.recipe.encoder}; {task.recipe.init} is of {start.encoder}"
            )
        return _with_optimisers(task, start.model())
    model: Encoder = encoder_spec(task.recipe.encoder).build(task.train.images.shape, len(task.words))
    return _with_optimisers(task, model)


def restored(task: Task, checkpoint: Checkpoint, trust_code: bool) -> State:
    """Model, optimisers and random states of a checkpoint. Raises InputError when it has none or they are damaged."""
    state = _with_optimisers(task, checkpoint.model(trust_code))
    if checkpoint.optimiser is None or checkpoint.rng is None:
        raise InputError(f"{task.run.last} must hold the optimiser's state; it is for probing only")
    try:
        learnt = _learnt(task, state)
        if learnt is not None:
            learnt.load_state_dict(checkpoint.objective_state or {})
        state.optimiser.load_state_dict(checkpoint.optimiser["adam"])
        state.scaler.load_state_dict(checkpoint.optimiser["scaler"])
        if state.outer is not None:
            state.outer.load_state_dict(checkpoint.optimiser["outer"])
        state.best = float(checkpoint.optimiser["best"])
        torch.set_rng_state(checkpoint.rng["cpu"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{task.run.last} must hold the state of Adam and of the random numbers; {error}") from error
    state.epoch, state.step = checkpoint.epoch, checkpoint.step
    if task.device.type == "cuda" and "cuda" in checkpoint.rng:
        torch.cuda.set_rng_state(checkpoint.rng["cuda"], task.device)
    return state


def _with_optimisers(task: Task, model: Encoder) -> State:
    """The optimiser over the encoder, and scale and bias where they are learnt; another for the objective's net."""
    model = model.to(task.device)
    upstream, net = upstream_of(task.main), task.main.state()
    if upstream is not None:
        upstream.to(task.device)
    if net is not None:
        net.to(task.device)
    optimiser = optimiser_of(task.recipe, model, list(upstream.parameters()) if upstream else [])
    outer = torch.optim.Adam(net.parameters(), lr=getattr(task.main, "meta_lr", 1e-3)) if net is not None else None
    scaler = torch.amp.GradScaler(task.device.type, enabled=task.recipe.precision == "fp16")
    return State(model, optimiser, scaler, upstream, outer)


def _learnt(task: Task, state: State) -> nn.Module | None:
    """What is learnt beside the encoder: scale and bias, or the objective's net."""
    return state.upstream if state.upstream is not None else task.main.state()


def snapshot(task: Task, state: State, metrics: dict[str, float]) -> Checkpoint:
    """Everything of this moment, to go on from."""
    rng = {"cpu": torch.get_rng_state()}
    if task.device.type == "cuda":
        rng["cuda"] = torch.cuda.get_rng_state(task.device)
    learnt = _learnt(task, state)
    main = task.main if state.upstream is None else state.upstream.at(task.main)
    optimisers = {"adam": state.optimiser.state_dict(), "scaler": state.scaler.state_dict(), "best": state.best}
    if state.outer is not None:
        optimisers["outer"] = state.outer.state_dict()
    return Checkpoint(
        encoder=task.recipe.encoder,
        objective=spec_of(main),
        data=task.recipe.data,
        **stored_tokens(task.words),
        kept=dict(task.kept),
        item_shape=stored_shape(task.train.images.shape),
        data_fingerprint=task.train.fingerprint,
        epoch=state.epoch,
        step=state.step,
        metrics=metrics,
        weights={name: tensor.detach().cpu() for name, tensor in state.model.state_dict().items()},
        training={**plain(task.recipe), **{f"{name}_fingerprint": value for name, value in task.origins.items()}},
        optimiser=optimisers,
        rng=rng,
        objective_state=None if learnt is None else {n: x.detach().cpu() for n, x in learnt.state_dict().items()},
    )
