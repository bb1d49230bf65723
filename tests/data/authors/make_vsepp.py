"""Write vsepp.npz and vsepp.json: vectors and recalls of VSE++, by its authors' code and that of Bleeker & de Rijke.

python make_vsepp.py VSEPP_PYTHON3 VSEPP_MASTER ECIR: two branches of one repository, and the other one's root.
torchvision must be there, or a package of its transforms and of networks with its parameter names.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import torch
import vse_captions
from PIL import Image
from vse_checkout import Case, Checkout, load

from tests.authors.rule import network_by_rule, weights_by_rule, write_pictures

SIZES = ["--embed_size", "8", "--word_dim", "5", "--img_dim", "6", "--max_violation"]
CHOICES: Mapping[str, list[str]] = {
    "cosine": [],
    "order": ["--measure", "order", "--use_abs"],
    "order_signed": ["--measure", "order"],
    "order_no_imgnorm": ["--measure", "order", "--use_abs", "--no_imgnorm"],
    "use_abs": ["--use_abs"],
    "no_imgnorm": ["--no_imgnorm"],
    "no_imgnorm_use_abs": ["--no_imgnorm", "--use_abs"],
    "layers": ["--num_layers", "2", "--data_name", "coco_precomp"],
    "rows_five_times": [],
}
NETWORKS = {"resnet50": "ecir", "resnet152": "vsepp", "vgg19": "vsepp"}
PICTURES = ((300, 400), (640, 427), (333, 257), (224, 300))


def main(port: Path, master: Path, ecir: Path) -> None:
    words, captions = vse_captions.words(nltk.word_tokenize), vse_captions.captions()
    for text in (caption.lower() for caption in captions):
        assert nltk.word_tokenize(text) == nltk.word_tokenize(text, preserve_line=True), text
    arrays: dict[str, Any] = {}
    cases: dict[str, Any] = {}
    checkouts = {
        "vsepp": Checkout([port], "VSE"),
        "master": Checkout([master], "VSE", old=True),
        "ecir": Checkout([ecir / "vsepp", ecir, ecir / "shared"], "VSE"),
    }
    runs = [("vsepp", name) for name in CHOICES] + [("master", "cosine"), ("master", "order")]
    for number, (source, choice) in enumerate(runs):
        arguments = [*SIZES, "--data_name", "f30k_precomp", *CHOICES[choice]]
        options = checkouts[source].options(arguments, vocab_size=len(words))
        case = Case(options, (20, 6), seed=number, times=5 if choice == "rows_five_times" else 1)
        name = choice if source == "vsepp" else f"{choice}_master"
        images, texts, cases[name] = checkouts[source].answer(case, captions, words, 5)
        arrays |= {f"{name}/images": images[::5].astype(np.float32), f"{name}/captions": texts.astype(np.float32)}
    options = checkouts["vsepp"].options([*SIZES, "--data_name", "f30k_precomp"], vocab_size=len(words))
    case = Case(options, (1, 6), seed=len(runs))
    _, texts, cases["sentences"] = checkouts["vsepp"].answer(case, vse_captions.SENTENCES, words, 1)
    arrays["sentences/captions"] = texts.astype(np.float32)
    for network, source in NETWORKS.items():
        arguments = ["--embed_size", "8", "--word_dim", "5", "--data_name", "f30k", "--cnn_type", network]
        options = checkouts[source].options(arguments, vocab_size=len(words))
        arrays[f"{network}/images"] = pictures(checkouts[source], options, cases, network)
    here = Path(__file__).parent
    np.savez_compressed(here / "vsepp.npz", **arrays)
    content = {
        "words": words, "captions": captions, "sentences": vse_captions.SENTENCES, "pictures": PICTURES, "cases": cases
    }  # fmt: skip
    (here / "vsepp.json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def pictures(checkout: Checkout, options: Mapping[str, Any], cases: dict[str, Any], network: str) -> Any:
    """Return the vectors of pictures by a network, and add its description to the cases."""
    encoder = checkout.build(options).img_enc
    shapes = {k: tuple(v.shape) for k, v in encoder.state_dict().items()}
    load([encoder], [raw_state(shapes)])
    transform = checkout.data.get_transform("f30k", "test", None)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        files = write_pictures(Path(folder), PICTURES)
        pixels = torch.stack([transform(Image.open(file).convert("RGB")) for file in files])
        cases[network] = {"options": options}
        return encoder.eval()(pixels).numpy()


def raw_state(shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights of a tower of pictures: the network's by fan-in."""
    network = {k: v for k, v in shapes.items() if k.startswith("cnn.")}
    return {**network_by_rule(network), **weights_by_rule({k: v for k, v in shapes.items() if k not in network})}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
