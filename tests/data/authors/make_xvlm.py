"""Write xvlm.npz and xvlm.json: vectors, logits, recalls and the matching loss of X-VLM's own code.

    python tests/data/authors/make_xvlm.py CHECKOUT      (zengyan-97/X-VLM; needs torch, transformers 4.30)

The model is small and its weights follow from tests/authors/rule.py. The whole picture is squeezed by Pillow and
normalised, as torchvision's transforms in the original do. Where the original draws negatives, the likeliest is taken.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
import transformers.modeling_utils  # noqa: F401 asks for timm, so before that is replaced
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.authors.rule import network_by_rule
from tests.authors.xvlm_files import CAPTIONS, CONFIG, SIDE, TEXT_CONFIG, VISION_CONFIG, write_data, write_words

TEMP = 0.07
MEAN, DEVIATION = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])
IDS = (0, 1, 0, 2)  # of the pictures of a batch: the first and the third are equal

_NOT_NEEDED = (
    "ruamel", "ruamel.yaml", "timm", "timm.models", "utils.hdfs_io", "vqaTools", "vqaTools.vqaEval", "refTools",
    "refTools.evaluation", "refTools.evaluation.refEvaluation", "torchvision", "torchvision.ops",
    "torchvision.ops.boxes", "dataset", "scheduler", "optim", "models.tokenization_roberta", "pycocotools",
    "pycocotools.coco", "pycocoevalcap", "pycocoevalcap.eval",
)  # fmt: skip


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    for name in _NOT_NEEDED:
        sys.modules[name] = MagicMock()
    for module in ("models.vit", "models.clip_vit", "models.xroberta"):  # towers that are not compared
        sys.modules[module] = MagicMock()
    sys.modules["timm.models.layers"] = SimpleNamespace(  # type: ignore[assignment]
        DropPath=lambda p: torch.nn.Identity(), to_2tuple=lambda n: (n, n), trunc_normal_=torch.nn.init.trunc_normal_
    )
    file = Path(__file__).absolute().with_name("xvlm.npz")
    with tempfile.TemporaryDirectory() as folder:
        arrays, content = run(Path(folder))
    np.savez_compressed(file, **arrays)
    file.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def run(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the numbers of the authors' model."""
    import Retrieval
    from models.model_retrieval import XVLM
    from models.tokenization_bert import BertTokenizer

    for name, values in (("vision.json", VISION_CONFIG), ("text.json", TEXT_CONFIG)):
        (folder / name).write_text(json.dumps(values))
    config = {**CONFIG, "vision_config": str(folder / "vision.json"), "text_config": str(folder / "text.json")}
    model = XVLM(config).eval()
    state = model.state_dict()
    derived = ("position_ids", "relative_position_index", "attn_mask")
    shapes = {name: list(x.shape) for name, x in state.items() if not name.endswith(derived) and name != "temp"}
    weights = network_by_rule(shapes)
    model.load_state_dict({**state, **weights, "temp": torch.tensor(TEMP)})
    tokenizer = BertTokenizer(str(write_words(folder / "vocab.txt")))
    images = torch.stack([transform(path) for path in write_data(folder / "data")])
    texts = [clean(text) for row in CAPTIONS for text in row]
    owner = [row for row, captions in enumerate(CAPTIONS) for _ in captions]
    data = SimpleNamespace(text=texts, image=list(range(len(images))))
    loader = type("Loader", (list,), {"dataset": data})([(images, torch.arange(len(images)))])
    Retrieval.args = argparse.Namespace(distributed=False)
    torch.distributed.init_process_group("gloo", f"file://{folder / 'meeting'}", rank=0, world_size=1)
    i2t, t2i = Retrieval.evaluation(model, loader, tokenizer, torch.device("cpu"), config)
    of_image = {row: [k for k, image in enumerate(owner) if image == row] for row in range(len(images))}
    recalls = Retrieval.itm_eval(i2t, t2i, dict(enumerate(owner)), of_image)
    with torch.no_grad():
        ids = tokenizer(texts, padding="longest", truncation=True, max_length=config["max_tokens"], return_tensors="pt")
        states = model.get_text_embeds(ids.input_ids, ids.attention_mask)
        v, t = model.get_features(model.get_vision_embeds(images)[0], states)
        torch.multinomial = lambda weights, _: weights.argmax(-1, keepdim=True)
        rows = [owner.index(row) for row in range(len(images))]
        loss = model(images, ids.input_ids[rows], ids.attention_mask[rows], idx=torch.tensor(IDS))
    arrays = {"v": v.numpy(), "t": t.numpy(), "i2t": i2t, "t2i": t2i}
    content = {
        "temp": TEMP, "shapes": shapes, "recalls": recalls, "batch_ids": IDS,
        "loss_itc": float(loss[0]), "loss_itm": float(loss[1]), "derived": {
            name: list(x.shape) for name, x in state.items() if name.endswith("attn_mask")},
    }  # fmt: skip
    return arrays, content


def transform(path: Path) -> torch.Tensor:
    """Return the pixels of a picture as the original's test transform gives them."""
    square = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = (np.asarray(square, dtype=np.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(pixels.transpose(2, 0, 1).astype(np.float32))


def clean(caption: str) -> str:
    """Return a caption after the original's pre_caption of retrieval, whose max_words is 30."""
    spec = importlib.util.spec_from_file_location("captions", f"{sys.argv[1]}/dataset/utils.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.pre_caption(caption, 30))


if __name__ == "__main__":
    main()
