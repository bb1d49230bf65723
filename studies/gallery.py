"""Make the gallery: figures/ and reports/ of studies on painted scenes, each picture with its command.

`python studies/gallery.py` runs the missing parts of four small studies (an hour and a half on two cores; a stopped
study resumes), reports them, draws the diagrams and writes figures/README.md. `--runs DIR` is the folder of studies,
`--only STUDY` makes its report and the pictures copied from it.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lossscope.io.files import write_text
from lossscope.report.chapters._counts import counts_and_score
from lossscope.report.chapters.base import ReportData
from lossscope.stats.compare import compare
from lossscope.stats.rank_association import association
from lossscope.studies.report import read_runs

ROOT = Path(__file__).parents[1]
FIGURES, REPORTS = ROOT / "figures", ROOT / "reports"
BATCH = 128  # pairs in a batch of the studies
STUDIES = ("bleeker2022-small", "li2022-small", "li2022-sensitivity-small", "xuan2023-small")
# files of a report that go to reports/; of the first study also the page, which contains its pictures
REPORT_FILES = ("csv", "latex/*.tex", "latex/README.md")
AUDIT_FILES = ("index.html", "audit.json", "sheet.csv")


@dataclass(frozen=True)
class CommandPicture:
    """A picture that a `lossscope` command draws."""

    name: str
    command: str  # {runs} stands for the folder of studies, {out} for the file
    caption: str
    suffix: str = ""  # of the kept file (`-arrows`), if the command draws several


@dataclass(frozen=True)
class ReportPicture:
    """A picture copied from the report of a study."""

    name: str
    study: str
    report_name: str  # its name in the report
    caption: str


_NTXENT_RUN = "{runs}/bleeker2022-small/runs/scenes-ambiguity-0.1--vse--nt-xent--seed0/run"
_TRIPLET_SH_RUN = "{runs}/bleeker2022-small/runs/scenes-ambiguity-0.1--vse--triplet-sh--seed0/run"
PICTURES: tuple[CommandPicture | ReportPicture, ...] = (
    CommandPicture(
        "triplet_weights",
        "diagram --triplet con --triplet nca --triplet cir",
        "Triplet weights of GOAL over (positive, negative) similarity: Figure 2 of Xuan & Chen (2023)",
    ),
    CommandPicture(
        "pair_weights",
        "diagram --pair con --pair lin --pair sig --pair lin-ms --pair sig-ms",
        "Pair weights of GOAL: Figure 3 of Xuan & Chen (2023)",
    ),
    CommandPicture(
        "directions",
        "diagram --objective triplet-sh --objective ntxent --objective unified --arrows",
        "Where one step of the loss would move a query's similarities",
        "-arrows",
    ),
    CommandPicture(
        "circle_steps",
        "diagram --objective triplet-sh --objective vlc:gamma=5 --objective unified:gamma=5 "
        "--on-circle 0.5,0.75,0.6,0.35,-0.5",
        "Where one step moves a query, its positive and its negatives: Figure 1 of Li et al. (2022)",
        "-circle",
    ),
    CommandPicture(
        "tangent_cloud",
        "diagram --objective triplet-sh --objective vlc:gamma=5 --objective unified:gamma=5 "
        "--overlay checkpoints/tiny.pt --tangent",
        "What turns the hardest negative of a query, which vanishes as it comes close: Figure 2 of Li et al. (2022)",
        "-tangent",
    ),
    CommandPicture(
        "overlay",
        f"diagram --triplet nca --low 0 --overlay {_NTXENT_RUN} --overlay {_TRIPLET_SH_RUN}",
        "Where the queries of two trained models are on the field",
    ),
    CommandPicture(
        "path",
        f"diagram --triplet nca --low 0 --overlay {_TRIPLET_SH_RUN} --path",
        "How the cloud of one model moves in training, a line an epoch, from light to dark",
    ),
    CommandPicture(
        "eps_curve",
        "cocos checkpoints/tiny.pt --objective ntxent:tau=0.02..0.2/4 --objective triplet --unit paper --curve {out}",
        "Negatives that count for every threshold at once",
    ),
    ReportPicture(
        "count_recall",
        "bleeker2022-small",
        "count_recall",
        "Samples that count per query against rsum, at three rates of captions that are true of other images too",
    ),
    ReportPicture(
        "weight_mass",
        "bleeker2022-small",
        "weight_mass-1",
        "Weight on the negatives of a query for four losses: how much is above eps, its total, its concentration",
    ),
    ReportPicture(
        "tangent",
        "bleeker2022-small",
        "tangent-1",
        "Norms of the gradient that turns a query on the sphere, with their medians",
    ),
    ReportPicture(
        "what_if",
        "bleeker2022-small",
        "what_if-1",
        "What NT-Xent would weigh at other temperatures in frozen models",
    ),
    ReportPicture(
        "training",
        "li2022-small",
        "training-1",
        "Loss and rsum against epochs, as Figure 3 of Li et al. (2022)",
    ),
    ReportPicture(
        "separation",
        "li2022-small",
        "separation-1",
        "Similarity of positives and hardest negatives against epochs, as Figure 4 of Li et al. (2022)",
    ),
    ReportPicture(
        "sensitivity",
        "li2022-sensitivity-small",
        "sensitivity-3",
        "rsum against margin and scale of the unified loss, as Figure 5 of Li et al. (2022); Triplet-HN after a "
        "warm-up",
    ),
)


def run(arguments: list[str], folder: Path = ROOT) -> None:
    """Print `lossscope ARGUMENTS` and run it in a folder."""
    print("lossscope", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "lossscope_cli", *arguments], check=True, cwd=folder)


def report_study(study: str, runs: Path) -> Path:
    """Run the missing part of a study and report it; copy REPORT_FILES to reports/; return the folder of the report."""
    run(["study", "run", f"studies/{study}.toml", "--out", str(runs / study)])
    report = runs / f"{study}-report"
    run(["report", str(runs / study), "--out", str(report), "--title", study])
    home = REPORTS / study
    shutil.rmtree(home, ignore_errors=True)
    for pattern in (*REPORT_FILES, *(["index.html"] if study == STUDIES[0] else [])):
        for path in report.glob(pattern):
            target = home / path.relative_to(report)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target)
    return report


def audit_example() -> None:
    """Audit the example checkpoint; copy the page and the numbers to reports/."""
    folder = REPORTS / "audit-tiny"
    with tempfile.TemporaryDirectory() as out:
        run(["audit", "checkpoints/tiny.pt", "--out", out, "--quiet"])
        folder.mkdir(exist_ok=True)
        for name in AUDIT_FILES:
            shutil.copy(Path(out) / name, folder / name)


def make_picture(picture: CommandPicture | ReportPicture, runs: Path, reports: dict[str, Path]) -> str:
    """Make the picture; return its row of the README."""
    file = FIGURES / f"{picture.name}.png"
    if isinstance(picture, ReportPicture):
        shutil.copy(reports[picture.study] / "figures" / f"{picture.report_name}.png", file)
        command = f"lossscope report runs/{picture.study}"
        return f"| ![{picture.caption}]({picture.name}.png) | {picture.caption}; `{command}` |"
    arguments = picture.command.format(runs=runs.name, out=file).split()  # anybody can repeat the command
    if "--curve" not in arguments:
        arguments += ["-o", str(file)]
    run(arguments, runs.parent if "{runs}" in picture.command else ROOT)
    if picture.suffix:
        (FIGURES / f"{picture.name}{picture.suffix}.png").replace(file)
    for extra in FIGURES.glob(f"{picture.name}-*.png"):  # further pictures of the command
        extra.unlink()
    command = picture.command.format(runs="runs", out="eps_curve.png")
    return f"| ![{picture.caption}]({picture.name}.png) | {picture.caption}; `lossscope {command}` |"


def reports_readme(runs: Path) -> str:
    """Return reports/README.md: where losses that count fewer samples retrieve better, and where worse."""
    results = read_runs([runs / "bleeker2022-small"])
    associations = association(counts_and_score(ReportData(results)))
    pairs = compare(results.retrieval, ["rsum"], baseline="Triplet")
    pairs = pairs[pairs["system"] == "Triplet SH"]
    better, worse = pairs[pairs["ci_low"] > 0], pairs[pairs["ci_high"] < 0]
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
        f"| {row['panel']} | {row['direction']} | {row['tau']:.2f} | {_interval(row['low'], row['high'])} | "
        f"{row['verdict']} |"
        for row in associations.to_dict("records")
    )
    differences = {"better": _differences(better), "worse": _differences(worse)}
    return REPORTS_README.format(**differences, lines=lines, taus=taus, rates=rates)


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _differences(rows: pd.DataFrame) -> str:
    phrases = [
        f"{row['encoder']}, {row['data']}: {row['difference']:+.1f} points of rsum, {row['ci_low']:.1f} to "
        f"{row['ci_high']:.1f} over images"
        for row in rows.to_dict("records")
    ]
    return "; ".join(phrases) or "nowhere"


REPORTS_README = """# Reports

