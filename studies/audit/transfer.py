"""When do the probabilities of photos and captions carry over to other data? Fit the test, and count its errors.

    python studies/audit/transfer.py --shared DIR --out DIR [--write]

The test (lossscope/audit/estimate/transfer.py) has a weight and an offset for each number of a signature: its range
over parts of Flickr8k and Flickr30k, widened. Parts are splits with the training texts, and sets of other sizes and of
fewer captions a photo, without them. The data sets of pair_kinds without photos judge the test: there the rate by the
weights is compared with the true rate. results/transfer.csv has a row for each, and the distance by a fit without the
row's collection. --write puts weights, offsets and counts beside their reader.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pair_kinds.hidden_captions import caption_split, photo_captions, video_captions

from lossscope.audit.estimate.default_weights import FILE, default_calibration
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.estimate.transfer import compare, signature
from lossscope.audit.parts.material import Material
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.signals import build_signals
from lossscope.datasets.base import Split
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from lossscope.registry import build

RESULTS = Path(__file__).parent / "results" / "transfer.csv"
WIDER = 1.5  # the range of a number in the fit, over half of that of the parts
LEAST = 0.02  # smallest half of a range
OTHERS = (
    "scenes", "stories", "hidden_captions", "people", "shared_answers", "near_copies", "passages", "products",
    "reports", "tickets", "intents",
)  # fmt: skip
FITTED = ("Flickr8k", "Flickr30k")
Captions = Sequence[Sequence[str]]


def main() -> None:
    """Measure, fit, count, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder of flickr8k, coco_mini and captions")
    parser.add_argument("--out", type=Path, required=True, help="folder of signatures")
    parser.add_argument("--write", action="store_true", help="put the test beside its reader")
    typed = parser.parse_args()
    typed.out.mkdir(parents=True, exist_ok=True)
    rows = measure_all(typed.shared, typed.out)
    fitted = [row for row in rows if row["collection"] in FITTED]
    weights = fit(fitted)
    table = []
    for row in rows:
        rest = [other for other in fitted if other["collection"] != row["collection"]]
        is_comparable = row["sides"] == "image/caption"
        distance, name = compare(row["signature"], weights)
        table.append(
            {"collection": row["collection"], "data": row["data"], "true rate": row["rate"], "stated": row["stated"],
             "distance": round(distance, 3) if is_comparable else None,
             "without its collection": round(compare(row["signature"], fit(rest))[0], 3) if is_comparable else None,
             "differs in": name if is_comparable else "the sides",
             "transferred": int(is_comparable and distance <= 1)}
        )  # fmt: skip
    frame = pd.DataFrame(table)
    print(frame.to_string())
    write_text(RESULTS, format_csv(frame))
    others = frame[frame["collection"] == "other"]
    judged = {"others": len(others), "others that pass": int(others["transferred"].sum())}
    print(judged)
    if typed.write:
        stored = json.loads(FILE.read_text(encoding="utf-8"))
        stored["transfer"] = {"weights": weights, **judged}
        write_text(FILE, json.dumps(stored, indent=1) + "\n")


