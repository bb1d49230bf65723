"""Files of VSE++: whether one is of this family, which network reads its pictures, and today's names of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from ..layers.vse_towers import BatchNorms
from ..types import ReleasedFile
from .options import read_flag, read_text


def is_vsepp(released: ReleasedFile) -> bool:
    """Return whether a file of two towers is of this family."""
    image, text = released.towers
    if "rnn.weight_ih_l0" not in text or any(name.endswith("_reverse") for name in text):
        return False
    precomputed = all(name.startswith("fc.") for name in image) and "fc.weight_v" not in image
    other_families = {"cross_attn", "focal_type", "agg_func", "lambda_softmax"} & released.options.keys()
    return any(name.startswith("cnn.") for name in image) or (precomputed and not other_families)


def infer_network(image: Mapping[str, Tensor]) -> str:
    """Return the network of pictures, as `resnet152`. Raises InputError when no known one has these names."""
    if any(name.startswith("cnn.features.") for name in image):
        return "vgg19"
    from ..layers.pooled_resnet import identify_resnet

    return identify_resnet(name for name in image if name.startswith("cnn."))


def infer_batch_norms(options: Mapping[str, Any]) -> BatchNorms:
    """Return the mode of the network in training: that of every step with reset_train and for Bleeker & de Rijke."""
    return "ecir" if "criterion" in options or read_flag(options, "reset_train", False) else "original"


def require_images(options: Mapping[str, Any], network: str) -> None:
    """Raise InputError where options name other images, or another network, than the tensors are of.

    Args:
        options: of the file.
        network: that reads pictures, or `linear` for features.
    """
    raw, data = network != "linear", read_text(options, "data_name", "")
    if data and raw == data.endswith("_precomp"):
        expected = "pictures, and not end in _precomp" if raw else "features, and end in _precomp"
        raise InputError(f"option data_name of the file must name {expected}, as its tensors read those; got {data!r}")
    name = read_text(options, "cnn_type", network)
    if raw and name != network:
        raise InputError(f"option cnn_type of the file must be {network}, as its tensors are; got {name!r}")


def rename(name: str) -> str:
    """Return a name of the image tower without data-parallel prefixes, and with today's indices of vgg's layers."""
    name = name.replace("cnn.module.", "cnn.").replace("cnn.features.module.", "cnn.features.")
    return name.replace("cnn.classifier.1.", "cnn.classifier.0.").replace("cnn.classifier.4.", "cnn.classifier.3.")