Made by `make gallery` from small studies on painted scenes.
[bleeker2022-small/index.html](bleeker2022-small/index.html) opens from disk.

| report | of |
|---|---|
| [bleeker2022-small](bleeker2022-small/) | four losses, two models, three rates of ambiguous captions, three seeds |
| [li2022-small](li2022-small/) | Triplet-HN, VLC and the unified loss |
| [li2022-sensitivity-small](li2022-sensitivity-small/) | margin and scale of the unified loss |
| [xuan2023-small](xuan2023-small/) | GOAL's 15 combinations of weights and the triplet loss, two models, three seeds |
| [objectives](objectives/README.md) | every objective with one budget |
| [law](law/README.md) | does a loss learn better if fewer samples count? Planned before it ran: 1,302 trainings |
| [audit-tiny](audit-tiny/index.html) | negatives that are probably positives, found by `lossscope audit` |

## Do losses that count fewer samples retrieve better?

The COCOS paper concludes so. Counted correctly, eps 0.01, on the training split of the frozen model:

**Where it holds.** Of the two triplet losses, which differ only in how many negatives they count, the one that counts
fewer (Triplet SH) retrieves better in: {better}.

**Where the order is reversed.** It retrieves worse in: {worse}.

The scenes know which captions are also true of other images: {rates} of 128 pairs, on average.

