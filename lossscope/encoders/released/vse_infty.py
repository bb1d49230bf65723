"""VSE-infinity's released files, of both branches: the options and sizes that follow from tensors and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from ..layers.grid_backbone import drop_duplicate_backbone, identify_backbone, is_resnext
from ..types import ANY_NUMBER, OpenedModel, ReleasedFile
from .bert_folder import infer_bert
from .options import (
    count_layers,
    fit_weights,
    read_flag,
    read_number,
    read_text,
    require_agreement,
    require_tensor,
    triplet_spec,
)

_PIXELS = 256  # side of the authors' pictures, times their option input_scale_factor
_MAX_SCALE = 16


def open_vse_infty(encoder: Callable[..., Any], released: ReleasedFile) -> OpenedModel | None:
    """Return the model of a file of two state dicts, gpool in the first; None for other files.

    Raises InputError for a file that does not fit, or whose options contradict its tensors.
    """
    if len(released.towers) != 2 or not any("gpool." in name for name in released.towers[0]):
        return None
    image, text = released.towers
    options = released.options
    grid = any(name.startswith("backbone.") for name in image)
    image, ignored = drop_duplicate_backbone(image) if grid else (image, ())
    unused = {"bert.embeddings.position_ids"} & text.keys()
    text = {name: tensor for name, tensor in text.items() if name not in unused}
    words, rows = _infer_words(text, options)
    fc = require_tensor(image, "image_encoder.fc.weight" if grid else "fc.weight", 2)
    kind = "backbone" if grid else "basic"
    require_agreement(options, {"precomp_enc_type": kind, "embed_size": fc.shape[0], "img_dim": fc.shape[1]})
    spec = encoder(
        image="grid" if grid else "regions",
        dim=fc.shape[0],
        bn_ignore_padding=False,
        no_imgnorm=read_flag(options, "no_imgnorm", False),
        no_txtnorm=read_flag(options, "no_txtnorm", False),
        **(_infer_backbone(image, released) if grid else {}),
        **words,
    )
    side = _read_side(options)
    shape = (3, side, side) if grid else (ANY_NUMBER, fc.shape[1])
    weights = {f"image.{k}": v for k, v in image.items()} | {f"text.{k}": v for k, v in text.items()}
    return OpenedModel(
        spec,
        fit_weights(spec, shape, rows, weights),
        shape,
        rows,
        triplet_spec(options),
        (*ignored, *sorted(unused)),
        (_picture_notice(side),) if grid else (),
        reading={"fit": "squeeze", "resample": "cv2"} if grid else {},
    )


def _picture_notice(side: int) -> str:
    return (
        f"pictures: resized to {side} x {side}, not cropped, by cv2 in the authors' code: take data of "
        f"grids:size={side},resample=cv2; Pillow's bilinear differs"
    )


def _read_side(options: Mapping[str, Any]) -> int:
    """Return the side of the pictures in pixels. Raises InputError for a scale without any, or above 16."""
    scale = read_number(options, "input_scale_factor", 1.0)
    if not 1 / _PIXELS <= scale <= _MAX_SCALE:
        raise InputError(f"option input_scale_factor of the file must be 1/{_PIXELS} to {_MAX_SCALE}; got {scale:g}")
    return int(_PIXELS * scale)


def _infer_backbone(image: Mapping[str, Tensor], released: ReleasedFile) -> dict[str, str]:
    """Return the network of a tower. Raises InputError where neither the file nor its user says which of two it is."""
    given = released.choices.get("backbone")
    if "backbone_source" not in released.options and not is_resnext(image):
        if given is None:
            raise InputError(
                f"{released.path} must say which network reads its pictures, as tensors do not tell detector from "
                "imagenet: name it, --encoder-option backbone=detector, resnet101_caffe, ..."
            )
        return {"backbone": given}
    name = identify_backbone(image, read_text(released.options, "backbone_source", "imagenet_resnext"))
    if given not in (None, name):
        raise InputError(f"backbone of {released.path} must be {name}, as the file says; got {given!r}")
    return {"backbone": name}


def _infer_words(text: Mapping[str, Tensor], options: Mapping[str, Any]) -> tuple[dict[str, object], int]:
    """Return the options of the encoder that follow from a text tower, and the rows of its embedding."""
    if any(name.startswith("bert.") for name in text):
        rows = len(require_tensor(text, "bert.embeddings.word_embeddings.weight", 2))
        return {"text": "bert", "bert": infer_bert(text, "bert")}, rows
    rows, words = require_tensor(text, "embed.weight", 2).shape
    layers = count_layers(text, "rnn")
    require_agreement(options, {"word_dim": words, "num_layers": layers})
    return {"text": "bigru", "words": words, "layers": layers}, rows
