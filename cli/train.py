"""`lossscope train`: make a checkpoint."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lossscope.core.choices import OUTPUT, Choice
from lossscope.core.request import Request
from lossscope.errors import InputError, Interrupted, OptionError, Stopped, needing
from lossscope.training.recipe import DATA, MODEL, Recipe

from ._app import Work, command
from ._errors import FOUND
from ._form import Only, Typed
from ._options import resolve_device, usage
from ._output import message, notice, print_path
from ._processes import writes_results
from ._progress import progress
from ._running import is_typed
from ._sources import OF_TRAIN

_PROBES, _DOCTOR = "Probes", "Doctor"
_NAMED = ("data", "encoder", "objective")


def _presets() -> list[str]:
    from lossscope.training.recipe_files import presets

    return list(presets())


@dataclass(frozen=True)
class Stated:
    """Where a recipe comes from, beside the choices that were typed."""

    config: Annotated[Path | None, Choice(DATA, "TOML file with any of these options.")] = None
    preset: Annotated[
        str | None, Choice(MODEL, "A paper's recipe by name (`lossscope list presets`).", completes=_presets)
    ] = None
    encoder_option: Annotated[
        tuple[str, ...], Choice(MODEL, "KEY=VALUE to change in the encoder's spec; repeat for several.")
    ] = ()

    def __post_init__(self) -> None:
        if self.config is not None and self.preset is not None:
            raise OptionError("--config and --preset each state a whole recipe; give one of them")

    def recipe(self, choices: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a file, or the default one, with the choices that were typed."""
        from lossscope.io.trusted_code import require_trusted
        from lossscope.spec import Spec
        from lossscope.training.recipe_files import preset_path, read_recipe

        path = preset_path(self.preset) if self.preset is not None else self.config
        if self.preset is not None and "data" not in choices:
            raise usage(
                f"--preset {self.preset} needs --data, e.g. --data precomp:root=DIR; its file says which: {path}"
            )
        if path is None:
            missing = [f"--{name}" for name in _NAMED if name not in choices]
            if missing:
                raise usage(
                    f"train needs {' and '.join(missing)}, e.g. --data scenes --encoder vsepp --objective ntxent"
                )
        recipe = replace(Recipe() if path is None else read_recipe(path), **choices)
        require_trusted(recipe.specs, path)
        if not self.encoder_option:
            return recipe
        return replace(recipe, encoder=str(Spec.parse(recipe.encoder).with_values(self.encoder_option)))


@dataclass(frozen=True)
class Probed:
    """Which probes run while it trains."""

    probe: Annotated[
        tuple[str, ...],
        Choice(_PROBES, "Probe to run on batches, into probes.csv; repeat for several.", names="probes"),
    ] = ()
    probe_every: Annotated[
        int | None,
        Choice(_PROBES, "Probe the first step of an epoch and every N-th after it.", shown="100", low=1),
    ] = None


@dataclass(frozen=True)
class Examined:
    """How the doctor looks at it while it trains."""

    doctor: Annotated[
        bool,
        Choice(
            _DOCTOR,
            "Report problems during training, on stderr, in events.jsonl and in TensorBoard.",
            flags="--doctor",
        ),
    ] = False
    stop_on: Annotated[
        Literal["error", "warning"] | None,
        Choice(
            _DOCTOR,
            "Stop at the first --doctor finding of this severity or above: save the state, and exit with code 3.",
        ),
    ] = None
    recorder: Annotated[
        int,
        Choice(
            _DOCTOR,
            "Newest batches that --doctor writes to the run's recorder/ when a finding begins; 0: none.",
            low=0,
        ),
    ] = 0

    def __post_init__(self) -> None:
        if self.doctor:
            return
        if self.stop_on is not None:
            raise OptionError(
                f"--stop-on says which findings of --doctor stop the run; write --doctor --stop-on {self.stop_on}"
            )
        if self.recorder:
            raise OptionError(
                f"--recorder keeps batches for when --doctor finds something; write --doctor --recorder {self.recorder}"
            )


@dataclass(frozen=True)
class Kept:
    """Where it writes, and when."""

    out: Annotated[Path | None, Choice(OUTPUT, "Run folder; default runs/DATA-OBJECTIVE-seedN.")] = None
    resume: Annotated[Path | None, Choice(OUTPUT, "Run folder to resume; only --epochs may change.")] = None
    save_every: Annotated[int, Choice(OUTPUT, "Steps between saves inside an epoch.", low=1)] = 500
    tensorboard: Annotated[
        bool, Choice(OUTPUT, "Also write TensorBoard events (extra [tb]).", flags="--tensorboard")
    ] = False