| model | data | Triplet SH - Triplet | 95 % over images | 95 % over three seeds (t) |
|---|---|--:|--:|--:|
{lines}

Over all four losses the rule is weaker. Kendall's τ, over pairs of runs of different losses: the share in which the run
that counts more retrieves better, minus the share in which the run that counts fewer does. Three trainings of each loss
are too few for an interval and a verdict, which need five:

| models | direction | Kendall's τ | 95 % | |
|---|---|--:|--:|---|
{taus}

SmoothAP counts triplets of batches of 32 images with all captions, the others negatives of 128 pairs; its budget of
steps is that of the images. All models are small, trained from scratch for ten epochs: the table shows these losses
within that budget, not their results with pretrained towers.

![Counts against rsum, a panel for each model and rate](../figures/count_recall.png)
"""
HEAD = """# Gallery

All pictures are of the embedded data set, made by `make gallery`: four small studies on painted scenes, their reports
([reports/](../reports/)), and the commands below.

| picture | what it shows |
|---|---|
"""
TAIL = """
[objectives/](objectives/) has the weight field of every objective, pull and push side by side, made by `make docs` and
shown in [docs/objectives.md](../docs/objectives.md).
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="folder of the studies")
    parser.add_argument("--only", choices=STUDIES, help="study whose report and pictures to make")
    options = parser.parse_args()
    runs = options.runs.resolve()
    if options.only is not None:
        reports = {options.only: report_study(options.only, runs)}
        for picture in PICTURES:
            if isinstance(picture, ReportPicture) and picture.study == options.only:
                make_picture(picture, runs, reports)
        return 0
    reports = {study: report_study(study, runs) for study in STUDIES}
    audit_example()
    lines = [make_picture(picture, runs, reports) for picture in PICTURES]
    write_text(REPORTS / "README.md", reports_readme(runs))
    write_text(FIGURES / "README.md", HEAD + "\n".join(lines) + "\n" + TAIL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
