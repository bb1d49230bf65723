"""The gallery: figures/ and reports/, every picture with the command that made it, from studies on painted scenes.

`python studies/gallery.py` runs what is missing of three small studies (about an hour on two cores; one that was
stopped goes on), reports them, draws the diagrams and writes figures/README.md. `--runs DIR` says where studies lie.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lossscope.io.files import write_text
from lossscope.report.chapters._counts import counts_and_rsum
from lossscope.report.chapters.base import ReportData
from lossscope.stats.compare import compare
from lossscope.stats.rank_association import association
from lossscope.studies.report import read_runs

HERE = Path(__file__).parents[1]
FIGURES, REPORTS = HERE / "figures", HERE / "reports"
BATCH = 128  # pairs, of the studies
STUDIES = ("bleeker2022-small", "li2022-small", "li2022-sensitivity-small")
KEPT = ("csv", "latex/*.tex")  # of a report; of the first study the page too, which has all its pictures


@dataclass(frozen=True)
class Drawn:
    """A picture that a command draws: {runs} is where studies lie. kept: which, where it draws several (`-arrows`)."""

    name: str
    command: str
    shows: str
    kept: str = ""


@dataclass(frozen=True)
class Taken:
    """A picture of a study's report."""

    name: str
    study: str
    picture: str
    shows: str


_RUN = "{runs}/bleeker2022-small/runs/scenes-ambiguity-0.1--vse--nt-xent--seed0/run"
_SH = "{runs}/bleeker2022-small/runs/scenes-ambiguity-0.1--vse--triplet-sh--seed0/run"
PICTURES: tuple[Drawn | Taken, ...] = (
    Drawn(
        "triplet_weights",
        "diagram --triplet con --triplet nca --triplet cir",
        "Triplet weights of GOAL over (positive, negative) similarity: Figure 2 of Xuan & Chen (2023)",
    ),
    Drawn(
        "pair_weights",
        "diagram --pair con --pair lin --pair sig --pair lin-ms --pair sig-ms",
        "Pair weights of GOAL: Figure 3 of Xuan & Chen (2023)",
    ),
    Drawn(
        "directions",
        "diagram --objective triplet-sh --objective ntxent --objective unified --arrows",
        "Where one step of the loss would move a query's similarities",
        "-arrows",
    ),
    Drawn(
        "overlay",
        f"diagram --triplet nca --low 0 --overlay {_RUN} --overlay {_SH}",
        "Where the queries of two trained models are on the field",
    ),
    Drawn(
        "path",
        f"diagram --triplet nca --low 0 --overlay {_SH} --path",
        "How the cloud of one model moves in training, from light to dark",
    ),
    Drawn(
        "eps_curve",
        "cocos checkpoints/tiny.pt --objective ntxent:tau=0.02..0.2/4 --objective triplet --curve {out}",
        "Negatives that count for every threshold at once",
    ),
    Taken(
        "count_recall",
        "bleeker2022-small",
        "count_recall",
        "Samples that count per query against rsum, at three rates of captions that are true of other images too",
    ),
    Taken(
        "weight_mass",
        "bleeker2022-small",
        "weight_mass-1",
        "Where the counted weight of a query is, for four losses",
    ),
    Taken(
        "tangent",
        "bleeker2022-small",
        "tangent-1",
        "Norms of the gradient that turns a query on the sphere",
    ),
    Taken(
        "what_if",
        "bleeker2022-small",
        "what_if-1",
        "What NT-Xent would weigh at other temperatures in frozen models",
    ),
    Taken(
        "training",
        "li2022-small",
        "training-1",
        "Loss and rsum against epochs, as Figure 3 of Li et al. (2022)",
    ),
    Taken(
        "separation",
        "li2022-small",
        "separation-1",
        "Similarity of positives and hardest negatives against epochs, as Figure 4 of Li et al. (2022)",
    ),
    Taken(
        "sensitivity",
        "li2022-sensitivity-small",
        "sensitivity-3",
        "rsum against margin and scale of the unified loss, as Figure 5 of Li et al. (2022)",
    ),
)


def run(words: list[str], where: Path = HERE) -> None:
    """Run `lossscope WORDS` in a folder, the repository's root, and print the command first."""
    print("lossscope", *words, flush=True)
    subprocess.run([sys.executable, "-m", "lossscope_cli", *words], check=True, cwd=where)


def report_study(study: str, runs: Path) -> Path:
    """Run what is missing of a study and report it; return the page. What is kept goes to reports/."""
    run(["study", "run", f"studies/{study}.toml", "--out", str(runs / study)])
    page = runs / f"{study}-report"
    run(["report", str(runs / study), "--out", str(page), "--title", study])
    home = REPORTS / study
    shutil.rmtree(home, ignore_errors=True)
    for pattern in (*KEPT, *(["index.html"] if study == STUDIES[0] else [])):
        for path in page.glob(pattern):
            to = home / path.relative_to(page)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
    return page