@command(
    work=Work(processes=True, keeps=True, imports="lossscope.training.loop"),
    first=(
        "data",
        "encoder",
        "objective",
        "preset",
        "epochs",
        "batch_size",
        "lr",
        "seed",
        "probe",
        "probe_every",
        "doctor",
        "out",
        "resume",
    ),
)
def train(
    choices: Annotated[dict[str, Any], Typed(Recipe)],
    stated: Stated,
    probed: Probed,
    examined: Examined,
    kept: Kept,
    request: Annotated[Request, Only("device", "trust_code")] = OF_TRAIN,
) -> None:
    """Train a model with any loss, and keep every checkpoint.

    **Examples**

    `lossscope train --data scenes --encoder vsepp --objective ntxent:tau=0.1 --epochs 6 --lr 0.002`

    `lossscope train --data karpathy:root=DIR,name=flickr8k,size=64 --encoder vsepp --objective triplet-sh`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline CANDIDATES`

    `lossscope train --preset scan_t2i_avg_f30k --data precomp:root=f30k_precomp`

    `lossscope train --data scenes --encoder vsepp --objective ntxent --probe cocos --probe similarity --probe-every 50`

    `lossscope train --data scenes --encoder vsepp --objective ntxent --doctor --stop-on error --recorder 5`

    `lossscope train --resume runs/scenes-ntxent-seed0`

    `PYTHONSAFEPATH=1 torchrun --nproc-per-node 4 -m lossscope_cli train --data ... --encoder ... --objective ...`

    --resume continues a stopped run, even after kill -9, to the same bits as an unbroken run.
    """
    from lossscope.training import loop
    from lossscope.training.monitor import ProbeSchedule
    from lossscope.training.observers import Observers

    if probed.probe_every is not None and not probed.probe and kept.resume is None:
        raise usage("--probe-every spaces the probes of --probe; give --probe, too, e.g. --probe cocos")
    if kept.resume is not None:
        _require_nothing_else(choices)
        recipe, folder = None, kept.resume
    else:
        recipe = stated.recipe(choices)
        folder = kept.out or Path("runs") / _name(recipe)
    with progress() as report, _tensorboard(folder, kept.tensorboard and writes_results()) as writer:
        device = resolve_device(request.device)
        watcher = _watcher(folder, writer, examined) if examined.doctor and writes_results() else None
        observers = Observers(report, partial(_epoch_line, writer=writer), watcher, _note, _warn)
        with _stopped_by(watcher, folder):
            if recipe is None:
                loop.resume(folder, choices.get("epochs"), device, kept.save_every, request.trust_code, observers)
            else:
                schedule = ProbeSchedule(probed.probe, probed.probe_every or 100) if probed.probe else None
                loop.train(recipe, folder, device, kept.save_every, schedule, observers)
            if watcher is not None:
                watcher.close()
                _note_examined(watcher.examined)
    print_path(folder)
    if watcher is not None and watcher.reason is not None:  # in the last step
        raise typer.Exit(FOUND)


def _require_nothing_else(choices: Mapping[str, Any]) -> None:
    """Raise a usage error for a typed option that --resume does not take: the run has its value already."""
    names = [name for name in choices if name != "epochs"]
    names += [name for name in ("probe", "probe_every", "config", "preset", "encoder_option", "out") if is_typed(name)]
    if names:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise usage(f"--resume takes the choices of the run and only --epochs may change; got {options}")


@contextlib.contextmanager
def _stopped_by(watcher: Any, folder: Path) -> Iterator[None]:
    """Say why a training was stopped, and exit; say what resumes one that was interrupted."""
    try:
        yield
    except Stopped as stopped:
        message(f"Stopped: {stopped}. The run saved its state; resume with --resume {folder}")
        raise typer.Exit(FOUND) from stopped
    except Interrupted as interrupted:
        raise Interrupted(f"{interrupted}; {_resuming(folder)}") from interrupted
    except KeyboardInterrupt as interrupted:  # a second Ctrl-C, or one before the first step
        if not (folder / "config.toml").is_file():
            raise
        raise Interrupted(_resuming(folder)) from interrupted
    except InputError as error:  # NaN ends a training by itself
        if watcher is None or watcher.reason is None:
            raise
        message(f"Stopped: {watcher.reason}. {error}")
        raise typer.Exit(FOUND) from error


def _resuming(folder: Path) -> str:
    return f"`lossscope train --resume {shlex.quote(str(folder))}` continues it"


def _watcher(folder: Path, writer: Any, examined: Examined) -> Any:
    """What looks at each batch, and writes each event: a line on stderr, events.jsonl, and TensorBoard."""
    from lossscope.io.run_folder import Run
    from lossscope.live.training_doctor import TrainingDoctor, recorder_of

    def on_event(event: Any) -> None:
        message(f"Doctor: {event}.")
        Run(folder).event("finding", **event.details())
        if writer is not None:
            writer.add_scalar(*event.column, event.step)

    return TrainingDoctor(on_event, examined.stop_on, recorder=recorder_of(folder, examined.recorder))


def _note_examined(examined: Any) -> None:
    """Say what the doctor did not look for, as the training was too short for it."""
    if examined.not_yet:
        notice(f"Doctor: not examined in {examined.watched:,} steps: {', '.join(examined.not_yet)}.")


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


def _epoch_line(row: dict[str, Any], writer: Any) -> None:
    """Write a row of metrics.csv: a line on stderr, and TensorBoard events where they are wanted."""
    notice(_line(row))
    if writer is None:
        return
    for name, value in row.items():
        if name != "epoch" and value == value:
            writer.add_scalar(f"val/{name}", value, row["epoch"])


def _note(text: str) -> None:
    notice(f"Note: {text}.")


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
    with needing("tb", "--tensorboard needs tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(str(folder.parent / f"{folder.name}.tb"))
