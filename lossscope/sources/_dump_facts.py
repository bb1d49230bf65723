"""What is in a dump?"""

from __future__ import annotations

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sides import with_article


def describe(dump: SplitEmbeddings) -> dict[str, str]:
    """Return shapes, pairs and fingerprint of a dump, and what a user should know of it, name -> text."""
    arrays = {"images": dump.images, "captions": dump.captions, "similarity": dump.similarity}
    relations, sides = dump.relations, dump.sides
    counts = relations.number_of_positives
    each = "captions an image" if sides.is_image_text else f"positives of {with_article(sides.query(sides.labels[0]))}"
    notes = "; ".join((*dump.warnings, *dump.notices))
    return {
        "kind": "dump",
        **{
            name: f"{' x '.join(map(str, array.shape))} {str(array.dtype).removeprefix('torch.')}"
            for name, array in arrays.items()
            if array is not None
        },
        each: str(counts.min()) if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}",
        "fingerprint": str(dump.fingerprint),
        **({"notes": notes} if notes else {}),
    }
