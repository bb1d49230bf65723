"""Make the small files and runs that the command lines of the documentation assume, under the names they use.

Each is made when a line names it first, once for all processes of pytest.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from console_lines import ROOT
from filelock import FileLock
from lossscope_cli import app
from safetensors.numpy import save_file
from typer.testing import CliRunner

from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.io.files import write_text
from lossscope.studies.study import Study
from lossscope.studies.study_file import read_study_file
from lossscope.studies.worker import prepare, work
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

DATA = "scenes:train=60,val=20,test=20,size=16"
PASSAGES = "passages:train=200,val=30,test=30"
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
DUMPS = ("embeddings.npz", "dump.npz", "coco_5k.npz", "saf.npz", "sgr.npz", "a.npz", "b.npz")
WRITTEN_AFTER = ("--out", "-o", "--curve", ">")
STUDIES = ("bleeker2022-small", "li2022-small")
SEVERAL_SEEDS = "li2022-small"  # this study has two seeds, since power needs a spread
SMALLER = {
    r"seeds = .*": "seeds = [0]",
    r"epochs = \d+": "epochs = 1",
    r"warmup = \d+": "warmup = 0",
    r"batch_size = \d+": "batch_size = 16",
    r"ambiguity = \[.*\]": "ambiguity = [0.4]",
    r"train=1000,val=250,test=250": "train=16,val=8,test=8",
    r"width=16,dim=128,words=64": "width=4,dim=8,words=8",
    r"dim=128,words=64,blocks": "dim=8,words=8,blocks",
    r"(?s)\[\[objectives\]\][^\[]*?\"(?:Triplet SH|SmoothAP|Unified)\".*?(?=\n\[)": "",
    r"(?m)^\[examine\]$": '[examine]\nwhat_if = ""\nprobes = ["cocos:curve=true", "tangent", "weight_mass"]',
}
"""Smaller numbers in a study: pattern of its file -> replacement."""


@dataclass(frozen=True)
class Inputs:
    """The files and folders that lines name, in a folder that all processes of pytest share."""

    home: Path

    def path(self, name: str) -> Path:
        """Return a file or folder; the first process that asks for it makes it, and others wait."""
        target, made = self.home / name, self.home / ".made" / name.replace("/", "--")
        made.parent.mkdir(exist_ok=True)
        with FileLock(f"{made}.lock"):
            if not made.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                MAKERS[name](self, target)
                made.touch()
        return target

    def copy_named(self, command: str, words: Sequence[str], to: Path) -> None:
        """Copy the inputs that the words of a line name into its folder."""
        for name in named(command, words):
            source = self.path(name)
            (to / name).parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, to / name)


def named(command: str, words: Sequence[str]) -> list[str]:
    """Return the inputs that the words after a command name, alone or within a spec; outputs are left out."""
    read = [word.removeprefix("./") for before, word in pairwise(["", *words]) if before not in WRITTEN_AFTER]
    if command != "study run":  # makes the folder of the named file
        read += [f"runs/{Path(word).stem}" for word in words if word.endswith(".toml")]
    return [name for name in MAKERS if any(_names(word, name) for word in read)]


def kind_of(name: str) -> str:
    """Return the kind of an input: one function makes all inputs of a kind."""
    maker: Any = MAKERS[name]
    return str(getattr(maker, "func", maker).__name__)


def _names(word: str, name: str) -> bool:
    if word == "runs/*":
        word = "runs/triplet-*seed?"  # the runs of two systems, each under its name
    return fnmatch(name, word) if "*" in word else bool(re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w-])", word))


def small_study(name: str) -> str:
    """Return a study of studies/ with one seed, one epoch, small data and models, and two losses."""
    text = (ROOT / "studies" / f"{name}.toml").read_text(encoding="utf-8")
    for pattern, smaller in SMALLER.items():
        text, changes = re.subn(pattern, smaller, text)
        assert changes or "ambiguity" in pattern or "blocks" in pattern, f"{name} has no {pattern}"
    return text


def example(page: str, name: str) -> str:
    """Return the Python block of a page that begins with `# NAME`."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    (block,) = (block for block in blocks if block.startswith(f"# {name}\n"))
    return str(block)


def _trained(inputs: Inputs, path: Path) -> None:
    objective, _, seed = path.name.rpartition("-seed")
    recipe = Recipe(
        data=DATA, encoder=ENCODER, objective=objective, epochs=2, batch_size=32, lr=0.002, seed=int(seed), warmup=1
    )
    train(recipe, path)


