"""Write clip.npz and clip.json: vectors and recalls of OpenAI's CLIP by its authors' code.

python make_clip.py CLIP, with torchvision, ftfy and regex.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.authors.clip_files import (
    CAPTIONS,
    ODD_SIDE,
    SIDES,
    SPECIAL,
    VOCABULARY,
    sorted_recalls,
    write_data,
    write_merges,
    write_odd_pictures,
)
from tests.authors.rule import weights_by_rule

SIZES = {
    "embed_dim": 16, "image_resolution": 64, "vision_layers": 2, "vision_width": 128, "vision_patch_size": 16,
    "context_length": 24, "vocab_size": VOCABULARY, "transformer_width": 64, "transformer_heads": 1,
    "transformer_layers": 2,
}  # fmt: skip


def pixels_of(steps: list[Any], file: Path) -> Any:
    """Return the pixels of a file after the first steps of the authors' transform, (3, size, size) uint8."""
    picture = Image.open(file)
    for step in steps:
        picture = step(picture)
    return np.asarray(picture).transpose(2, 0, 1)


def main(checkout: Path) -> None:
    sys.path.insert(0, str(checkout))
    import clip
    from clip.clip import _transform
    from clip.model import CLIP
    from clip.simple_tokenizer import SimpleTokenizer

    model = CLIP(**SIZES).eval()
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(weights_by_rule(shapes, scale=0.2))
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        clip.clip._tokenizer = SimpleTokenizer(str(write_merges(folder / "merges.txt.gz")))
        write_data(folder / "data")
        preprocess = _transform(SIZES["image_resolution"])
        files = [folder / "data" / "images" / f"{k}.png" for k in range(len(SIDES))]
        pixels = torch.stack([preprocess(Image.open(file)) for file in files])
        odd = np.stack([pixels_of(_transform(ODD_SIDE).transforms[:3], file) for file in write_odd_pictures(folder)])
        ids, special = (
            clip.tokenize(texts, context_length=SIZES["context_length"], truncate=True) for texts in (CAPTIONS, SPECIAL)
        )
        vectors = [model.encode_image(pixels), model.encode_text(ids)]
    images, captions = ((x / x.norm(dim=1, keepdim=True)).numpy() for x in vectors)
    here = Path(__file__).with_name("clip.npz")
    np.savez_compressed(here, images=images, captions=captions, ids=ids.numpy(), special_ids=special.numpy(), odd=odd)
    known = {"sizes": SIZES, "shapes": shapes, "scale": 0.2, "recalls": sorted_recalls(images, captions)}
    here.with_suffix(".json").write_text(json.dumps(known) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
