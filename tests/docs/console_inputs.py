"""What the command lines of the documentation assume to be there: small files and runs under the names they use."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

import numpy as np
from console_lines import ROOT
from lossscope_cli import app
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.io.files import write_text
from lossscope.studies.study import Study
from lossscope.studies.study_file import read_study_file
from lossscope.studies.worker import prepare, work
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe
from tests.sources.text_folders import text_encoder

DATA = "scenes:train=60,val=20,test=20,size=16"
AUDITED = "scenes:ambiguity=0.4,train=60,val=20,test=20,size=16"
ENCODER = "vsepp:dim=16,words=8,width=4"
MY_LOSS = """
def my_loss(S, margin=0.2):
    return (S - S.diagonal()[:, None] + margin).relu().sum(1) - margin
"""
RUNS = {
    "triplet-seed0": ("triplet-seed0", "scenes-triplet-seed0", "A-seed0", "second"),
    "triplet-seed1": ("triplet-seed1", "A-seed1"),
    "triplet-sh-seed0": ("triplet-sh-seed0", "scenes-triplet-sh-seed0", "B-seed0", "first", "mine", "warm"),
    "triplet-sh-seed1": ("triplet-sh-seed1", "B-seed1"),
    "ntxent-seed0": ("scenes-ntxent-seed0",),
}
"""The names that lines use for a run, by its objective and seed."""
CHECKPOINTS = {
    "triplet-seed0": ("b.pt", "saf.pt"),
    "triplet-sh-seed0": ("BEST.pt", "sgr.pt"),
    "ntxent-seed0": ("ckpt.pt", "a.pt"),
}
DUMPS = ("embeddings.npz", "dump.npz", "coco_5k.npz", "saf.npz", "sgr.npz")
FRAME = [
    "cocos", "embeddings.npz", "--objective", "ntxent:tau=0.05", "--batch-size", "50", "--out", "frame", "--quiet",
]  # fmt: skip
FOLDERS = (".", "runs", "studies")
WRITTEN_AFTER = ("--out", "-o", "--curve", ">")
STUDIES = ("bleeker2022-small", "li2022-small")
SEVERAL_SEEDS = "li2022-small"  # the study that has two seeds, since power needs a spread
SMALLER = {
    r"seeds = .*": "seeds = [0]",
    r"epochs = \d+": "epochs = 1",
    r"warmup = \d+": "warmup = 0",
    r"batch_size = \d+": "batch_size = 16",
    r"ambiguity = \[.*\]": "ambiguity = [0.4]",
    r"train=1000,val=250,test=250": "train=40,val=10,test=10",
    r"width=16,dim=128,words=64": "width=4,dim=8,words=8",
    r"dim=128,words=64,blocks": "dim=8,words=8,blocks",
    r"(?s)\[\[objectives\]\][^\[]*?\"(?:Triplet SH|SmoothAP|Unified)\".*?(?=\n\[)": "",
}
"""What is smaller in a study: a pattern of its file, and what it becomes."""


def small_study(name: str) -> str:
    """Return a study of studies/ with one seed or two, one epoch, small data and models, and two losses."""
    text = (ROOT / "studies" / f"{name}.toml").read_text(encoding="utf-8")
    for pattern, smaller in SMALLER.items():
        text, changes = re.subn(pattern, smaller, text)
        assert changes or "ambiguity" in pattern or "blocks" in pattern, f"{name} has no {pattern}"
    return text.replace("seeds = [0]", "seeds = [0, 1]") if name == SEVERAL_SEEDS else text


def make_inputs(home: Path) -> None:
    """Write every file and folder that lines name."""
    for name, labels in RUNS.items():
        _train(home, name, labels)
    for seed, name in enumerate(DUMPS):
        _write_dump(home / name, seed)
    _write_shards(home)
    _write_other_sides(home)
    similarities = np.random.default_rng(0).standard_normal((8, 40))
    np.save(home / "results_f30k.npy", np.array({"npts": 8, "sims": similarities}, dtype=object), allow_pickle=True)
    _write_texts(home)
    _write_text_models(home)
    _write_log(home / "train.csv")
    judged = "".join(f"test-{n:05d}\ttest-{(n + 1) % 20:05d}#2\t3\t{n % 4 + 1}\t4\n" for n in range(20))
    (home / "ExpertAnnotations.txt").write_text(judged, encoding="utf-8")
    np.savez(home / "labels.npz", label=np.full(300, 0.9))
    (home / "my_loss.py").write_text(example("docs/objectives.md", "my_loss.py") + MY_LOSS, encoding="utf-8")
    (home / "train.py").write_text(example("docs/conformance.md", "train.py"), encoding="utf-8")
    (home / "pml.py").write_text(example("docs/objectives.md", "pml.py"), encoding="utf-8")
    (home / "studies").mkdir()
    for name in STUDIES:
        (home / "studies" / f"{name}.toml").write_text(small_study(name), encoding="utf-8")
        _run_study(home, name)
    checkpoint = str(home / "ckpt.pt")
    _write_output(home / "rows.csv", ["cocos", checkpoint, "--format", "csv"])
    _write_output(home / "field.csv", ["diagram", "--triplet", "cir", "--format", "csv"])
    _write_output(None, ["cocos", checkpoint, "--curve", str(home / "curve.csv")])
    study = str(home / "runs" / STUDIES[0])
    _write_output(None, ["report", study, "--out", str(home / "report"), "--resamples", "99", "--quiet"])
    pilot = str(home / "runs" / SEVERAL_SEEDS)
    _write_output(home / "power.csv", ["study", "power", pilot, "--resamples", "99", "--format", "csv"])
    with contextlib.chdir(home):  # the page shows the name of the source
        _write_output(None, FRAME)
    _write_audit(home / "audit")
    for name in ("candidates", "CANDIDATES"):
        _write_output(None, ["mine", str(home / "runs" / "first"), "--out", str(home / name)])


def copy_named(home: Path, words: list[str], to: Path) -> None:
    """Copy what the words of a line name, alone or within a spec, into its folder; not what the line writes."""
    read = [word.removeprefix("./") for before, word in pairwise(["", *words]) if before not in WRITTEN_AFTER]
    read += [f"runs/{Path(word).stem}" for word in words if word.endswith(".toml") and words[2] != "run"]
    parts = [source for folder in FOLDERS for source in (home / folder).iterdir() if source.name not in FOLDERS]
    for source in parts:
        name = source.relative_to(home).as_posix()
        if any(_names(word, name) for word in read):
            (to / name).parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, to / name)


def _names(word: str, name: str) -> bool:
    if word == "runs/*":
        word = "runs/triplet-*seed?"  # of all runs those of two systems, each under one name
    return fnmatch(name, word) if "*" in word else bool(re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w-])", word))


def example(page: str, name: str) -> str:
    """Return the Python block of a page that begins with `# NAME`."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    (block,) = (block for block in blocks if block.startswith(f"# {name}\n"))
    return str(block)


