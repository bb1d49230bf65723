"""The two towers of CLIP by transformers, with the extra layers and the scale of pixels that a configuration states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.errors import InputError, needing

from .base import Encoder
from .released.clip_config import select_configuration
from .released.image_processor import CLIP_MEAN, CLIP_STD, require_normalisation
from .released.transformer_config import build_config
from .types import EncodedBatch, Items, ItemShape


class ClipModel(Encoder):
    """CLIP of transformers; pictures must be of its size, and are normalised here."""

    def __init__(self, config: Mapping[str, Any], layer: str, shape: ItemShape) -> None:
        super().__init__()
        from transformers import CLIPModel

        stated = require_normalisation(config)
        self._normalisation = stated.get("image_mean", CLIP_MEAN), stated.get("image_std", CLIP_STD)
        model: Any = CLIPModel(build_clip_config(config))
        side = model.config.vision_config.image_size
        if shape != (3, side, side):
            raise InputError(f"pictures must be (3, {side}, {side}) for this CLIP; the data set has {shape}")
        self.vision_model, self.text_model = model.vision_model, model.text_model
        self.visual_projection, self.text_projection = model.visual_projection, model.text_projection
        self.logit_scale = nn.Parameter(model.logit_scale.detach().clone(), requires_grad=False)
        width = self.visual_projection.out_features
        self.head = nn.ModuleDict(
            {"img": _build_layer(width, layer), "txt": _build_layer(width, layer)} if layer != "none" else {}
        )

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        pixels = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, deviation = (pixels.new_tensor(x)[:, None, None] for x in self._normalisation)
        pooled = self.vision_model(pixel_values=(pixels - mean) / deviation).pooler_output
        return EncodedBatch(normalise(self._project("img", self.visual_projection(pooled))))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        pooled = self.text_model(input_ids=ids, attention_mask=present.long()).pooler_output
        return EncodedBatch(normalise(self._project("txt", self.text_projection(pooled))))

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"clip": [p for name, p in self.named_parameters() if not name.startswith("head.")]}

    def extra_layers_state(self) -> dict[str, Tensor]:
        """Return the state of the extra layers, which no folder has."""
        return {name: tensor for name, tensor in self.state_dict().items() if name.startswith("head.")}

    def _project(self, tower: str, projected: Tensor) -> Tensor:
        return self.head[tower](projected).float() if len(self.head) else projected.float()


def _build_layer(width: int, start: str) -> nn.Linear:
    """Return an extra layer."""
    layer = nn.Linear(width, width)
    nn.init.zeros_(layer.bias)
    if start == "identity":
        nn.init.eye_(layer.weight)
    else:
        nn.init.xavier_uniform_(layer.weight)
    return layer


def build_clip_config(config: Mapping[str, Any]) -> Any:
    """Return the configuration with all defaults. Raises InputError without transformers, or for an invalid one."""
    with needing("hf", "clip needs transformers"):
        from transformers import CLIPConfig
    sizes = {name: value for name, value in select_configuration(config).items() if not name.startswith("image_")}
    return build_config(CLIPConfig, sizes, "CLIP")