def fit(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return name -> (w, b): |w x + b| <= 1 in the range of the rows, widened."""
    frame = pd.DataFrame([row["signature"] for row in rows])
    low, high = frame.min(), frame.max()
    half = (WIDER * (high - low) / 2).clip(lower=LEAST)
    centre = (low + high) / 2
    names = [str(name) for name in frame.columns]
    return {name: (round(float(1 / half[name]), 4), round(float(-centre[name] / half[name]), 4)) for name in names}


def measure_all(shared: Path, out: Path) -> list[dict[str, Any]]:
    """Return a row for each data set; keep the rows that are in the folder."""
    rows = []
    for collection, name, split, training, rate in data_sets(shared):
        file = out / ("".join(letter if letter.isalnum() else "-" for letter in f"{collection} {name}") + ".json")
        if not file.is_file():
            found = row_of(split, training)
            write_text(file, json.dumps({"collection": collection, "data": name, "rate": rate, **found}))
            print(collection, name, found["stated"], flush=True)
        rows.append(json.loads(file.read_text(encoding="utf-8")))
    return rows


def row_of(split: Split, training: Split | None) -> dict[str, Any]:
    """Return the signature of a data set, and its rate by the weights of photos and captions."""
    material = Material.of((), split, training)
    random_pairs, _ = pairs_of(random_batches(material.relations, 128, 0), material.relations)
    signals = [signal for signal in build_signals(()) if signal.group == "texts"]
    table = SignalTable.of(material, signals, random_pairs)
    calibration = default_calibration(table.names, material.relations.sides)
    p = calibration.probability(table.standardise(table.of_random))
    sides = "image/caption" if material.relations.sides.is_image_text else material.relations.sides.text
    return {"sides": sides, "signature": signature(material, table), "stated": round(float(p.mean()), 6)}


def data_sets(shared: Path) -> Iterator[tuple[str, str, Split, Split | None, float | None]]:
    """Yield collection, name, split, training split, and the true rate if it is known."""
    data = build("datasets", f"karpathy:root={shared / 'flickr8k'},name=flickr8k,size=64")
    parts = {name: captions_of(data.split(name)) for name in ("train", "val", "test")}
    yield from parts_of("Flickr8k", parts)
    parts = {
        name: photo_captions(shared, file) for name, file in (("train", "train"), ("val", "val"), ("test", "test_2016"))
    }
    yield from parts_of("Flickr30k", parts)
    found = json.loads((shared / "coco_mini" / "captions.json").read_text(encoding="utf-8"))
    captions = defaultdict(list)
    for row in found["annotations"]:
        captions[row["image_id"]].append(row["caption"])
    yield (
        "COCO",
        "159 photos, training texts of Flickr30k",
        caption_split(list(captions.values())),
        caption_split(parts["train"][:6000]),
        None,
    )
    videos = video_captions(shared)
    for number, kept in ((1000, 5), (1000, 2), (500, 20)):
        yield "videos", f"{number} videos, {kept} captions", cut(videos[:number], kept), None, None
    for module in OTHERS:
        kind = importlib.import_module(f"pair_kinds.{module}")
        for found in kind.data_sets(*((shared,) if module == "hidden_captions" else ())):
            material = found.material
            pairs, _ = pairs_of(random_batches(material.relations, 128, 0), material.relations)
            rate = float(found.matches(pairs.left, pairs.right).mean())
            collection = "hidden" if module == "hidden_captions" else "other"
            yield collection, f"{found.kind}: {found.name}", found.split, None, rate


def parts_of(name: str, parts: Mapping[str, Captions]) -> Iterator[tuple[str, str, Split, Split | None, None]]:
    """Yield splits with training texts, and sets of other sizes without them."""
    for part, kept in (("test", 5), ("val", 5), ("test", 3), ("val", 2)):
        training = cut(parts["train"][:6000], kept)
        yield name, f"{part}, {kept} captions", cut(parts[part], kept), training, None
    for start, number, kept in (
        (0, 600, 5),
        (1000, 1000, 5),
        (2000, 2000, 5),
        (0, 4000, 5),
        (500, 1000, 3),
        (3000, 2000, 2),
    ):
        yield name, f"{number} alone, {kept} captions", cut(parts["train"][start : start + number], kept), None, None


def captions_of(split: Split) -> list[list[str]]:
    """Return the captions of each photo."""
    captions: list[list[str]] = [[] for _ in split.image_ids]
    assert split.caption_image is not None
    for text, owner in zip(split.captions, split.caption_image.tolist(), strict=True):
        captions[owner].append(text)
    return captions


def cut(captions: Captions, kept: int) -> Split:
    """Return items with their first captions."""
    return caption_split([texts[:kept] for texts in captions if len(texts) >= kept])


if __name__ == "__main__":
    main()
