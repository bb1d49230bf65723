"""`lossscope train`: make a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lossscope.training.recipe import DATA, MODEL, Recipe

from ._options import Debug, Device, Quiet, TrustCode, complete_names, resolve_device, usage, with_choices
from ._output import notice, print_path
from ._processes import writes_results
from ._progress import progress
from .app import command

_PROBES, _OUTPUT = "Probes", "Output"
_NAMED = ("data", "encoder", "objective")


def complete_presets(incomplete: str) -> list[str]:
    """Complete the names of presets, from the file names alone."""
    from lossscope.training.recipe_files import presets

    return [name for name in presets() if name.startswith(incomplete)]


@command(processes=True, keeps=True)
@with_choices(Recipe)
def train(
    choices: dict[str, Any],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any of the choices of a training.", rich_help_panel=DATA)
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A paper's recipe by name (`lossscope list presets`).",
            rich_help_panel=MODEL,
            autocompletion=complete_presets,
        ),
    ] = None,
    encoder_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE to change in the encoder's spec; repeat for several.", rich_help_panel=MODEL),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            help="Probe of batches, written to probes.csv; repeat for several.",
            rich_help_panel=_PROBES,
            autocompletion=complete_names("probes"),
        ),
    ] = None,
    probe_every: Annotated[
        int | None,
        typer.Option(
            help="Probe the first step of an epoch and every N-th after it.",
            min=1,
            rich_help_panel=_PROBES,
            show_default="100",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; default runs/DATA-OBJECTIVE-seedN.", rich_help_panel=_OUTPUT)
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Run folder to resume; only --epochs may change.", rich_help_panel=_OUTPUT)
    ] = None,
    save_every: Annotated[
        int, typer.Option(help="Steps between saves inside an epoch.", min=1, rich_help_panel=_OUTPUT)
    ] = 500,
    tensorboard: Annotated[
        bool,
        typer.Option("--tensorboard", help="Also write TensorBoard events (extra [tb]).", rich_help_panel=_OUTPUT),
    ] = False,
    device: Device = "auto",
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train an encoder with an objective; the run folder holds config, checkpoints, metrics and trajectory.

    **Examples**

    `lossscope train --data scenes --encoder vsepp --objective ntxent:tau=0.1 --epochs 6 --lr 0.002`

    `lossscope train --data karpathy:root=DIR,name=flickr8k,size=64 --encoder vsepp --objective triplet-sh`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline CANDIDATES`

    `lossscope train --preset scan_t2i_avg_f30k --data precomp:root=f30k_precomp`

    `lossscope train --data scenes --encoder vsepp --objective ntxent --probe cocos --probe similarity --probe-every 50`

    `lossscope train --resume runs/scenes-ntxent-seed0`

    `torchrun --nproc-per-node 4 -m lossscope_cli train --data ... --encoder ... --objective ...`

    A run that was stopped, even by kill -9, is resumed with --resume to the same bits as an unbroken one.
    """
    from lossscope.training import loop
    from lossscope.training.monitor import ProbeSchedule

    if probe_every is not None and not probe and resume is None:
        raise usage("--probe-every says how often --probe is run; give --probe, too, e.g. --probe cocos")
    if resume is not None:
        other = [f"--{name.replace('_', '-')}" for name in choices if name != "epochs"]
        other += [f"--{name}" for name, value in (("probe", probe), ("probe-every", probe_every)) if value]
        other += [f"--{name}" for name, value in (("config", config), ("preset", preset)) if value]
        other += [f"--{name}" for name, value in (("encoder-option", encoder_option), ("out", out)) if value]
        if other:
            raise usage(f"--resume takes the choices of the run and only --epochs may change; got {', '.join(other)}")
        folder = resume
    else:
        recipe = _recipe(choices, config, preset, encoder_option or [])
        folder = out or Path("runs") / _name(recipe)
    with progress(quiet) as report, _epoch_lines(folder, tensorboard and writes_results(), quiet) as on_epoch:
        place = resolve_device(device)
        if resume is not None:
            loop.resume(folder, choices.get("epochs"), place, save_every, report, on_epoch, trust_code)
        else:
            schedule = ProbeSchedule(tuple(probe), probe_every or 100) if probe else None
            loop.train(
                recipe, folder, place, save_every, report, on_epoch, schedule, partial(_note, quiet=quiet), _warn
            )
    print_path(folder)


def _recipe(choices: dict[str, Any], config: Path | None, preset: str | None, changes: Sequence[str]) -> Recipe:
    """The recipe of a file, or the default one, with the choices that were typed."""
    from lossscope.io.trusted_code import require_trusted
    from lossscope.spec import Spec
    from lossscope.training.recipe_files import preset_path, read_recipe

    if config is not None and preset is not None:
        raise usage("--config and --preset each state a whole recipe; give one of them")
    path = preset_path(preset) if preset is not None else config
    if preset is not None and "data" not in choices:
        raise usage(f"--preset {preset} needs --data, e.g. --data precomp:root=DIR; its file says which: {path}")
    if path is None:
        missing = [f"--{name}" for name in _NAMED if name not in choices]
        if missing:
            raise usage(f"train needs {' and '.join(missing)}, e.g. --data scenes --encoder vsepp --objective ntxent")
    recipe = replace(Recipe() if path is None else read_recipe(path), **choices)
    require_trusted(recipe.specs, path)
    return replace(recipe, encoder=str(Spec.parse(recipe.encoder).with_values(changes))) if changes else recipe


def _name(recipe: Recipe) -> str:
    from lossscope.spec import Spec

    names = (Spec.parse(spec).name for spec in (recipe.data, recipe.objective))
    data, objective = (name.rpartition(":")[2].replace("_", "-") for name in names)
    return f"{data}-{objective}-seed{recipe.seed}"


@contextlib.contextmanager
def _epoch_lines(folder: Path, tensorboard: bool, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function of each row of metrics.csv: a line on stderr, and TensorBoard events where they are wanted."""
    writer = _tensorboard_writer(folder) if tensorboard else None

    def on_epoch(row: dict[str, Any]) -> None:
        notice(_line(row), quiet)
        if writer is None:
            return
        for name, value in row.items():
            if name != "epoch" and value == value:
                writer.add_scalar(f"val/{name}", value, row["epoch"])

    try:
        yield on_epoch
    finally:
        if writer:
            writer.close()


def _note(text: str, quiet: bool) -> None:
    notice(f"Note: {text}.", quiet)


def _warn(text: str) -> None:
    notice(f"Warning: {text}.")


def _line(row: dict[str, Any]) -> str:
    loss = f"{row['loss']:.4g}" if row["loss"] == row["loss"] else "–"
    labels = [name.removesuffix("_R@1") for name in row if name.endswith("_R@1")]
    score = f"rsum {row['rsum']:.1f}" if "rsum" in row else f"nDCG@10 {row[f'{labels[0]}_nDCG@10']:.3f}"
    recalls = " ".join(f"{label} {row[f'{label}_R@1']:.1f}" for label in labels)
    return (
        f"epoch {row['epoch']:>3}  loss {loss}  {score}  R@1 {recalls}  "
        f"similarity: positive {row['pos_mean']:.3f}, hardest negative {row['neg_mean']:.3f}"
    )


def _tensorboard_writer(folder: Path) -> Any:
    from lossscope.errors import InputError

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("--tensorboard needs tensorboard; install lossscope[tb]") from error
    return SummaryWriter(str(folder.parent / f"{folder.name}.tb"))
