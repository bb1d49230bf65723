"""Read and check the constant parts of a training before it writes anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.core.masks.base import NegativeMask
from lossscope.core.pair import Pair
from lossscope.core.types import Progress, Rows
from lossscope.datasets.base import Split, Texts
from lossscope.datasets.formats.subset import first_images
from lossscope.encoders.base import EncoderSpec
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.sources.checkpoints.captions import CaptionBatcher, texts_of, with_tokens
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.input_keys import input_keys
from lossscope.text.tokenizer import Tokeniser

from .components import Components, require_trainable
from .inputs import fingerprints_of, read_candidates, read_info, require_known_pairs
from .offline_candidates import HardCandidates
from .reading import read_start, reading_of_start
from .recipe import Recipe
from .recipe_files import with_todays_names


@dataclass(frozen=True)
class Task:
    """A recipe with its data."""

    recipe: Recipe
    encoder: EncoderSpec
    objective: Objective  # its network, if it has one, learns
    warmup_objective: Objective | None  # of the first epochs
    sampling: Sampling
    train: Split
    val: Split
    tokeniser: Tokeniser
    captions: CaptionBatcher  # of the training split
    stored_files: Mapping[str, str]  # files inside a checkpoint of the encoder
    reading: Mapping[str, str]  # how the start model reads pictures; {} for most
    device: torch.device
    candidates: HardCandidates | None = None  # offline candidates of batches
    info: Mapping[str, Tensor] = field(default_factory=dict)  # name -> (M,) number of each training caption
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # of the files that the recipe names
    processes: ProcessGroup = field(default_factory=process_group)  # of the job
    masks: tuple[NegativeMask, ...] = ()  # rules that leave out negatives

    def objective_of(self, epoch: int) -> Objective:
        """Return the objective of an epoch, from 0: that of the recipe, or of the warm-up."""
        if epoch < self.recipe.warmup and self.warmup_objective is not None:
            return self.warmup_objective
        return self.objective

    @property
    def estimates_labels(self) -> bool:
        """Whether the labels of pairs come from the model, as --info has none."""
        return self.objective.traits.estimates_labels and "label" not in self.info

    @cached_property
    def input_keys(self) -> Pair[Rows | None]:
        """Numbers of the training items of both sides, equal if their inputs are; for rules that compare inputs."""
        return input_keys(self.train)

    @cached_property
    def val_input_keys(self) -> Pair[Rows | None]:
        """Numbers of the validation items of both sides, as `input_keys`."""
        return input_keys(self.val)

    @cached_property
    def val_captions(self) -> CaptionBatcher:
        """The captions of the validation split."""
        return CaptionBatcher(self.val, self.tokeniser)


def prepare_task(
    components: Components,
    run: Path,
    device: str,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Task:
    """Read the data of a recipe, its vocabulary and its files.

    Args:
        components: the objects of the recipe.
        run: folder of the run, for messages.
        device: of the training.
        checkpoint: the state of a resumed run, with the same data.
        progress: called with (label, done, of).

    Raises:
        InputError: a file that cannot be read, does not fit, or has changed since the run began.
    """
    recipe, sampling = components.recipe, components.sampling
    train, val = components.dataset.split("train"), components.dataset.split("val")
    val = first_images(val, recipe.val_images)
    for split in (train, val):
        _load(split, progress)
    if checkpoint is not None and train.fingerprint != checkpoint.data_fingerprint:
        raise InputError(f"data of {run} must be what the run began with; {recipe.data} has changed since")
    if len(set(train.relations.positives[:, 0].tolist())) < 2:
        raise InputError(f"the training split must hold at least 2 images with captions; {recipe.data} has fewer")
    if not sampling.count(train.relations):
        raise InputError(f"batches must fit the training split; {recipe.batch_size} with --drop-last leaves none")
    require_trainable(recipe, components.objective)
    _require_fitting_sides(train, components.encoder, recipe)
    if train.relations.negatives is None and (recipe.negatives != "batch" or recipe.mined):
        raise InputError(f"--negatives and --mined need data with mined negatives; {recipe.data} has none")
    start = checkpoint or (read_start(recipe.init) if recipe.init else None)
    encoder = components.encoder
    tokeniser = start.words() if start else encoder.build_tokeniser(texts_of(train), recipe.min_count)
    train, val = with_tokens(train, tokeniser), with_tokens(val, tokeniser)
    captions = CaptionBatcher(train, tokeniser)
    _ = captions.lengths()  # encode now, to refuse captions that do not fit before the run writes anything
    candidates = read_candidates(recipe, train)
    if recipe.info and train.relations.negatives is not None and recipe.negatives != "none":
        raise InputError("--info is for pairs; leave out the mined negatives: --negatives none")
    info = read_info(recipe, components.objective, sampling.mode, train)
    if components.objective.traits.estimates_labels and "label" not in info:
        _require_labels_of_pairs(train, recipe)
    require_known_pairs(components.masks, train)
    fingerprints = fingerprints_of(recipe, candidates, components.masks)
    if checkpoint is not None:
        _require_same_files(recipe, checkpoint, fingerprints, run)
    return Task(
        recipe=recipe,
        encoder=encoder,
        objective=components.objective,
        warmup_objective=components.warmup_objective,
        sampling=sampling,
        train=train,
        val=val,
        tokeniser=tokeniser,
        captions=captions,
        stored_files=start.stored_files if start else encoder.stored_files(),
        reading=reading_of_start(recipe.encoder, start),
        device=torch.device(device),
        candidates=candidates,
        info=info,
        fingerprints=fingerprints,
        masks=components.masks,
    )


def require_same_choices(recipe: Recipe, checkpoint: Checkpoint, run: Path, config: Path) -> None:
    """Raise InputError if a run would resume with other choices than it began with, or to fewer epochs.

    Args:
        recipe: of config.toml.
        checkpoint: of the run.
        run: its folder.
        config: its config.toml.
    """
    now = asdict(recipe)
    then = {**asdict(Recipe()), **with_todays_names(checkpoint.training)}  # older files lack newer choices
    changed = [f"{k} = {v!r} (was {then.get(k)!r})" for k, v in now.items() if k != "epochs" and v != then.get(k)]
    if changed:
        listed = ", ".join(changed)
        raise InputError(f"{config} must state what the run began with; got {listed}. Start a new run for that")
    if recipe.schedule == "linear" and recipe.epochs != then["epochs"]:
        raise InputError(
            f"--epochs must stay {then['epochs']} with a linear schedule, whose rates depend on it; got {recipe.epochs}"
        )
    if recipe.epochs < checkpoint.epoch:
        raise InputError(
            f"--epochs must be at least the {checkpoint.epoch} that {run} has finished; got {recipe.epochs}"
        )


def _require_same_files(recipe: Recipe, checkpoint: Checkpoint, fingerprints: Mapping[str, str], run: Path) -> None:
    for name, now in fingerprints.items():
        if checkpoint.training.get(f"{name}_fingerprint", now) != now:
            raise InputError(
                f"{name} of {run} must be what the run began with; {getattr(recipe, name)} changed since. Restore that "
                "file, or start a new run"
            )


def _require_fitting_sides(train: Split, encoder: EncoderSpec, recipe: Recipe) -> None:
    """Raise InputError if an encoder of pictures would read texts, or an encoder of two texts pictures."""
    has_texts = isinstance(train.images, Texts)
    if has_texts and not encoder.takes_texts:
        raise InputError(
            f"--encoder must take texts on both sides for {recipe.data}, which has {train.relations.sides.text}; "
            f"{recipe.encoder} does not. Take biencoder"
        )
    if encoder.takes_texts and not has_texts:
        raise InputError(f"--encoder {recipe.encoder} reads texts on both sides; {recipe.data} has other items")


def _require_labels_of_pairs(train: Split, recipe: Recipe) -> None:
    """Raise InputError unless a label of each caption is one of each pair, and each row of a batch has a pair."""
    relations = train.relations
    if not relations.has_owners or (relations.negatives is not None and recipe.negatives != "none"):
        raise InputError(
            f"{recipe.objective} labels pairs: every {relations.sides.second} must belong to one "
            f"{relations.sides.first}, without mined negatives (--negatives none); those of {recipe.data} do not"
        )


def _load(split: Split, progress: Progress | None) -> None:
    """Read all images now, if the data set can keep them."""
    load_all = getattr(split.images, "load_all", None)
    if load_all is not None:
        label = f"reading {split.name} images"
        load_all((lambda done, total: progress(label, done, total)) if progress else None)