def _trained_on_passages(inputs: Inputs, path: Path) -> None:
    words = ("--data", "passages:train=40,val=20,test=20", "--encoder", "biencoder:dim=8,words=8")
    _lossscope("train", *words, "--objective", "infonce:tau=0.05", "--epochs", "1", "--out", path, "--quiet")


def _run(inputs: Inputs, path: Path, name: str) -> None:
    shutil.copytree(inputs.path(f"trained/{name}"), path)


def _checkpoint(inputs: Inputs, path: Path, name: str) -> None:
    shutil.copy(inputs.path(f"trained/{name}") / "best.pt", path)


def _dump(inputs: Inputs, path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    caption_image = np.repeat(np.arange(100), 2)
    images = np.random.default_rng(9).standard_normal((100, 16))
    captions = images[caption_image] + rng.standard_normal((200, 16))
    np.savez(path, images=images, captions=captions, caption_image=caption_image)


def _shards(inputs: Inputs, path: Path) -> None:
    """Write the embeddings of a dump in two shards a side."""
    path.mkdir()
    with np.load(inputs.path("embeddings.npz")) as arrays:
        for name in ("images", "captions"):
            for number, part in enumerate(np.array_split(arrays[name], 2)):
                np.save(path / f"{name}-{number}.npy", part)


def _released_similarities(inputs: Inputs, path: Path) -> None:
    similarities = np.random.default_rng(0).standard_normal((8, 40))
    np.save(path, np.array({"npts": 8, "sims": similarities}, dtype=object), allow_pickle=True)


def _queries_and_documents(inputs: Inputs, path: Path, sides: tuple[str, str]) -> None:
    rows, mined = _two_sides()
    positives = np.stack([np.arange(len(mined))] * 2, 1)
    np.savez(path, **dict(zip(sides, rows, strict=True)), positives=positives, negatives=mined)  # type: ignore[arg-type]


def _views(inputs: Inputs, path: Path) -> None:
    (first, second), _ = _two_sides()
    np.savez(path, sides=np.array(["view 1", "view 2"]), view_1=first, view_2=second)


def _labelled_set(inputs: Inputs, path: Path) -> None:
    (first, _), _ = _two_sides()
    np.savez(path, embeddings=first, labels=np.arange(len(first)) // 8)


def _recommender(inputs: Inputs, path: Path) -> None:
    random = np.random.default_rng(0)
    users, items = random.normal(size=(200, 8)), random.normal(size=(150, 8)) * random.uniform(0.5, 2, size=(150, 1))
    positives = np.stack([np.arange(200), random.integers(150, size=200)], 1)
    bias = -0.5 * np.log(random.dirichlet(np.ones(150)))
    np.savez(path, users=users, items=items, positives=positives, sides=["user", "item"], item_bias=bias)


def _items_and_proxies(inputs: Inputs, path: Path) -> None:
    (first, _), _ = _two_sides()
    np.savez(path, embeddings=first, labels=np.arange(len(first)) // 8, proxies=first[::8])


def _two_sides() -> tuple[tuple[Any, Any], Any]:
    """Return the embeddings of two sides, and three mined negatives of each of the first."""
    rng = np.random.default_rng(3)
    first = rng.standard_normal((160, 16))
    return (first, first + rng.standard_normal((160, 16))), rng.integers(0, 160, (160, 3))


def _token_vectors(inputs: Inputs, path: Path) -> None:
    rng = np.random.default_rng(4)
    tokens = {f"{side}_tokens": rng.standard_normal((40 * n, 8)) for side, n in (("query", 3), ("document", 6))}
    offsets = {f"{side}_offsets": np.arange(41) * n for side, n in (("query", 3), ("document", 6))}
    np.savez(path, **tokens, **offsets, positives=np.stack([np.arange(40)] * 2, 1))  # type: ignore[arg-type]


def _users_and_items(inputs: Inputs, path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = {name: rng.standard_normal((160, 16)).astype("f4") for name in ("users", "items")}
    save_file({**rows, "positives": np.stack([np.arange(160)] * 2, 1)}, path)


def _texts(inputs: Inputs, path: Path) -> None:
    if path.name == "train.jsonl":
        rows = [{"query": f"what is {n} ?", "positive": f"it is {n}", "negative": f"it is {n + 1}"} for n in range(200)]
    else:
        rows = [{"query": f"when was {n} ?", "positive": f"it was {n}"} for n in range(200)]
    _write_rows(path, rows)


def _folder_of_beir(inputs: Inputs, path: Path) -> None:
    (path / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        _write_rows(path / f"{name}.jsonl", [{"_id": str(n), "text": f"text {n}"} for n in range(8)])
    judged = "".join(f"{n}\t{n}\t1\n" for n in range(8))
    (path / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")


def _run_of_beir(inputs: Inputs, path: Path) -> None:
    ranked = "".join(f"{n} Q0 {(n + k) % 8} {k + 1} {-k} bm25\n" for n in range(8) for k in range(3))
    path.write_text(ranked, encoding="utf-8")


def _qrels(inputs: Inputs, path: Path) -> None:
    path.write_text("".join(f"{n} 0 {n} 1\n" for n in range(8)), encoding="utf-8")


def _scored_pairs(inputs: Inputs, path: Path) -> None:
    rows = "".join(f"what is {n} ?,it is {n},{n % 6}\n" for n in range(60))
    path.write_text(f"sentence1,sentence2,score\n{rows}", encoding="utf-8")


def _rows_of_ids(inputs: Inputs, path: Path) -> None:
    rows = [{"qid": n, "pos": [n], "neg": {"bm25": [n + 1, n + 2]}} for n in range(60)]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _texts_by_id(inputs: Inputs, path: Path) -> None:
    path.write_text("".join(f"{n}\tthe text of {n} in {path.stem}\n" for n in range(64)), encoding="utf-8")


def _text_encoder(inputs: Inputs, path: Path) -> None:
    from tests.sources.text_folders import text_encoder

    text_encoder(path)


def _sentence_transformer(inputs: Inputs, path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(inputs.path("bge-small")), device="cpu").save(str(path))


def _log(inputs: Inputs, path: Path) -> None:
    """Write the log of a training of 300 steps, whose loss falls."""
    losses = 4.85 * (0.2 + 0.8 * np.exp(-np.arange(300) / 60)) + np.random.default_rng(5).normal(0, 0.05, 300)
    lines = [f"{step},{loss:.4f},{0.1 * loss:.4f}" for step, loss in enumerate(losses, 1)]
    path.write_text("\n".join(["step,train/contrastive,grad_norm", *lines]) + "\n", encoding="utf-8")


def _judgements(inputs: Inputs, path: Path) -> None:
    judged = "".join(f"test-{n:05d}\ttest-{(n + 1) % 20:05d}#2\t3\t{n % 4 + 1}\t4\n" for n in range(20))
    path.write_text(judged, encoding="utf-8")


def _clean_labels(inputs: Inputs, path: Path) -> None:
    np.savez(path, label=np.full(300, 0.9))


def _python(inputs: Inputs, path: Path, page: str) -> None:
    text = example(f"docs/{page}.md", path.name)
    path.write_text(text + MY_LOSS if path.name == "my_loss.py" else text, encoding="utf-8")


def _study_file(inputs: Inputs, path: Path) -> None:
    path.write_text(small_study(path.stem), encoding="utf-8")


def _study(inputs: Inputs, path: Path) -> None:
    file = inputs.path(f"studies/{path.name}.toml")
    seeds = (0, 1) if path.name == SEVERAL_SEEDS else None
    study = Study.begin(path, read_study_file(file, seeds=seeds))
    prepare(study)
    for run in study.grid.runs:
        work(study.path, run.key)


def _rows(inputs: Inputs, path: Path) -> None:
    path.write_text(_lossscope("cocos", inputs.path("ckpt.pt"), "--format", "csv"), encoding="utf-8")


def _evaluation(inputs: Inputs, path: Path) -> None:
    rows = pd.read_csv(io.StringIO(_lossscope("eval", inputs.path("ckpt.pt"), "--format", "csv")))
    rows.assign(objective="unified:margin=0.2,gamma=50", members="saf.pt, sgr.pt").to_csv(path, index=False)


def _field(inputs: Inputs, path: Path) -> None:
    path.write_text(_lossscope("diagram", "--triplet", "cir", "--format", "csv"), encoding="utf-8")


def _curve(inputs: Inputs, path: Path) -> None:
    _lossscope("cocos", inputs.path("ckpt.pt"), "--curve", path)


def _probe_curves(inputs: Inputs, path: Path) -> None:
    _lossscope("probe", "fidelity", inputs.path("ckpt.pt"), "--curve", path)


def _power(inputs: Inputs, path: Path) -> None:
    study = inputs.path(f"runs/{SEVERAL_SEEDS}")
    path.write_text(_lossscope("study", "power", study, "--resamples", "99", "--format", "csv"), encoding="utf-8")


def _multiverse(inputs: Inputs, path: Path) -> None:
    words = ("--eps", "0.01", "--batch-factors", "1", "--epochs", "best", "--format", "csv")
    path.write_text(_lossscope("study", "multiverse", inputs.path(f"runs/{STUDIES[0]}"), *words), encoding="utf-8")


def _report(inputs: Inputs, path: Path) -> None:
    _lossscope("report", inputs.path(f"runs/{STUDIES[0]}"), "--out", path, "--resamples", "99", "--quiet")


def _frame(inputs: Inputs, path: Path) -> None:
    source = inputs.path("embeddings.npz")
    with contextlib.chdir(source.parent):  # the page shows the name of the source
        options = ("--objective", "ntxent:tau=0.05", "--batch-size", "50", "--quiet")
        _lossscope("cocos", source.name, *options, "--out", path.name)


def _audit(inputs: Inputs, path: Path) -> None:
    """Audit small scenes with the labels of a first sheet, and answer the second."""
    words = ("audit", "--data", AUDITED, "--out", path, "--sheet", "30", "--quiet")
    _lossscope(*words)
    labels = path.with_name("labels-of-scenes.csv")
    _answer(path / "sheet.csv", labels)
    _lossscope(*words, "--labels", labels)
    _answer(path / "sheet.csv", path / "sheet.csv")


def _labels(inputs: Inputs, path: Path) -> None:
    folder = path.with_name("audit-of-passages")
    _lossscope("audit", "--data", PASSAGES, "--out", folder, "--sheet", "30", "--quiet")
    _answer(folder / "sheet.csv", path)


def _answer(sheet: Path, labels: Path) -> None:
    """Write labels by which every second pair of a sheet is a match."""
    table = read_csv(sheet).astype({"answer": object})
    table["answer"] = ["yes", "no"] * (len(table) // 2)
    write_text(labels, format_csv(table))


def _candidates(inputs: Inputs, path: Path) -> None:
    _lossscope("mine", inputs.path("runs/first"), "--out", path)


def _write_rows(path: Path, rows: Iterable[dict[str, str]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


def _lossscope(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


MAKERS: dict[str, Callable[[Inputs, Path], None]] = {
    **{f"trained/{name}": _trained for name in RUNS},
    **{f"runs/{label}": partial(_run, name=name) for name, labels in RUNS.items() for label in labels},
    **{file: partial(_checkpoint, name=name) for name, files in CHECKPOINTS.items() for file in files},
    **{file: partial(_dump, seed=seed) for seed, file in enumerate(DUMPS)},
    "few": _trained_on_passages,
    "shards": _shards,
    "results_f30k.npy": _released_similarities,
    "qa.npz": partial(_queries_and_documents, sides=("queries", "documents")),
    "guide.npz": partial(_queries_and_documents, sides=("documents", "queries")),
    "views.npz": _views,
    "products.npz": _labelled_set,
    "proxies.npz": _items_and_proxies,
    "recommender.npz": _recommender,
    "colbert.npz": _token_vectors,
    "users.safetensors": _users_and_items,
    "train.jsonl": _texts,
    "test.jsonl": _texts,
    "scifact": _folder_of_beir,
    "bm25.trec": _run_of_beir,
    "dense.trec": _run_of_beir,
    "qrels.txt": _qrels,
    "stsb.csv": _scored_pairs,
    "msmarco-hard-negatives.jsonl.gz": _rows_of_ids,
    "collection.tsv": _texts_by_id,
    "queries.tsv": _texts_by_id,
    "bge-small": _text_encoder,
    "minilm": _sentence_transformer,
    "train.csv": _log,
    "ExpertAnnotations.txt": _judgements,
    "labels.npz": _clean_labels,
    "my_loss.py": partial(_python, page="objectives"),
    "pml.py": partial(_python, page="objectives"),
    "train.py": partial(_python, page="conformance"),
    **{f"studies/{name}.toml": _study_file for name in STUDIES},
    **{f"runs/{name}": _study for name in STUDIES},
    "rows.csv": _rows,
    "eval.csv": _evaluation,
    "field.csv": _field,
    "curve.csv": _curve,
    "curves.csv": _probe_curves,
    "power.csv": _power,
    "multiverse.csv": _multiverse,
    "report": _report,
    "frame": _frame,
    "audit": _audit,
    "labels.csv": _labels,
    "candidates": _candidates,
    "CANDIDATES": _candidates,
}
"""Name that lines use -> function that makes the input, which is its kind."""