def make_picture(one: Drawn | Taken, runs: Path, pages: dict[str, Path]) -> str:
    """Make the picture; return its line of the README."""
    to = FIGURES / f"{one.name}.png"
    if isinstance(one, Taken):
        shutil.copy(pages[one.study] / "figures" / f"{one.picture}.png", to)
        command = f"lossscope report runs/{one.study}"
        return f"| ![]({one.name}.png) | {one.shows}; `{command}` |"
    words = one.command.format(runs=runs.name, out=to).split()  # legends name sources as they are given here
    run(words if "--curve" in words else [*words, "-o", str(to)], runs.parent if "{runs}" in one.command else HERE)
    if one.kept:
        (FIGURES / f"{one.name}{one.kept}.png").replace(to)
    for extra in FIGURES.glob(f"{one.name}-*.png"):  # what the command draws beside
        extra.unlink()
    command = one.command.format(runs="runs", out="eps_curve.png")
    return f"| ![]({one.name}.png) | {one.shows}; `lossscope {command}` |"


def answer(runs: Path) -> str:
    """Return reports/README.md: where losses that count fewer samples retrieve better, and where it turns round."""
    results = read_runs([runs / "bleeker2022-small"])
    associations = association(counts_and_rsum(ReportData(results)))
    pairs = compare(results.retrieval, ["rsum"], baseline="Triplet")
    pairs = pairs[pairs["system"] == "Triplet SH"]
    holds, turns = pairs[pairs["ci_low"] > 0], pairs[pairs["ci_high"] < 0]
    truth = results.rows[results.rows["statistic"] == "true_negatives"].drop_duplicates("data")
    rates = "; ".join(
        f"{row['data']}: {row['mean']:.2g} %, {(BATCH - 1) * row['mean'] / 100:.2g} of a batch"
        for row in truth.to_dict("records")
    )
    lines = "\n".join(
        f"| {row['encoder']} | {row['data']} | {row['difference']:+.1f} | {row['ci_low']:.1f} to {row['ci_high']:.1f} "
        f"| {row['t_low']:.1f} to {row['t_high']:.1f} |"
        for row in pairs.to_dict("records")
    )
    taus = "\n".join(
        f"| {row['panel']} | {row['direction']} | {row['tau']:.2f} | {row['low']:.2f} to {row['high']:.2f} | "
        f"{row['verdict']} |"
        for row in associations.to_dict("records")
    )
    return ANSWER.format(holds=_differences(holds), turns=_differences(turns), lines=lines, taus=taus, rates=rates)


def _differences(rows: pd.DataFrame) -> str:
    each = [
        f"{row['encoder']}, {row['data']}: {row['difference']:+.1f} points of rsum, {row['ci_low']:.1f} to "
        f"{row['ci_high']:.1f} over images"
        for row in rows.to_dict("records")
    ]
    return "; ".join(each) or "nowhere"


ANSWER = """# Reports

Made by `make gallery` from small studies on painted scenes.
[bleeker2022-small/index.html](bleeker2022-small/index.html) opens from disk.

| report | of |
|---|---|
| [bleeker2022-small](bleeker2022-small/) | four losses, two models, three rates of ambiguous captions, three seeds |
| [li2022-small](li2022-small/) | Triplet-HN, VLC and the unified loss |
| [li2022-sensitivity-small](li2022-sensitivity-small/) | margin and scale of the unified loss |
| [objectives](objectives/README.md) | every objective with one budget |

## Do losses that count fewer samples retrieve better?

The COCOS paper concludes so. Counted correctly, eps 0.01, on the training split of the frozen model:

**Where it holds.** Of the two triplet losses, which differ only in how many negatives they count, the one that counts
fewer (Triplet SH) retrieves better in: {holds}.

**Where it turns round.** It retrieves worse in: {turns}.

Which pairs of an image and a caption of another image are true is known of scenes: {rates} of 128 pairs, on average.

| model | data | Triplet SH - Triplet | 95 % over images | 95 % over three seeds (t) |
|---|---|--:|--:|--:|
{lines}

Over all four losses the rule is weaker. tau: over pairs of runs of different losses, the share in which the one that
counts more retrieves better less the share in which the one that counts fewer does; interval over trainings of these
losses, three of each:

| models | direction | tau | 95 % | |
|---|---|--:|--:|---|
{taus}

SmoothAP counts triplets of batches of 32 images with all captions, the others negatives of 128 pairs; its budget of
steps is that of the images. All models are small, trained from scratch for ten epochs: what is shown is what these
losses do within that budget, not where they end with pretrained towers.

![](../figures/count_recall.png)
"""
HEAD = """# Gallery

All pictures are of the embedded data set, made by `make gallery`: three small studies on painted scenes, their reports
([reports/](../reports/)), and the commands below.

| picture | what it shows |
|---|---|
"""
TAIL = """
[objectives/](objectives/) has the weight field of every objective, pull and push side by side, made by `make docs` and
shown in [docs/objectives.md](../docs/objectives.md).
"""


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--runs", type=Path, default=HERE / "runs", help="where the studies lie")
    runs = options.parse_args().runs.resolve()
    pages = {study: report_study(study, runs) for study in STUDIES}
    lines = [make_picture(one, runs, pages) for one in PICTURES]
    write_text(REPORTS / "README.md", answer(runs))
    write_text(FIGURES / "README.md", HEAD + "\n".join(lines) + "\n" + TAIL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
