"""The main job on the embedded data set: train, freeze, count, draw, report. One call, and it can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.engine.plan import Sweep
from lossscope.engine.weight_fields import PAIRS, TRIPLETS, pair_curves, weight_field
from lossscope.errors import InputError
from lossscope.io.files import write_text
from lossscope.io.frames import join
from lossscope.io.run_folder import Run
from lossscope.io.versions import versions
from lossscope.registry import build, spec_of
from lossscope.report.demo_page import Story, page
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe

Progress = Callable[[str, int, int], None]
Tell = Callable[[str], None]
AMBIGUOUS = "triplet_sh, ambiguous captions"
EPS = 0.01


@dataclass(frozen=True)
class Demo:
    """What is trained and how it is looked at; `quick` is the same, smaller.

    One model, one seed, four losses, and one run on captions that leave most out. SmoothAP sees an image with all
    its captions at once, hence fewer and other batches.
    """

    seed: int = 0
    quick: bool = False
    points: int = 201

    def recipes(self) -> dict[str, Recipe]:
        """A recipe per run, by the name of its folder."""
        data = "scenes:train=500,val=100,test=100,size=32" if self.quick else "scenes"
        base = Recipe(
            data=data,
            encoder="vsepp:width=16" if not self.quick else "vsepp:width=16,dim=128,words=64",
            epochs=6 if self.quick else 5,
            lr=0.002,
            warmup=2 if self.quick else 1,
            batch_size=64 if self.quick else 128,
            seed=self.seed,
        )
        found = {name: replace(base, objective=name) for name in ("triplet", "triplet_sh", "ntxent")}
        found["smoothap"] = replace(base, objective="smoothap", epochs=6, batch_size=16 if self.quick else 32)
        ambiguous = f"{data}{',' if ':' in data else ':'}ambiguity=0.9"
        found[AMBIGUOUS] = replace(found["triplet_sh"], data=ambiguous, epochs=3)
        return {name: recipe.canonical() for name, recipe in found.items()}


def demo(
    out: Path, plan: Demo, device: str = "cpu", progress: Progress | None = None, tell: Tell | None = None
) -> Path:
    """Do all of it and return the page. Runs that are finished in `out` are kept, one under way is gone on with.

    Raises InputError when `out` holds a demo of other choices; Interrupted when stopped.
    """
    say = tell or (lambda _line: None)
    runs = {name: _run(out, name, recipe, device, progress, say) for name, recipe in plan.recipes().items()}
    trained = {name: run for name, run in runs.items() if name != AMBIGUOUS}
    say("counting on the training split, ranking on the test split")
    found = [_counts(run, name, plan, progress) for name, run in trained.items()]
    found += [evaluate([replace(load(run.path, split="test"), name=name)]) for name, run in trained.items()]
    rows = join(found)
    write_text(out / "summary.csv", str(rows.to_csv(index=False, lineterminator="\n")))
    say("drawing")
    curves = pd.concat([run.curves(name) for name, run in runs.items()], ignore_index=True)
    story = Story(
        rows=rows,
        triplet_weights=_fields({f"T {t}": f"goal:triplet={t}" for t in TRIPLETS}, plan.points),
        pair_weights=pair_curves(PAIRS),
        loss_weights=_fields({s: s for s in ("triplet_sh", "ntxent", "smoothap", "unified")}, plan.points),
        trajectories=curves,
        plateau=_plateau(runs[AMBIGUOUS]),
        provenance=_provenance(plan, trained),
    )
    return page(out, story)


def _fields(specs: dict[str, str], points: int) -> pd.DataFrame:
    frames = [weight_field(spec, points=points).assign(objective=label) for label, spec in specs.items()]
    return pd.concat(frames, ignore_index=True)


def _run(out: Path, name: str, recipe: Recipe, device: str, progress: Progress | None, say: Tell) -> Run:
    path = out / "runs" / name.replace(", ", "-").replace(" ", "-")
    say(f"training {name}: {recipe.epochs} epochs")

    def listener(row: dict[str, Any]) -> None:
        loss = f"loss {row['loss']:.4g}, " if row["epoch"] else ""
        say(f"  {name}: epoch {row['epoch']}, {loss}validation rsum {row['rsum']:.1f}")

    run = Run(path)
    if not run.config.is_file():
        return train(recipe, path, device, progress=progress, listener=listener)
    if read_recipe(run.config) != recipe:
        raise InputError(f"{path} must be a run of this demo; it was trained otherwise. Choose another --out")
    if run.last.is_file() and Checkpoint.load(run.last).epoch == recipe.epochs:
        return run
    return resume(path, device=device, progress=progress, listener=listener)


def _counts(run: Run, name: str, plan: Demo, progress: Progress | None) -> pd.DataFrame:
    """COCOS of a run's best checkpoint with its own objective, in every convention that matters to it."""
    embedded = replace(load(run.path, split="train", progress=progress), name=name)
    objective = str(embedded.objective)
    conventions = [c for c in build("objectives", objective).conventions if c != "text" or name == "smoothap"]
    probes = tuple(f"cocos:eps={EPS:g},convention={c}" for c in conventions)
    return Sweep((objective,), probes, seed=plan.seed).run(embedded, progress=progress)[0]


def _plateau(run: Run) -> str:
    """The loss of the run on ambiguous captions beside 2 x batch x margin, what equal similarities give."""
    steps = pd.read_csv(run.trajectory)
    recipe = read_recipe(run.config)
    margin = build("objectives", recipe.objective).margin
    full = steps[(steps["objective"] == "triplet_sh") & (steps["epoch"] == steps["epoch"].max())]
    last = pd.read_csv(run.metrics).iloc[-1]
    floor = 2 * recipe.batch_size * margin
    return (
        f"With captions that leave most out (ambiguity 0.9) the hardest negative of a batch is usually true of the "
        f"image. In its last epoch the median loss of triplet_sh was {full['loss'].median():.1f}; 2 x batch x margin, "
        f"the loss when every similarity is equal, is {floor:.1f}. On the validation split the positives' mean "
        f"similarity ended at {last['pos_mean']:.3f} and that of the hardest negatives at {last['neg_mean']:.3f}, with "
        f"rsum {last['rsum']:.1f} of 600."
    )


def _provenance(plan: Demo, runs: dict[str, Run]) -> dict[str, str]:
    first = next(iter(runs.values()))
    checkpoint = Checkpoint.load(first.best)
    recipes = plan.recipes()
    return {
        "command": "lossscope demo"
        + (" --quick" if plan.quick else "")
        + (f" --seed {plan.seed}" if plan.seed else ""),
        "data": checkpoint.data,
        "fingerprint of the training split": checkpoint.data_fingerprint,
        "encoder": checkpoint.encoder,
        **{f"training of {name}": _told(recipe) for name, recipe in recipes.items()},
        "counts": f"eps {EPS:g}, batches of 128 pairs (images with all captions for smoothap), training split, frozen",
        "spread": "population standard deviation over batches; one seed",
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items()),
    }


def _told(recipe: Recipe) -> str:
    objective = spec_of(build("objectives", recipe.objective))
    batch = f"batch {recipe.batch_size}, Adam {recipe.lr:g}, warm-up {recipe.warmup}"
    return f"{objective}, {recipe.epochs} epochs, {batch}, seed {recipe.seed}"
