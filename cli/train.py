"""`lossscope train`: make a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _output, _processes
from ._epochs import listening
from .app import (
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    EncoderSpec,
    ObjectiveSpec,
    ProbeSpecs,
    Quiet,
    TrustCode,
    command,
    device_of,
    usage,
)


def preset_names(incomplete: str) -> list[str]:
    """Shell completion, from the file names alone."""
    from lossscope.training.recipes import presets

    return [name for name in presets() if name.startswith(incomplete)]


_FIXED = ("data", "encoder", "objective")


@command(processes=True)
def train(
    data: DataSpec = None,
    encoder: EncoderSpec = None,
    objective: ObjectiveSpec = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with any of these options.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A paper's recipe by name (`lossscope list presets`).", autocompletion=preset_names),
    ] = None,
    encoder_option: EncoderOptions = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training split. Default 30.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs, or images with all captions. Default 128.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate. Default 1e-3.")] = None,
    lr_step: Annotated[int | None, typer.Option(help="Epochs after which the rate decays. Default 15.")] = None,
    lr_gamma: Annotated[float | None, typer.Option(help="Factor of the decay. Default 0.1.")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest gradient norm, 0 for none. Default 2.")] = None,
    warmup: Annotated[
        int | None, typer.Option(help="Epochs of the summed loss before hardest negatives. Default 1.")
    ] = None,
    reduction: Annotated[str | None, typer.Option(help="sum, mean, pairs or cells; default: the objective's.")] = None,
    sampling: Annotated[str | None, typer.Option(help="pairs, single or images; default: the objective's.")] = None,
    same_image: Annotated[str | None, typer.Option(help="keep or mask other captions of the image.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32, bf16 or fp16 in the encoder.")] = None,
    min_count: Annotated[int | None, typer.Option(help="Captions a word must occur in. Default 4.")] = None,
    optimiser: Annotated[str | None, typer.Option(help="adam, adamw, or ranger (extra). Default adam.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay of the optimiser. Default 0.")] = None,
    beta2: Annotated[float | None, typer.Option(help="Second decay rate of Adam and AdamW. Default 0.999.")] = None,
    schedule: Annotated[str | None, typer.Option(help="step, or linear: rise and fall. Default step.")] = None,
    lr_warmup: Annotated[float | None, typer.Option(help="Part of all steps that a linear schedule rises.")] = None,
    rates: Annotated[str | None, typer.Option(help="Factors on lr, e.g. bert=0.1,backbone=0.01.")] = None,
    freeze: Annotated[str | None, typer.Option(help="Epochs that groups wait, e.g. backbone=1.")] = None,
    ramp: Annotated[int | None, typer.Option(help="Epoch in which the loss grows from 0. Default 0: none.")] = None,
    drop_last: Annotated[
        bool | None, typer.Option("--drop-last/--keep-last", help="The last, shorter batch. Default: keep.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Batches of an epoch. Default 0: the whole split.")] = None,
    select: Annotated[str | None, typer.Option(help="Best epoch by rsum, r1_r5, geometric or last.")] = None,
    val_images: Annotated[int | None, typer.Option(help="Validate on the first so many images. Default: all.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and batches. Default 0.")] = None,
    init: Annotated[Path | None, typer.Option(help="Checkpoint of the same encoder to begin with.")] = None,
    info: Annotated[
        Path | None, typer.Option(help=".npz, a number per training caption: label (ncr), margin, weight (unified).")
    ] = None,
    offline: Annotated[Path | None, typer.Option(help="Folder of `lossscope rank`, which aoq draws from.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default runs/DATA-OBJECTIVE-seedN.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Run folder to go on with; only --epochs may change.")] = None,
    save_every: Annotated[int, typer.Option(help="Steps between saves inside an epoch.", min=1)] = 500,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard events (extra [tb]).")
    ] = False,
    probe: ProbeSpecs = None,
    every: Annotated[
        int | None, typer.Option(help="Probe the first step of an epoch and each so many after. Default 100.", min=1)
    ] = None,
    device: Device = "auto",
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train an encoder with an objective; the run folder holds config, checkpoints, metrics and trajectory.

    **Examples**

    `lossscope train --data scenes --encoder vsepp --objective ntxent:tau=0.1 --epochs 6 --lr 0.002`

    `lossscope train --data karpathy:root=DIR,name=flickr8k,size=64 --encoder vsepp --objective triplet-sh`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline RANKED`

    `lossscope train --preset scan_t2i_avg_f30k --data precomp:root=f30k_precomp`

    `lossscope train --data scenes --encoder vsepp --objective ntxent --probe cocos --probe similarity --every 50`

    `lossscope train --resume runs/scenes-ntxent-seed0`

    `torchrun --nproc-per-node 4 -m lossscope_cli train --data ... --encoder ... --objective ...`

    A run that was stopped, even by kill -9, goes on with --resume to the same bits as an unbroken one.
    """
    from lossscope.training.loop import resume as go_on
    from lossscope.training.loop import train as start
    from lossscope.training.monitor import ProbeSchedule

    values = {
        "data": data, "encoder": encoder, "objective": objective, "epochs": epochs, "batch_size": batch_size, "lr": lr,
        "lr_step": lr_step, "lr_gamma": lr_gamma, "clip": clip, "warmup": warmup, "reduction": reduction,
        "sampling": sampling, "same_image": same_image, "precision": precision, "min_count": min_count, "seed": seed,
        "optimiser": optimiser, "weight_decay": weight_decay, "beta2": beta2, "schedule": schedule,
        "lr_warmup": lr_warmup, "rates": rates, "freeze": freeze, "ramp": ramp, "drop_last": drop_last, "steps": steps,
        "select": select, "val_images": val_images,
        "init": init and str(init), "info": info and str(info), "offline": offline and str(offline),
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None:
        other = [f"--{name.replace('_', '-')}" for name in given if name != "epochs"]
        other += [f"--{name}" for name, value in (("probe", probe), ("every", every)) if value]
        if other or config or out or preset or encoder_option:
            raise usage(
                "--resume takes the choices of the run and only --epochs may change; "
                f"got {', '.join(other) or '--config, --preset, --encoder-option, --out'}"
            )
        folder = resume
    else:
        recipe = _recipe(config, preset, encoder_option or [], given)
        folder = out or Path("runs") / _name(recipe)
        if every is not None and not probe:
            raise usage("--every says how often --probe looks; name one, e.g. --probe cocos")
        probing = ProbeSchedule(tuple(probe), every or 100) if probe else None
    with _output.progress(quiet) as bar, listening(folder, tensorboard and _processes.speaks(), quiet) as listener:
        place = device_of(device)
        if resume is not None:
            go_on(folder, epochs, place, save_every, bar, listener, trust_code)
        else:
            start(recipe, folder, place, save_every, bar, listener, probing)
    typer.echo(folder)


def _recipe(config: Path | None, preset: str | None, changes: list[str], given: dict[str, Any]) -> Any:
    from dataclasses import replace

    from lossscope.spec import Spec
    from lossscope.training.recipe import Recipe
    from lossscope.training.recipe_files import read_recipe
    from lossscope.training.recipes import preset_path

    if config is not None and preset is not None:
        raise usage("--config and --preset each state a whole recipe; give one of them")
    path = preset_path(preset) if preset is not None else config
    if preset is not None and "data" not in given:
        raise usage(f"--preset {preset} needs --data, e.g. --data precomp:root=DIR; its file says which: {path}")
    if path is None:
        missing = [f"--{name}" for name in _FIXED if name not in given]
        if missing:
            raise usage(f"train needs {' and '.join(missing)}, e.g. --data scenes --encoder vsepp --objective ntxent")
    recipe = Recipe(**given) if path is None else replace(read_recipe(path), **given)
    return replace(recipe, encoder=str(Spec.parse(recipe.encoder).changed(changes))) if changes else recipe


def _name(recipe: Any) -> str:
    from lossscope.spec import Spec

    names = (Spec.parse(spec).name for spec in (recipe.data, recipe.objective))
    data, objective = (name.rpartition(":")[2].replace("_", "-") for name in names)
    return f"{data}-{objective}-seed{recipe.seed}"
