"""What does not change while a recipe is trained: data, words, objective, all checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.datasets.base import Dataset, Split
from lossscope.datasets.formats.subset import first_images
from lossscope.encoders.base import encoder_spec
from lossscope.errors import InputError
from lossscope.io.files import fingerprint
from lossscope.io.run_folder import Run
from lossscope.objectives.base import Objective
from lossscope.registry import build
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.text.tokenizer import Tokens

from .inputs import info_of, objective_of, offline_of
from .monitor import BatchMonitor
from .offline_candidates import HardCandidates
from .recipe import Recipe
from .recipe_files import plain_values

Progress = Callable[[str, int, int], None]
OnEpoch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Task:
    """What does not change while training. main: the objective of the recipe, whose net, if it has one, learns.

    info: what is known of each training caption, by name. origins: fingerprints of the files named in the recipe.
    world: the processes that train it together. watcher: what looks at its batches, if anything does.
    """

    recipe: Recipe
    run: Run
    train: Split
    val: Split
    words: Tokens
    sentences: CaptionBatcher
    kept: Mapping[str, str]
    device: torch.device
    save_every: int
    progress: Progress | None
    listener: OnEpoch | None
    main: Objective
    offline: HardCandidates | None = None
    info: Mapping[str, Tensor] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    processes: ProcessGroup = field(default_factory=process_group)
    watcher: BatchMonitor | None = None

    def objective(self, epoch: int) -> Objective:
        """What epoch `epoch` (from 0) trains with: the main one, or its warm-up."""
        return self.recipe.objective_of(epoch, self.main)  # type: ignore[no-any-return]

    @cached_property
    def val_sentences(self) -> CaptionBatcher:
        """The validation captions."""
        return CaptionBatcher(self.val, self.words)


def same_choices(recipe: Recipe, checkpoint: Checkpoint, run: Run) -> None:
    """Raise InputError when a run is to go on with other choices than it began with, or to fewer epochs."""
    now, then = (
        plain_values(recipe),
        {**plain_values(Recipe()), **checkpoint.training},
    )  # older files lack newer choices
    other = [f"{k} = {v!r} (was {then.get(k)!r})" for k, v in now.items() if k != "epochs" and v != then.get(k)]
    if other:
        raise InputError(
            f"{run.config} must state what the run began with; got {', '.join(other)}. Start a new run for that"
        )
    if recipe.schedule == "linear" and recipe.epochs != then["epochs"]:
        raise InputError(
            f"--epochs must stay {then['epochs']} with a linear schedule, whose rates depend on it; got {recipe.epochs}"
        )
    if recipe.epochs < checkpoint.epoch:
        raise InputError(
            f"--epochs must be at least the {checkpoint.epoch} that {run.path} has finished; got {recipe.epochs}"
        )


def prepare_task(
    recipe: Recipe,
    run: Run,
    device: str,
    save_every: int,
    progress: Progress | None,
    listener: OnEpoch | None,
    checkpoint: Checkpoint | None,
) -> Task:
    """Data, vocabulary and tokens of a recipe, checked before anything is written. Raises InputError."""
    data: Dataset = build("datasets", recipe.data)
    splits = {name: data.split(name) for name in ("train", "val")}
    splits["val"] = first_images(splits["val"], recipe.val_images)
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
    if not recipe.batches().count(splits["train"].caption_image):
        raise InputError(f"batches must fit the training split; {recipe.batch_size} with --drop-last leaves none")
    main = objective_of(recipe)
    start = Checkpoint.load(recipe.init) if recipe.init and checkpoint is None else None
    known = checkpoint or start
    spec = encoder_spec(recipe.encoder)
    words = known.words() if known else spec.tokens(splits["train"].captions, recipe.min_count)
    sentences = CaptionBatcher(splits["train"], words)
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
