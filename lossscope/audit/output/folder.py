"""Write the folder of an audit: suspects.parquet, mask.npz, sheet.csv, the pages and audit.json."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from lossscope.core.known_pairs import KnownPairs
from lossscope.core.text_digests import PairTexts, digest_texts
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from lossscope.io.folder_lock import lock_folder
from lossscope.io.parquet_tables import write_parquet
from lossscope.io.write_errors import explain_write_errors

from ..estimate.pair_file import pair_columns
from ..parts.material import Material
from ..steps.result import AuditResult
from ..types import PairRows
from .document import document, status
from .pages import write_pages
from .tables import sheet_table, suspects_table

FILES = (
    "suspects.parquet",
    "mask.npz",
    "sheet.csv",
    "sheet.html",
    "index.html",
    "audit.json",
)  # in the order in which they are replaced
_PART = ".part"  # folder of files while they are written


def write_audit(result: AuditResult, out: Path, shown: int) -> Path:
    """Write all files; return the path of the page.

    New files replace those of an earlier audit when all of them are complete, audit.json last. In a folder without
    audit.json an audit was killed while it replaced files.

    Args:
        result: of the audit.
        out: folder, new or of an earlier audit.
        shown: pairs on the page.
    """
    with explain_write_errors(out), lock_folder(out):
        part = out / _PART
        shutil.rmtree(part, ignore_errors=True)  # of a killed audit
        part.mkdir()
        try:
            write_parquet(part / "suspects.parquet", suspects_table(result))
            if result.has_probabilities:
                mask_of(result).write(part / "mask.npz")
            ids = pair_columns(result.material.relations.sides)
            write_text(part / "sheet.csv", format_csv(sheet_table(result), ids))
            page = write_pages(result, part, shown)
            facts = json.dumps(document(result), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(part / "audit.json", facts + "\n")
            (out / "audit.json").unlink(missing_ok=True)
            if not result.has_probabilities:  # the mask belongs to an earlier audit
                (out / "mask.npz").unlink(missing_ok=True)
            for name in FILES:
                if (part / name).exists():
                    (part / name).replace(out / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return out / page.name


def mask_of(result: AuditResult) -> KnownPairs:
    """Return the suspects of data with probabilities as pairs that `--mask` and `lossscope.suspects` take."""
    assert result.least is not None
    material, scored = result.material, result.suspects
    ids = tuple(material.image_ids), tuple(material.caption_ids)
    probability = scored.probability.astype(np.float32)
    texts = _texts_of(material, scored.pairs)
    state_line = status(result.state, result.calibration, result.transfer)
    return KnownPairs(
        scored.pairs.left, scored.pairs.right, probability, *ids, texts=texts, least=result.least, status=state_line
    )


def _texts_of(material: Material, pairs: PairRows) -> PairTexts | None:
    """Return the digests of each side's texts, if it has texts; None without data."""
    if material.split is None:
        return None
    first, second = material.first_texts or (), material.split.captions
    left, right = (digest_texts(texts) if any(texts) else None for texts in (first, second))
    if left is None or right is None or material.relations.one_set:
        return PairTexts(left, right, None)
    rows, columns = (np.unique(digests, return_inverse=True)[1] for digests in (left, right))
    positives = material.relations.positives
    width = len(right)  # an upper bound of the number of different texts
    known = rows[positives[:, 0]] * width + columns[positives[:, 1]]
    return PairTexts(left, right, np.isin(rows[pairs.left] * width + columns[pairs.right], known))
