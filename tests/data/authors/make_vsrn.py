"""Write vsrn.npz and vsrn.json: vectors, recalls and caption losses of VSRN, by its authors and Bleeker & de Rijke.

python make_vsrn.py VSRN ECIR: the roots of both checkouts. A package torchvision with `models` and `transforms` must be
there; VSRN does not use it on features.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import torch
import vse_captions
from vse_checkout import Case, Checkout, load

from tests.authors.rule import features_by_rule, weights_by_rule

SIZES = ["--embed_size", "8", "--word_dim", "5", "--img_dim", "6", "--max_violation"]
FLICKR, COCO = (["--data_name", f"{name}_precomp"] for name in ("f30k", "coco"))
ORIGINAL: Mapping[str, Sequence[str]] = {
    "f30k": FLICKR,
    "coco": COCO,
    "f30k_order": [*FLICKR, "--measure", "order", "--use_abs"],
    "coco_order_no_imgnorm": [*COCO, "--measure", "order", "--no_imgnorm"],
    "f30k_use_abs": [*FLICKR, "--use_abs"],
    "f30k_no_imgnorm": [*FLICKR, "--no_imgnorm"],
    "coco_no_imgnorm_use_abs": [*COCO, "--no_imgnorm", "--use_abs"],
    "f30k_layers": [*FLICKR, "--num_layers", "2"],
    "f30k_rows_five_times": FLICKR,
    "f30k_ten_regions": FLICKR,
}
ECIR: Mapping[str, Sequence[str]] = {
    "ecir_f30k": FLICKR,
    "ecir_coco": COCO,
    "ecir_coco_order": [*COCO, "--measure", "order", "--use_abs", "--criterion", "triplet"],
}
BRANCH = ["--dim_vid", "8", "--dim_word", "5"]
LENGTHS = (60, 12, 9)  # max_len of the caption branch; captions are of up to 19 ids


def main(vsrn: Path, ecir: Path) -> None:
    words, captions = vse_captions.words(nltk.word_tokenize), vse_captions.captions()
    arrays: dict[str, Any] = {}
    cases: dict[str, Any] = {}
    original = Checkout([vsrn], "VSRN", old=True, further=("evaluation_models",))
    reproduction = Checkout([ecir, ecir / "VSRN"], "VSRN", package="VSRN.")
    runs = [(original, name, choice) for name, choice in ORIGINAL.items()]
    runs += [(reproduction, name, choice) for name, choice in ECIR.items()]
    vectors = {}
    for number, (checkout, name, choice) in enumerate(runs):
        options = checkout.options([*SIZES, *choice], vocab_size=len(words))
        times, regions = (5 if "times" in name else 1), (10 if "regions" in name else 36)
        images, texts, cases[name] = checkout.answer(
            Case(options, (20, regions, 6), (), number, times), captions, words, 5
        )
        vectors[name] = (images, texts)
        arrays |= {f"{name}/images": images[::5].astype(np.float32), f"{name}/captions": texts.astype(np.float32)}
    both = (*vectors["f30k"], *vectors["f30k_layers"])
    ensemble = {k: list(getattr(original.further["evaluation_models"], k)(*both, 20)[:5]) for k in ("i2t", "t2i")}
    losses = caption_losses(original, captions, words, arrays)
    training = training_gradients(original, captions, words)
    here = Path(__file__).parent
    np.savez_compressed(here / "vsrn.npz", **arrays)
    content = {"words": words, "captions": captions, "ensemble": ensemble, "losses": losses}
    content |= {"training": training, "cases": cases}
    (here / "vsrn.json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def caption_losses(
    checkout: Checkout, captions: Sequence[str], words: Sequence[str], arrays: dict[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return the loss of the caption branch on the first captions, without dropout, and norms of its gradient.

    The gradient with respect to the regions goes into the arrays.
    """
    found = []
    for longest in LENGTHS:
        model, branch, shapes, (_, ids, lengths, _, labels, masks) = build_branch(checkout, captions, words, longest)
        graph = torch.from_numpy(features_by_rule((len(ids), 5, 8), 7)).requires_grad_()
        loss = model.calcualte_caption_loss(graph, labels, masks)
        loss.backward()
        arrays[f"caption_{longest}/gradient"] = graph.grad.numpy()
        found.append({
            "longest": longest, "loss": float(loss), "shapes": shapes, "norms": gradient_norms(branch),
            "ids": ids.tolist(), "lengths": list(lengths),
        })  # fmt: skip
    return found


def training_gradients(checkout: Checkout, captions: Sequence[str], words: Sequence[str]) -> Mapping[str, Any]:
    """Return the caption loss of a batch in training, without dropout, and its gradient for the image tower."""
    model, _, _, (images, ids, lengths, numbers, labels, masks) = build_branch(checkout, captions, words, LENGTHS[0])
    tower = model.img_enc
    load([tower], [weights_by_rule({name: tuple(tensor.shape) for name, tensor in tower.state_dict().items()})])
    model.train_start()
    _, _, graph = model.forward_emb(images, ids, lengths)
    loss = model.calcualte_caption_loss(graph.contiguous(), labels, masks)
    loss.backward()
    return {"loss": float(loss), "numbers": list(numbers), "norms": gradient_norms(tower)}


def build_branch(checkout: Checkout, captions: Sequence[str], words: Sequence[str], longest: int) -> tuple[Any, ...]:
    """Return a model, its caption branch by rule in eval mode, the branch's shapes, and a batch of 16 captions."""
    options = checkout.options([*SIZES, *BRANCH, *FLICKR, "--max_len", str(longest)], vocab_size=len(words))
    options["bidirectional"] = False  # today's torch refuses 0
    model = checkout.build(options)
    branch = model.caption_model.eval()
    shapes = {name: tuple(tensor.shape) for name, tensor in branch.state_dict().items()}
    branch.load_state_dict(weights_by_rule(shapes, scale=0.05))
    with tempfile.TemporaryDirectory() as folder:
        loader = checkout.loader(Case(options, (4, 36, 6)), captions[:20], words, Path(folder))
        return model, branch, shapes, next(iter(loader))


def gradient_norms(module: torch.nn.Module) -> Mapping[str, float]:
    """Return the norm of the gradient of each parameter that has one."""
    return {name: float(p.grad.norm()) for name, p in module.named_parameters() if p.grad is not None}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
