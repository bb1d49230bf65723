"""`lossscope train`: make a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lossscope.training.recipe import DATA, MODEL, Recipe

from ._app import command
from ._options import Debug, Device, Quiet, TrustCode, complete_names, resolve_device, usage, with_choices
from ._output import notice, print_path
from ._processes import writes_results
from ._progress import progress

_PROBES, _DOCTOR, _OUTPUT = "Probes", "Doctor", "Output"
_STOPPED = 3  # exit code where --stop-on ends a run, as that of `doctor --fail-on`
_NAMED = ("data", "encoder", "objective")


def complete_presets(incomplete: str) -> list[str]:
    """Complete the names of presets, from the file names alone."""
    from lossscope.training.recipe_files import presets

    return [name for name in presets() if name.startswith(incomplete)]


@command(processes=True, keeps=True, imports="lossscope.training.loop")
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
    doctor: Annotated[
        bool,
        typer.Option(
            "--doctor",
            help="Look for what goes wrong while it trains: on stderr, in events.jsonl and in TensorBoard.",
            rich_help_panel=_DOCTOR,
        ),
    ] = False,
    stop_on: Annotated[
        Literal["error", "warning"] | None,
        typer.Option(
            help="Stop at the first finding of --doctor of this severity or above: the state is saved, as after "
            "Ctrl-C, and the exit code is 3.",
            rich_help_panel=_DOCTOR,
        ),
    ] = None,
    recorder: Annotated[
        int,
        typer.Option(
            help="Newest batches that --doctor writes to recorder/ of the run when a finding begins; 0: none.",
            min=0,
            rich_help_panel=_DOCTOR,
        ),
    ] = 0,
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

    `lossscope train --data scenes --encoder vsepp --objective ntxent --doctor --stop-on error --recorder 5`

    `lossscope train --resume runs/scenes-ntxent-seed0`

    `torchrun --nproc-per-node 4 -m lossscope_cli train --data ... --encoder ... --objective ...`

    A run that was stopped, even by kill -9, is resumed with --resume to the same bits as an unbroken one.
    """
    from lossscope.errors import InputError, Stopped
    from lossscope.training import loop
    from lossscope.training.monitor import ProbeSchedule

    _require_doctor(doctor, stop_on, recorder)
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
    with progress(quiet) as report, _tensorboard(folder, tensorboard and writes_results()) as writer:
        place, on_epoch = resolve_device(device), partial(_epoch_line, writer=writer, quiet=quiet)
        watcher = _watcher(folder, writer, stop_on, recorder) if doctor and writes_results() else None
        try:
            if resume is not None:
                epochs = choices.get("epochs")
                loop.resume(folder, epochs, place, save_every, report, on_epoch, trust_code, watcher)
            else:
                schedule = ProbeSchedule(tuple(probe), probe_every or 100) if probe else None
                notes = partial(_note, quiet=quiet), _warn
                loop.train(recipe, folder, place, save_every, report, on_epoch, schedule, *notes, watcher)
        except Stopped as stopped:
            message(f"Stopped: {stopped}. The state is saved; resume with --resume {folder}")
            raise typer.Exit(_STOPPED) from stopped
        except InputError as error:  # NaN ends a training by itself
            if watcher is None or watcher.reason is None:
                raise
            message(f"Stopped: {watcher.reason}. {error}")
            raise typer.Exit(_STOPPED) from error
    print_path(folder)
    if watcher is not None and watcher.reason is not None:  # in the last step
        raise typer.Exit(_STOPPED)


def _require_doctor(doctor: bool, stop_on: str | None, recorder: int) -> None:
    """Refuse options of --doctor without it."""
    if doctor:
        return
    if stop_on is not None:
        raise usage(f"--stop-on says which findings of --doctor stop the run; write --doctor --stop-on {stop_on}")
    if recorder:
        raise usage(f"--recorder keeps batches for when --doctor finds something; write --doctor --recorder {recorder}")


def _watcher(folder: Path, writer: Any, stop_on: Literal["error", "warning"] | None, recorder: int) -> Any:
    """What looks at each batch, and writes each event: a line on stderr, events.jsonl, and TensorBoard."""
    from lossscope.io.run_folder import Run
    from lossscope.live.training_doctor import TrainingDoctor, recorder_of

    def on_event(event: Any) -> None:
        message(f"Doctor: {event}.")
        Run(folder).event("finding", **event.details())
        if writer is not None:
            writer.add_scalar(*event.column, event.step)

    return TrainingDoctor(on_event, stop_on, recorder=recorder_of(folder, recorder))


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
def _tensorboard(folder: Path, wanted: bool) -> Iterator[Any]:
    """A writer of TensorBoard events beside a run; None where none are wanted."""
    writer = _tensorboard_writer(folder) if wanted else None
    try:
        yield writer
    finally:
        if writer:
            writer.close()


def _epoch_line(row: dict[str, Any], writer: Any, quiet: bool) -> None:
    """Write a row of metrics.csv: a line on stderr, and TensorBoard events where they are wanted."""
    notice(_line(row), quiet)
    if writer is None:
        return
    for name, value in row.items():
        if name != "epoch" and value == value:
            writer.add_scalar(f"val/{name}", value, row["epoch"])


def _note(text: str, quiet: bool) -> None:
    notice(f"Note: {text}.", quiet)


def _warn(text: str) -> None:
    message(f"Warning: {text}.")


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