def _train(home: Path, name: str, labels: tuple[str, ...]) -> None:
    objective, _, seed = name.rpartition("-seed")
    recipe = Recipe(
        data=DATA, encoder=ENCODER, objective=objective, epochs=2, batch_size=32, lr=0.002, seed=int(seed), warmup=1
    )
    run = train(recipe, home / "trained" / name).path
    for label in labels:
        shutil.copytree(run, home / "runs" / label)
    for label in CHECKPOINTS.get(name, ()):
        shutil.copy(run / "best.pt", home / label)


def _write_audit(folder: Path) -> None:
    """Audit small scenes; of the pairs of the sheet every second one is a match."""
    _write_output(None, ["audit", "--data", AUDITED, "--out", str(folder), "--sheet", "30", "--quiet"])
    sheet = read_csv(folder / "sheet.csv").astype({"answer": object})
    sheet["answer"] = ["yes", "no"] * (len(sheet) // 2)
    write_text(folder / "sheet.csv", format_csv(sheet))


def _write_dump(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    caption_image = np.repeat(np.arange(100), 2)
    images = np.random.default_rng(9).standard_normal((100, 16))
    captions = images[caption_image] + rng.standard_normal((200, 16))
    np.savez(path, images=images, captions=captions, caption_image=caption_image)


def _write_shards(home: Path) -> None:
    """Write the embeddings of a dump in two shards a side."""
    (home / "shards").mkdir()
    with np.load(home / "embeddings.npz") as arrays:
        for name in ("images", "captions"):
            for number, part in enumerate(np.array_split(arrays[name], 2)):
                np.save(home / "shards" / f"{name}-{number}.npy", part)


def _write_log(path: Path) -> None:
    """Write the log of a training of 300 steps, whose loss falls."""
    losses = 4.85 * (0.2 + 0.8 * np.exp(-np.arange(300) / 60)) + np.random.default_rng(5).normal(0, 0.05, 300)
    lines = [f"{step},{loss:.4f},{0.1 * loss:.4f}" for step, loss in enumerate(losses, 1)]
    path.write_text("\n".join(["step,train/contrastive,grad_norm", *lines]) + "\n", encoding="utf-8")


def _write_other_sides(home: Path) -> None:
    """Write embeddings of queries and documents, of labelled products and of two views, and a file of texts."""
    rng = np.random.default_rng(3)
    first = rng.standard_normal((160, 16))
    second = first + rng.standard_normal((160, 16))
    mined = rng.integers(0, 160, (160, 3))
    positives = np.stack([np.arange(160)] * 2, 1)
    np.savez(home / "qa.npz", queries=first, documents=second, positives=positives, negatives=mined)
    np.savez(home / "guide.npz", queries=second, documents=first, positives=positives, negatives=mined)
    np.savez(home / "views.npz", sides=np.array(["view 1", "view 2"]), view_1=first, view_2=second)
    np.savez(home / "products.npz", embeddings=first, labels=np.arange(160) // 8)
    rows = [{"query": f"what is {n} ?", "positive": f"it is {n}", "negative": f"it is {n + 1}"} for n in range(200)]
    (home / "train.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


def _write_texts(home: Path) -> None:
    """Write rows to test on, and a folder of BEIR with a run."""
    rows = [{"query": f"when was {n} ?", "positive": f"it was {n}"} for n in range(200)]
    (home / "test.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    texts = [{"_id": str(n), "text": f"text {n}"} for n in range(8)]
    (home / "scifact" / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        (home / "scifact" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, texts)) + "\n", encoding="utf-8")
    judged = "".join(f"{n}\t{n}\t1\n" for n in range(8))
    (home / "scifact" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    ranked = "".join(f"{n} Q0 {(n + k) % 8} {k + 1} {-k} bm25\n" for n in range(8) for k in range(3))
    (home / "bm25.trec").write_text(ranked, encoding="utf-8")


def _write_text_models(home: Path) -> None:
    """Write token vectors of both sides, users and items without names, and two folders with a model of texts."""
    rng = np.random.default_rng(4)
    tokens = {f"{side}_tokens": rng.standard_normal((40 * n, 8)) for side, n in (("query", 3), ("document", 6))}
    offsets = {f"{side}_offsets": np.arange(41) * n for side, n in (("query", 3), ("document", 6))}
    np.savez(home / "colbert.npz", **tokens, **offsets, positives=np.stack([np.arange(40)] * 2, 1))  # type: ignore[arg-type]
    rows = {name: rng.standard_normal((160, 16)).astype("f4") for name in ("users", "items")}
    save_file({**rows, "positives": np.stack([np.arange(160)] * 2, 1)}, home / "users.safetensors")
    folder = text_encoder(home / "bge-small")
    SentenceTransformer(str(folder), device="cpu").save(str(home / "minilm"))


def _run_study(home: Path, name: str) -> None:
    study = Study.begin(home / "runs" / name, read_study_file(home / "studies" / f"{name}.toml"))
    prepare(study)
    for run in study.grid.runs:
        work(study.path, run.key)


def _write_output(path: Path | None, words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    if path is not None:
        path.write_text(result.stdout, encoding="utf-8")
