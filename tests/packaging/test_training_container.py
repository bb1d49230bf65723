"""Do the lines of `In your own training` run where only torch, numpy, pandas and their requirements exist?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
# refuses modules of every distribution except lossscope, torch, numpy, pandas and their requirements
CONTAINER = """
import importlib.abc, importlib.metadata, re, sys

def requirements(name):
    try:
        requires = importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (re.match(r"[A-Za-z0-9_.-]+", text)[0] for text in requires if "extra ==" not in text)

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

installed, pending = {"lossscope"}, ["torch", "numpy", "pandas"]
while pending:
    name = pending.pop()
    if plain(name) not in installed:
        installed.add(plain(name))
        pending += requirements(name)
owners = importlib.metadata.packages_distributions()
refused = {module for module, names in owners.items() if not installed & set(map(plain, names))}

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
assert {"scipy", "pyarrow", "pydantic", "safetensors", "matplotlib", "typer", "rich", "sklearn"} <= refused, refused
import torch, lossscope
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
images, captions = (normalize(torch.randn(16, 8), dim=1).requires_grad_() for _ in range(2))
S = (images @ captions.T).detach()
def clip(x, y):
    return cross_entropy(x @ y.T / 0.07, torch.arange(len(x)))
"""
HOOKS = """
from lossscope.live.callbacks import LightningHooks
hooks = LightningHooks(lossscope.LossScope("ntxent"))
class module:
    logged = {}
    def log_dict(self, row, **_):
        self.logged |= row
class trainer:
    global_step, optimizers = 1, ()
hooks.on_train_batch_end(trainer, module(), {"S": S}, None, 0)
assert "lossscope/i2t/C_neg" in module.logged, module.logged
"""
PARQUET = """
from lossscope.errors import InputError
scope = lossscope.LossScope("ntxent")
scope.watch(S)
try:
    scope.save("scope.parquet")
except InputError as error:
    assert "`pip install pyarrow`" in str(error), error
else:
    raise AssertionError("parquet was written without pyarrow")
"""
LINES = {
    "the README": re.split("```(?:python)?\n", README.partition("## In your own training\n")[2])[1],
    "embeddings": 'assert lossscope.LossScope("triplet_sh").watch(images=images, captions=captions)',
    "a loss of your own": "lossscope.LossScope(lambda S: cross_entropy(S, torch.arange(len(S)))).watch(S)",
    "wrap": "scope = lossscope.LossScope(every=1); scope.wrap(clip)(images, captions).backward(); scope.history[0]",
    "the doctor": """scope = lossscope.LossScope("ntxent", doctor=True)
for _ in range(3):
    scope.watch(images=images * float("nan"), captions=captions)
assert [finding.id for finding in scope.findings] == ["non-finite"], scope.findings""",
    "the recorder": """with lossscope.LossScope("ntxent", recorder=2) as scope:
    scope.watch(S)
    assert scope.write_recorder("test").is_dir()""",
    "a callback": HOOKS,
    "parquet": PARQUET,
}


RUN = f"""
import traceback
for name, line in {LINES}.items():
    try:
        exec(line, dict(globals()))
    except BaseException:
        print(name, traceback.format_exc())
"""


def test_a_loop_is_watched_with_torch_numpy_and_pandas_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONTAINER + RUN], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert (tmp_path / "scope.csv").is_file()
