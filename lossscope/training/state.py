"""Make the state of a training, store it in a checkpoint, and restore it to the same bits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from lossscope.encoders.base import Encoder, require_fit
from lossscope.encoders.types import fits_shape
from lossscope.errors import InputError
from lossscope.io.trusted_code import require_trusted
from lossscope.registry import spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint, stored_shape, stored_tokens
from lossscope.spec import Spec

from .learnt_scale import LearntScale, learnt_scale_of
from .optimisers import build_optimiser
from .reading import read_start
from .sync_batch_norm import sync_batch_norms
from .task import Task


@dataclass
class TrainState:
    """Parameters, optimisers, and the position in the run."""

    model: Encoder
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    learnt_scale: LearntScale | None = None  # applied to S before the objective
    network_optimiser: torch.optim.Optimizer | None = None  # of the objective's network
    epoch: int = 0  # finished epochs
    step: int = 0  # finished steps of the current epoch
    best: float = float("-inf")  # score of the best epoch
    labels: torch.Tensor | None = None  # (M,) soft labels of the training captions in this epoch, if it has any

    def parameters(self) -> list[nn.Parameter]:
        """Return the trained parameters of the encoder."""
        return [p for p in self.model.parameters() if p.requires_grad]


def new_state(task: Task) -> TrainState:
    """Build model and optimisers from the seed, with the weights of `init` if the recipe names it."""
    torch.manual_seed(task.recipe.seed)
    if task.recipe.init:
        return _with_optimisers(task, _with_weights_of(task, read_start(task.recipe.init)))
    return _with_optimisers(task, task.encoder.build(task.train.images.shape, len(task.tokeniser)))


def restore_state(task: Task, checkpoint: Checkpoint, path: Path) -> TrainState:
    """Restore model, optimisers and random states of a checkpoint that was read from `path`.

    Raises InputError if its training state is missing or damaged.
    """
    require_trusted([checkpoint.encoder], path)
    state = _with_optimisers(task, checkpoint.model())
    if checkpoint.optimiser is None or checkpoint.rng is None:
        raise InputError(f"{path} must hold the optimiser's state; it is for probing only")
    try:
        learnt = _learnt_module(task, state)
        if learnt is not None:
            learnt.load_state_dict(checkpoint.objective_state or {})
        state.optimiser.load_state_dict(checkpoint.optimiser["adam"])
        state.scaler.load_state_dict(checkpoint.optimiser["scaler"])
        if state.network_optimiser is not None:
            state.network_optimiser.load_state_dict(checkpoint.optimiser["outer"])
        state.best = float(checkpoint.optimiser["best"])
        state.labels = checkpoint.optimiser.get("labels")
        if state.labels is not None and state.labels.shape != (len(task.train.captions),):
            raise ValueError(f"labels are {tuple(state.labels.shape)}")
        torch.set_rng_state(checkpoint.rng["cpu"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise InputError(f"{path} must hold the state of Adam and of the random numbers; {error}") from error
    state.epoch, state.step = checkpoint.epoch, checkpoint.step
    if task.device.type == "cuda" and "cuda" in checkpoint.rng:
        torch.cuda.set_rng_state(checkpoint.rng["cuda"], task.device)
    return state


def snapshot(task: Task, state: TrainState, metrics: dict[str, float]) -> Checkpoint:
    """Return a checkpoint with everything that a resumed run needs."""
    rng = {"cpu": torch.get_rng_state()}
    if task.device.type == "cuda":
        rng["cuda"] = torch.cuda.get_rng_state(task.device)
    learnt = _learnt_module(task, state)
    objective = task.objective if state.learnt_scale is None else state.learnt_scale.with_learnt(task.objective)
    optimisers = {"adam": state.optimiser.state_dict(), "scaler": state.scaler.state_dict(), "best": state.best}
    if state.network_optimiser is not None:
        optimisers["outer"] = state.network_optimiser.state_dict()
    if state.labels is not None:
        optimisers["labels"] = state.labels
    files = {f"{name}_fingerprint": value for name, value in task.fingerprints.items()}
    return Checkpoint(
        encoder=task.recipe.encoder,
        objective=spec_of(objective),
        data=task.recipe.data,
        **stored_tokens(task.tokeniser),
        kept=dict(task.stored_files),
        reading=dict(task.reading),
        item_shape=stored_shape(task.train.images.shape),
        data_fingerprint=task.train.fingerprint,
        epoch=state.epoch,
        step=state.step,
        metrics=metrics,
        weights={name: tensor.detach().cpu() for name, tensor in state.model.state_dict().items()},
        training={**asdict(task.recipe), **files},
        optimiser=optimisers,
        rng=rng,
        objective_state=None if learnt is None else {n: x.detach().cpu() for n, x in learnt.state_dict().items()},
    )


def shared_values(task: Task, state: TrainState) -> dict[str, torch.Tensor]:
    """Return the tensors that must be the same in all processes of a job."""
    scale = state.learnt_scale.state_dict() if state.learnt_scale else {}
    network = task.objective.network()
    of_network = {} if network is None else {f"net.{name}": tensor for name, tensor in network.state_dict().items()}
    labels = {} if state.labels is None else {"labels": state.labels}
    return {**state.model.state_dict(), **scale, **of_network, **labels}


def _with_weights_of(task: Task, start: Checkpoint) -> Encoder:
    """Return the recipe's encoder with all weights of a checkpoint of the same family.

    Its options may differ if the weights keep their shapes (fine-tuning). Whole parts that the checkpoint lacks (an
    extra layer, a caption branch) begin anew. Raises InputError for anything else.
    """
    recipe = task.recipe
    if Spec.parse(start.encoder).name != Spec.parse(recipe.encoder).name:
        raise InputError(f"--init must be of the encoder {recipe.encoder}; {recipe.init} is of {start.encoder}")
    items = task.train.images.shape
    if not fits_shape(items, start.shape):
        raise InputError(f"--init must be of items {items}, as {recipe.data} has; {recipe.init} takes {start.shape}")
    model = task.encoder.rebuild(items, len(task.tokeniser), start.stored_files)
    weights = model.state_dict()
    parts = {name.partition(".")[0] for name in start.weights}
    new = {name: tensor for name, tensor in weights.items() if name.partition(".")[0] not in parts}
    require_fit(weights, {**new, **start.weights}, f"{recipe.encoder}, to begin with {recipe.init}")
    model.load_state_dict({**new, **start.weights})
    return model


def _with_optimisers(task: Task, model: Encoder) -> TrainState:
    """Return a state with an optimiser of the encoder and the learnt scale, and another for the objective's network."""
    objective = task.objective
    if objective.traits.needs_embeddings and model.pairwise:
        raise InputError(
            f"{task.recipe.objective} must be given embeddings; {task.recipe.encoder} scores pairs and has none"
        )
    model = model.to(task.device)
    sync_batch_norms(model, task.processes)
    scale, network = learnt_scale_of(objective), objective.network()
    if scale is not None:
        scale.to(task.device)
    if network is not None:
        network.to(task.device)
    optimiser = build_optimiser(task.recipe, model, list(scale.parameters()) if scale else [])
    outer = None
    if network is not None:
        outer = torch.optim.Adam(network.parameters(), lr=getattr(objective, "meta_lr", 1e-3))
    scaler = torch.amp.GradScaler(task.device.type, enabled=task.recipe.precision == "fp16")
    return TrainState(model, optimiser, scaler, scale, outer)


def _learnt_module(task: Task, state: TrainState) -> nn.Module | None:
    """Return what learns beside the encoder: scale and bias, or the objective's network."""
    return state.learnt_scale if state.learnt_scale is not None else task.objective.network()
