"""A file that is no source: the lines that make one of what came."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.io.json_runs import is_mteb_result
from lossscope.io.reading import show_path
from lossscope.io.text_files import MARK
from lossscope.io.trec_files import is_run

_SIDES = (("queries", "documents"), ("images", "captions"), ("embeddings", "labels"))  # that a dump has by these names
_MOST_FILES = 20  # of a folder that are looked at
_ROWS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_TABLES = {".csv": "csv({!r})", ".tsv": r"csv({!r}, sep='\t')", ".parquet": "parquet({!r})"}  # how pandas reads them
_PICKLES = (".pkl", ".pickle")
_EMPTY, _FEW_BYTES = (b"", b"{}", b"[]"), 4096  # content of files that hold nothing, and the longest such file
_INDICES = {  # suffix -> library, and how its vectors are read
    ".faiss": ("faiss", "i = faiss.read_index({0!r})", "i.reconstruct_n(0, i.ntotal)"),
    ".index": ("faiss", "i = faiss.read_index({0!r})", "i.reconstruct_n(0, i.ntotal)"),
    ".usearch": ("usearch.index", "i = usearch.index.Index.restore({0!r})", "np.stack(i.get(np.sort(i.keys)))"),
    ".hnsw": (
        "hnswlib",
        "i = hnswlib.Index('cosine', dim=WIDTH); i.load_index({0!r})",
        "np.array(i.get_items(sorted(i.get_ids_list())))",
    ),
    ".lance": ("lance", "i = lance.dataset({0!r}).to_table()", "np.array(i['vector'].to_pylist(), 'float32')"),
}


def how_to_convert(path: Path, folder_is_source: bool = False) -> str | None:
    """Return what a file or folder that is no source holds, and the lines that make a source of it; None: unknown.

    Args:
        path: of the file or folder.
        folder_is_source: whether the folder that it is in is one.
    """
    suffix = path.suffix.lower()
    if path.is_file() and path.stat().st_size <= _FEW_BYTES and path.read_bytes().removeprefix(MARK).strip() in _EMPTY:
        return "it is empty, as a program that failed leaves a file. Write it anew"
    if is_mteb_result(path) or (path.is_dir() and any(map(is_mteb_result, sorted(path.glob("*.json"))[:_MOST_FILES]))):
        return (
            "it has MTEB's mean scores of a task, and no single queries to compare. Save predictions: "
            "mteb.evaluate(model, tasks, prediction_folder='predictions'), then lossscope eval "
            "predictions/TASK_predictions.json --judgements QRELS"
        )
    if suffix in _INDICES:
        return _of_index(path, suffix, folder_is_source)
    if path.is_dir():
        return _of_saved_data(path) if _is_saved_data(path) else None
    if suffix == ".npy":
        return _of_array(path, folder_is_source)
    if suffix in _ROWS:
        return _of_rows(path, suffix)
    if is_run(path):
        return (
            "it is a TREC run, a ranking without embeddings. Evaluate it by its judgements: "
            f"lossscope eval {path} --judgements QRELS"
        )
    if suffix in _PICKLES:
        return (
            "it is a pickle, which can run code when it is opened. If you trust it, save both sides, in Python: import "
            f"numpy as np; x = np.load({str(path)!r}, allow_pickle=True); {_savez(path, 'x[...]', 'x[...]')}"
        )
    return None


def tensors_to_dump(path: Path, content: Any) -> str | None:
    """Return the lines that make a dump of a torch file with embeddings; None where it holds none.

    Args:
        path: of the file.
        content: that was loaded from it.
    """
    load = f'in Python: import numpy as np, torch; x = torch.load({str(path)!r}, map_location="cpu"); '
    if _is_matrix(content):
        return f"one matrix is one side. Save both sides, {load}{_savez(path, _to_numpy('x'), '...')}"
    if not isinstance(content, Mapping):
        return None
    matrices = [str(name) for name, x in content.items() if _is_matrix(x)]
    if not matrices or any("." in str(name) for name in content) or not all(_is_tensor(x) for x in content.values()):
        return None  # weights of a model
    for names in _SIDES:
        if set(names) <= content.keys():
            return f"save it as a dump, {load}" + _call(path, {name: _to_numpy(f"x[{name!r}]") for name in names})
    first, second = [_to_numpy(f"x[{name!r}]") for name in matrices[:2]] + ["..."] * (2 - len(matrices[:2]))
    return f"save it as a dump, {load}{_savez(path, first, second)}"


def _of_array(path: Path, folder_is_source: bool) -> str:
    if folder_is_source:
        return f"it is one array of a folder that is a dump. Give the folder: {show_path(path.parent)}"
    load = f"np.load({str(path)!r})"
    return (
        f"it is one array. Save both sides, in Python: import numpy as np; {_savez(path, load, '...')}, or their "
        f"similarities: {_call(path, {'similarity': load})}"
    )


def _of_index(path: Path, suffix: str, folder_is_source: bool) -> str:
    if folder_is_source:
        return f"it is one index of a folder that is a dump. Give the folder: {show_path(path.parent)}"
    library, load, vectors = _INDICES[suffix]
    code = f"import numpy as np, {library}; {load.format(str(path))}; {_savez(path, vectors, '...')}"
    return f"it is one index, of one side. Save both sides, in Python: {code}"


def _of_rows(path: Path, suffix: str) -> str:
    texts = (
        f"it is a table. Rows of text need a model: give the model, and --data texts:file={path}; without a model: "
        f"lossscope doctor {path}"
    )
    if suffix not in _TABLES:
        return texts
    load = f'pd.read_{_TABLES[suffix].format(str(path))}.to_numpy("float32")'
    numbers = f"Save numbers of both sides, in Python: import numpy as np, pandas as pd; {_savez(path, load, '...')}"
    return f"{texts}. {numbers}"


def _is_saved_data(path: Path) -> bool:
    return any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))


def _of_saved_data(path: Path) -> str:
    return (
        "it is a data set that save_to_disk wrote, and has texts, no embeddings. Give a model, and --data "
        f"saved:root={path}; without a model: lossscope doctor {path}"
    )


def _savez(path: Path, first: str, second: str) -> str:
    return _call(path, {"queries": first, "documents": second})


def _call(path: Path, arrays: Mapping[str, str]) -> str:
    """Return the line of Python that writes the arrays beside the file."""
    return (
        f"np.savez({str(path.with_suffix('.npz'))!r}, {', '.join(f'{name}={code}' for name, code in arrays.items())})"
    )


def _to_numpy(code: str) -> str:
    return f"{code}.detach().float().numpy()" if not code.endswith("['labels']") else f"{code}.numpy()"


def _is_matrix(x: Any) -> bool:
    return isinstance(x, Tensor) and x.ndim == 2 and x.is_floating_point()


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)
