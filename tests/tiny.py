"""Train a recipe and studies in seconds, for tests that need a run but not a good one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.training.recipe import Recipe

if TYPE_CHECKING:
    from lossscope.studies.study import Study

SCENES = "scenes:train=60,val=20,test=20,size=16"
ENCODER = "vsepp:dim=16,words=8,width=4"
RECIPE = Recipe(data=SCENES, encoder=ENCODER, objective="ntxent", epochs=2, batch_size=32, lr=0.002)
PROBES = ("cocos:eps=0.01,curve=true", "similarity")


def study_text(seeds: Sequence[int] = (0, 1), epochs: int = 1, train: int = 24, probes: Sequence[str] = PROBES) -> str:
    """Return the file of a study of two losses.

    Args:
        seeds: of its runs.
        epochs: of each run.
        train: number of images that runs train on.
        probes: specs of the probes of every run.
    """
    return f"""
name = "tiny"
seeds = {list(seeds)}
[recipe]
epochs = {epochs}
batch_size = 16
lr = 0.01
[[data]]
name = "scenes"
spec = "scenes:train={train},val=8,test=10,size=16"
[[encoders]]
name = "VSE++"
spec = "vsepp:width=4,dim=8,words=8"
[[objectives]]
name = "NT-Xent"
spec = "ntxent"
[[objectives]]
name = "Triplet"
spec = "triplet"
[examine]
probes = [{", ".join(f'"{probe}"' for probe in probes)}]
what_if = "ntxent:tau=0.05..0.2/3"
"""


STUDY = study_text(probes=("cocos:eps=0.01,curve=true", "weight_mass", "similarity", "hubness"))
STUDY_OF_ONE_RUN = """
name = "tiny"
[recipe]
epochs = 1
batch_size = 8
[[data]]
spec = "scenes:train=16,val=8,test=8,size=16"
[[encoders]]
spec = "vsepp:width=4,dim=8,words=8"
[[objectives]]
spec = "ntxent"
[examine]
probes = ["cocos:eps=0.01"]
what_if = ""
singles = []
"""


def begin_study(folder: Path, text: str = STUDY) -> Study:
    """Write a study file as tiny.toml of a folder, and begin the study in `study` beside it."""
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import read_study_file

    file = folder / "tiny.toml"
    file.write_text(text, encoding="utf-8")
    return Study.begin(folder / "study", read_study_file(file))


def run_study(folder: Path, text: str = STUDY) -> Study:
    """Begin a study as `begin_study` does, and finish every run of it in this process."""
    from lossscope.studies.worker import work

    study = begin_study(folder, text)
    for run in study.grid.runs:
        work(study.path, run.key)
    return study
