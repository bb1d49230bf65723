"""Does the doctor compare two encodings of the same items, ignore rounding, and refuse unrelated sources?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import lossscope
from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.doctor.batch_dependent import BatchDependent
from lossscope.doctor.examination.checks import run_checks
from lossscope.doctor.examination.open_source import of_split, open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.identical_views import IdenticalViews
from lossscope.doctor.parts.encodings import Encodings
from lossscope.errors import InputError
from lossscope.sources.base import load
from tests.planted import batch_dependent
from tests.planted.base import Size, aligned, dump, pairs, unit
from tests.sources.text_folders import DATA, text_encoder

SIZE = Size()


def found(*sources: Any, **options: Any) -> tuple[str, ...]:
    ids: tuple[str, ...] = lossscope.doctor(*sources, cache=False, same_items=True, **options).ids
    return ids


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("narrow", ["both", "one"])
def test_rounding_is_no_other_encoding(dtype: torch.dtype, narrow: str) -> None:
    sides = [torch.from_numpy(x).float() for x in aligned(SIZE)]
    noisy = [(x + torch.finfo(dtype).eps * x.abs() * torch.randn(x.shape)).to(dtype) for x in sides]
    first = [x.to(dtype) for x in sides] if narrow == "both" else sides
    assert "batch-dependent" not in found(*({"queries": a, "documents": b} for a, b in (first, noisy)))


def test_recall_of_both_encodings_is_said(tmp_path: Path) -> None:
    case = batch_dependent.padding(SIZE, tmp_path)
    (first, second) = lossscope.doctor(*case.sources, cache=False, **case.options).examinations
    finding = first.findings[0]
    numbers = {entry.statistic: entry.value for entry in finding.evidence}
    alone, batches = (f"in {source}" for source in case.sources)
    assert numbers[f"recall@1 {alone}"] > numbers[f"recall@1 {batches}"] and len(finding.examples) == 5
    assert second.reasons["batch-dependent"].startswith(f"it is compared with {case.sources[0]}")


@pytest.mark.parametrize("scale", [0.0, 0.2, 0.05])
def test_a_narrow_cone_hides_nothing_and_makes_nothing_up(scale: float) -> None:
    """Different items of an anisotropic model have cosines near 1, and so has an item with itself."""
    centre = unit(SIZE.rng.normal(size=(1, SIZE.d)))
    first, second = (unit(centre + (scale or 1.0) * x) for x in aligned(SIZE))
    shaken = unit(first + 0.3 * (scale or 1.0) / np.sqrt(SIZE.d) * SIZE.rng.normal(size=first.shape))
    arrays = {"queries": first, "documents": second}
    assert "batch-dependent" in found(arrays, {**arrays, "queries": shaken})
    assert "batch-dependent" not in found(arrays, {**arrays, "queries": first + 1e-7})


def test_a_few_items_that_differ_are_no_batch(tmp_path: Path) -> None:
    first, second = aligned(SIZE)
    changed = first.copy()
    changed[:3] = changed[3:6]
    assert "batch-dependent" not in found((first, second), (changed, second))


def named(folder: Path, name: str, rows: Sequence[int], prefix: str = "q") -> str:
    first, second = (x[list(rows)] for x in aligned(SIZE))
    ids = np.array([f"{prefix}{row}" for row in rows])
    owner = np.stack([np.arange(len(rows))] * 2, 1)
    return dump(folder, name, queries=first, documents=second, positives=owner, query_id=ids, document_id=ids)


REFUSED: dict[str, tuple[Callable[[Path], tuple[Any, ...]], str]] = {
    "one source": (lambda folder: (named(folder, "a.npz", range(50)),), r"a\.npz b\.npz --same-items; got 1"),
    "three sources": (lambda folder: (aligned(SIZE),) * 3, "needs two sources.*; got 3"),
    "fewer items": (
        lambda folder: (named(folder, "a.npz", range(50)), named(folder, "b.npz", range(40))),
        r"as many queries of one width in both sources; got \(50, 64\) of .*a\.npz and \(40, 64\) of .*b\.npz",
    ),
    "other ids": (
        lambda folder: (named(folder, "a.npz", range(50)), named(folder, "b.npz", range(50), "doc")),
        r"the same queries in the same order .*; row 0 is 'q0' of .*a\.npz and 'doc0' of .*b\.npz",
    ),
    "another order": (
        lambda folder: (named(folder, "a.npz", range(50)), named(folder, "b.npz", [*range(40), *range(49, 39, -1)])),
        "row 40 is 'q40' of .* and 'q49' of",
    ),
    "another order without ids": (
        lambda folder: (aligned(SIZE), tuple(x[::-1].copy() for x in aligned(SIZE))),
        "which is chance. Their order differs, or their model",
    ),
    "similarities": (
        lambda folder: ({"similarity": np.eye(30), "positives": [[n, n] for n in range(30)]},) * 2,
        "compares embeddings; .* has similarities only",
    ),
    "other sides": (
        lambda folder: (pairs(folder, *aligned(SIZE)), named(folder, "b.npz", range(SIZE.n))),
        "needs the same sides in both sources; got image/caption of",
    ),
    "rows of text": (lambda folder: ("passages", aligned(SIZE)), "compares embeddings; of passages it has text rows"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_pair_of_encodings_is_refused(what: str, tmp_path: Path) -> None:
    sources, says = REFUSED[what]
    with pytest.raises(InputError, match=says):
        found(*sources(tmp_path))


def test_the_cache_is_passed_by() -> None:
    assert not Options.of(same_items=True).request().cache and Options.of().request().cache


def test_a_dump_has_one_encoding(tmp_path: Path) -> None:
    examined = run_checks(open_patient(pairs(tmp_path, *aligned(SIZE)), Options()), [BatchDependent()])
    assert examined.reasons == {"batch-dependent": "it has one encoding of its items; --same-items compares two"}


def test_a_run_is_encoded_alone_and_in_a_batch(tiny_run: Path) -> None:
    examined = run_checks(open_patient(tiny_run, Options.of(cache=False)), [BatchDependent()])
    assert examined.checked == ("batch-dependent",) and not examined.findings


def test_padding_that_a_model_counts_is_found(tmp_path: Path) -> None:
    """The mean over all positions of a batch, of texts of several lengths."""
    pytest.importorskip("transformers")
    split = load(text_encoder(tmp_path), split="train", data=DATA, cache=False, raw=True)
    assert split.encode_rows is not None and split.read_texts is not None
    clean = run_checks(of_split(split, Options()), [BatchDependent()])
    assert clean.checked == ("batch-dependent",) and not clean.findings
    encode = split.encode_rows
    lengths = [[len(text) for text in texts.values()] for texts in split.read_texts() if texts is not None]

    def padded(side: int, batches: Sequence[Rows]) -> Tensor:
        parts = []
        for rows in batches:
            row_lengths = torch.tensor([lengths[side][row] for row in rows])
            scale = row_lengths / row_lengths.max()
            vectors = encode.i2t([rows]) if side == 0 else encode.t2i([rows])
            parts.append(vectors * scale[:, None] + (1 - scale)[:, None] / vectors.shape[1])
        return torch.cat(parts)

    sick = Pair(lambda batches: padded(0, batches), lambda batches: padded(1, batches))
    examined = run_checks(of_split(replace(split, encode_rows=sick), Options()), [BatchDependent()])
    assert [finding.id for finding in examined.findings] == ["batch-dependent"]
    assert examined.patient is not None
    assert examined.patient.part(Encodings).names.i2t == "alone"


@pytest.mark.parametrize(("same", "severity"), [(True, "note"), (False, "error")])
def test_views_of_equal_texts_are_a_note(same: bool, severity: str, tmp_path: Path) -> None:
    """Pairs of a text with itself serve dropout views, and are equal outside of training."""
    first, _ = aligned(SIZE)
    split = load(pairs(tmp_path, first, first), raw=True)
    texts = {id: f"text {id}" for id in split.image_ids}
    others = texts if same else {id: f"other {id}" for id in split.caption_ids}
    patient = of_split(replace(split, read_texts=lambda: Pair(texts, others)), Options())
    (finding,) = run_checks(patient, [IdenticalViews()]).findings
    assert finding.severity == severity


def test_items_that_are_all_alike_are_no_views() -> None:
    alike = np.tile(unit(SIZE.rng.normal(size=(1, SIZE.d))), (SIZE.n, 1))
    ids = lossscope.doctor((alike, alike), cache=False).ids
    assert "identical-views" not in ids and "complete-collapse" in ids
