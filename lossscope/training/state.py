"""What training consists of at any moment: made fresh, kept in a checkpoint, and restored from one to the same bits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from lossscope.encoders.base import Encoder, encoder_spec, require_fit
from lossscope.errors import InputError
from lossscope.registry import spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint, stored_shape, stored_tokens
from lossscope.spec import Spec

from .learnt_scale import LearntScale, learnt_scale_of
from .optimisers import optimiser_of
from .recipe_files import plain_values
from .sync_batch_norm import sync_batch_norms
from .task import Task


@dataclass
class TrainState:
    """What changes while training."""

    model: Encoder
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    upstream: LearntScale | None = None
    outer: torch.optim.Optimizer | None = None
    epoch: int = 0
    step: int = 0
    best: float = float("-inf")

    def parameters(self) -> list[nn.Parameter]:
        """Of the encoder, those that are trained."""
        return [p for p in self.model.parameters() if p.requires_grad]


def new_state(task: Task) -> TrainState:
    """A new model and optimiser, from the seed; the weights of `init` where one is named."""
    torch.manual_seed(task.recipe.seed)
    if task.recipe.init:
        return _with_optimisers(task, _begun(task, Checkpoint.load(task.recipe.init)))
    model: Encoder = encoder_spec(task.recipe.encoder).build(task.train.images.shape, len(task.words))
    return _with_optimisers(task, model)


def restore_state(task: Task, checkpoint: Checkpoint, trust_code: bool) -> TrainState:
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


def _begun(task: Task, start: Checkpoint) -> Encoder:
    """The recipe's encoder with the weights of a checkpoint of the same family, all of them.

    Its options may differ where the weights stay the same (fine-tuning), and whole parts that the checkpoint does not
    have (an extra layer, a caption branch) begin anew. Raises InputError for anything else.
    """
    recipe = task.recipe
    if Spec.parse(start.encoder).name != Spec.parse(recipe.encoder).name:
        raise InputError(f"--init must be of the encoder {recipe.encoder}; {recipe.init} is of {start.encoder}")
    if start.shape != task.train.images.shape:
        items = task.train.images.shape
        raise InputError(f"--init must be of items {items}, as {recipe.data} has; {recipe.init} takes {start.shape}")
    model = encoder_spec(recipe.encoder).rebuild(start.shape, len(task.words), start.kept)
    own = model.state_dict()
    held = {name.partition(".")[0] for name in start.weights}
    new = {name: tensor for name, tensor in own.items() if name.partition(".")[0] not in held}
    require_fit(own, {**new, **start.weights}, f"{recipe.encoder}, to begin with {recipe.init}")
    model.load_state_dict({**new, **start.weights})
    return model


def _with_optimisers(task: Task, model: Encoder) -> TrainState:
    """The optimiser over the encoder, and scale and bias where they are learnt; another for the objective's net."""
    if task.main.needs_embeddings and model.pairwise:
        raise InputError(
            f"{task.recipe.objective} must be given embeddings; {task.recipe.encoder} scores pairs and has none"
        )
    model = model.to(task.device)
    sync_batch_norms(model, task.processes)
    upstream, net = learnt_scale_of(task.main), task.main.network()
    if upstream is not None:
        upstream.to(task.device)
    if net is not None:
        net.to(task.device)
    optimiser = optimiser_of(task.recipe, model, list(upstream.parameters()) if upstream else [])
    outer = torch.optim.Adam(net.parameters(), lr=getattr(task.main, "meta_lr", 1e-3)) if net is not None else None
    scaler = torch.amp.GradScaler(task.device.type, enabled=task.recipe.precision == "fp16")
    return TrainState(model, optimiser, scaler, upstream, outer)


def _learnt(task: Task, state: TrainState) -> nn.Module | None:
    """What is learnt beside the encoder: scale and bias, or the objective's net."""
    return state.upstream if state.upstream is not None else task.main.network()


def snapshot(task: Task, state: TrainState, metrics: dict[str, float]) -> Checkpoint:
    """Everything of this moment, to go on from."""
    rng = {"cpu": torch.get_rng_state()}
    if task.device.type == "cuda":
        rng["cuda"] = torch.cuda.get_rng_state(task.device)
    learnt = _learnt(task, state)
    main = task.main if state.upstream is None else state.upstream.with_learnt(task.main)
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
        training={
            **plain_values(task.recipe),
            **{f"{name}_fingerprint": value for name, value in task.origins.items()},
        },
        optimiser=optimisers,
        rng=rng,
        objective_state=None if learnt is None else {n: x.detach().cpu() for n, x in learnt.state_dict().items()},
    )
