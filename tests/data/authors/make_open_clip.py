"""Write open_clip.npz and open_clip.json: vectors and recalls of open_clip's models by its own code.

python make_open_clip.py OPEN_CLIP, with torchvision, timm, ftfy and regex.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.authors.clip_files import CAPTIONS, SIDES, SPECIAL, VOCABULARY, sorted_recalls, write_data, write_merges
from tests.authors.rule import weights_by_rule

TEXT = {"context_length": 24, "vocab_size": VOCABULARY, "width": 64, "heads": 1, "layers": 2}
B32 = {"image_size": 64, "layers": 2, "width": 128, "patch_size": 32}
H14 = {"image_size": 56, "layers": 1, "width": 160, "head_width": 80, "patch_size": 14}
WIDE = {**H14, "image_size": 42}
OTHER = {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.6, 0.4], "interpolation": "bilinear", "resize_mode": "squash"}
CASES: Mapping[str, Mapping[str, Any]] = {
    "ViT-B-32": {"vision_cfg": B32},
    "ViT-B-32-quickgelu": {"vision_cfg": B32, "quick_gelu": True},
    "ViT-H-14": {"vision_cfg": H14, "text_cfg": {**TEXT, "heads": 4}},
    "ViT-g-14": {"vision_cfg": {**WIDE, "width": 176, "head_width": 88, "mlp_ratio": 4.3637}},
    "ViT-bigG-14": {"vision_cfg": {**WIDE, "width": 208, "head_width": 104, "mlp_ratio": 4.9231}},
    "custom_text": {"vision_cfg": B32, "custom_text": True, "init_logit_bias": -10.0},
    "squash": {"vision_cfg": B32, "preprocess_cfg": OTHER},
    "norms": {"vision_cfg": {**B32, "norm_kwargs": {"eps": 0.01}}, "text_cfg": {**TEXT, "norm_kwargs": {"eps": 0.02}}},
}


def main(checkout: Path) -> None:
    sys.path.insert(0, str(checkout / "src"))
    from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
    from open_clip.model import CLIP, CustomTextCLIP
    from open_clip.tokenizer import SimpleTokenizer
    from open_clip.transform import PreprocessCfg, image_transform_v2

    usual = {"mean": list(OPENAI_DATASET_MEAN), "std": list(OPENAI_DATASET_STD)}
    arrays, cases = {}, {}
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        tokeniser = SimpleTokenizer(str(write_merges(folder / "merges.txt.gz")), context_length=TEXT["context_length"])
        write_data(folder / "data")
        ids, special = tokeniser(CAPTIONS), tokeniser(SPECIAL)
        for case, choices in CASES.items():
            options = {"embed_dim": 16, "text_cfg": TEXT, **choices}
            preprocess = {**usual, **options.pop("preprocess_cfg", {})}
            config = {"model_cfg": options, "preprocess_cfg": preprocess}
            kind = CustomTextCLIP if options.get("custom_text") else CLIP
            model = kind(**{k: v for k, v in options.items() if k != "custom_text"}).eval()
            shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
            model.load_state_dict(weights_by_rule(shapes, scale=0.2))
            read = image_transform_v2(PreprocessCfg(options["vision_cfg"]["image_size"], **preprocess), is_train=False)
            files = [folder / "data" / "images" / f"{k}.png" for k in range(len(SIDES))]
            pixels = torch.stack([read(Image.open(file)) for file in files])
            images = model.encode_image(pixels, normalize=True).numpy()
            captions = model.encode_text(ids, normalize=True).numpy()
            arrays |= {f"{case}/images": images, f"{case}/captions": captions}
            cases[case] = {"config": config, "shapes": shapes, "recalls": sorted_recalls(images, captions)}
    here = Path(__file__).with_name("open_clip.npz")
    np.savez_compressed(here, ids=ids.numpy(), special_ids=special.numpy(), **arrays)
    here.with_suffix(".json").write_text(json.dumps({"scale": 0.2, "cases": cases}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
