"""MMT: a transformer over the features of all experts of a video, and for each expert a view of the caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lossscope.errors import InputError
from lossscope.text.sentence_case import add_sentence_case, as_sentence
from lossscope.text.special_tokens import split_special_tokens
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokeniser

from .base import Encoder, EncoderSpec
from .layers.bert import bert_configuration, build_bert, parse_size, stored_configuration
from .layers.expert_inputs import expert_widths, frame_mask, module_keys, require_experts, score_present_experts
from .layers.gated_units import GatedEmbeddingUnit, UnitLinear
from .layers.video_transformer import VideoTransformer, VideoTransformerConfig, time_codes
from .released.bert_folder import load_bert_folder
from .released.known_options.mmt import OPTIONS
from .released.mmt import expert_types, open_mmt
from .released.option_table import OptionTable
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile


@dataclass(frozen=True)
class MMT(EncoderSpec):
    """S = Σ_m w_m(t) ⟨t_m, v_m⟩ over experts m: the product of [w_m t_m] and [v_m]. w: softmax from the caption.

    v_m: state at the expert's own token, whose feature is the maximum over its frames, after `layers` layers over these
    tokens and all frames. t_m: gated unit of BERT's first state. All are unit vectors. A frame's position is ⌊second /
    window⌋ + 2, at most positions − 1. The maximum is over `EXPERT.max` where items have it, else over the frames
    given; the original's is over all frames of the video. Dots in the name of an expert become _ in the names of
    weights.

    The original is bert-base-cased with lower=true, although that vocabulary is cased. A random BERT learns
    only with dropout=0. keep_missing=false gives the weights of experts without a frame to the others; true counts
    them, as the original does.

    Source: Gabeur et al. 2020.
    """

    released_options: ClassVar[OptionTable] = OPTIONS
    floors_median_rank: ClassVar[bool] = False

    dim: int = 512  # joint width
    layers: int = 4  # of the video transformer
    heads: int = 4  # of a layer of the video transformer
    ffn: int = 3072  # width inside a layer of the video transformer
    positions: int = 32  # number of times with an embedding
    types: int = 19  # number of experts with an embedding
    window: float = 1.0  # seconds that share a position
    dropout: float = 0.1  # of both transformers and before w
    bert: str = "base"  # base or small, LAYERSxWIDTH, or the Hugging Face folder of a BERT
    tokeniser: Path | None = None  # folder of BERT's tokeniser; not needed where bert is a folder or small
    pieces: int = 8000  # size of the tokeniser that bert=small learns
    length: int = 30  # parts of words of a caption at most
    sentence: bool = True  # end captions with a full stop and begin them with a capital
    lower: bool = False  # captions in lower case without accents
    keep_missing: bool = True  # count experts without a frame too

    def __post_init__(self) -> None:
        if min(self.dim, self.layers, self.heads, self.ffn, self.pieces) < 1 or self.dim % self.heads:
            raise InputError("dim, layers, heads, ffn and pieces of mmt must be at least 1, dim a multiple of heads")
        if self.positions < 2 or self.length < 3 or not self.window > 0:
            got = f"{self.positions}, {self.length} and {self.window}"
            raise InputError(f"positions must be at least 2, length at least 3, window > 0; got {got}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1); got {self.dropout}")
        parse_size(self.bert)

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        """Return the tokeniser of a folder, or one learnt for bert=small. Raises InputError when no folder is named."""
        folder = self.tokeniser or (None if parse_size(self.bert) else Path(self.bert))
        if folder is not None:
            return self.prepare(Subwords.from_folder(folder))
        if self.bert != "small":
            raise InputError(f"bert={self.bert} must come with its tokeniser: tokeniser=FOLDER; or take bert=small")
        texts = (as_sentence(caption) if self.sentence else caption for caption in captions)
        return self.prepare(Subwords.train(texts, self.pieces))

    def prepare(self, tokeniser: Tokeniser) -> Tokeniser:
        """Return a tokeniser of parts of words as this model reads captions. Raises InputError for a vocabulary."""
        if not isinstance(tokeniser, Subwords):
            raise InputError("mmt must be given the tokeniser of its BERT; got a vocabulary of words")
        length = min(tokeniser.max_length or self.length, self.length)
        parts = split_special_tokens(Subwords(tokeniser.content, length))
        return add_sentence_case(parts, self.sentence, self.lower)

    def stored_files(self) -> Mapping[str, str]:
        configuration = stored_configuration(self.bert)
        return {"bert": configuration} if configuration else {}

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model, with the BERT that its folder holds. Raises InputError for items that are no videos."""
        model = self.rebuild(item_shape, vocabulary_size, self.stored_files())
        if parse_size(self.bert) is None:
            load_bert_folder(model.get_submodule("txt_bert"), Path(self.bert).expanduser())
        return model

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        options = {
            **bert_configuration(self.bert, vocabulary_size, stored_files.get("bert")),
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
        }
        return _Mmt(self, expert_widths(item_shape, "mmt"), build_bert(options), int(options["hidden_size"]))

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of one state dict with a `vid_bert`."""
        return open_mmt(cls, released)


class _Mmt(Encoder):
    def __init__(self, spec: MMT, experts: Mapping[str, int], bert: nn.Module, width: int) -> None:
        super().__init__()
        self.spec, self.experts = spec, tuple(experts)
        keys = module_keys(experts)
        sizes = (spec.dim, spec.layers, spec.heads, spec.ffn, spec.positions, spec.types)
        self.types = expert_types(self.experts, spec.types)
        self.video_dim_reduce = nn.ModuleDict({keys[name]: UnitLinear(d, spec.dim) for name, d in experts.items()})
        self.vid_bert = VideoTransformer(VideoTransformerConfig(*sizes, spec.dropout))
        self.txt_bert = bert
        self.txt_bert.get_submodule("pooler").requires_grad_(False)
        self.text_GU = nn.ModuleDict({key: GatedEmbeddingUnit(width, spec.dim) for key in keys.values()})
        self.moe_fc_txt = nn.ModuleDict({key: nn.Linear(width, 1) for key in keys.values()})
        self.dropout = nn.Dropout(spec.dropout)

    @property
    def is_dot_product(self) -> bool:
        """Whether no expert is left out, so that S is a product of vectors."""
        return self.spec.keep_missing

    def encode_images(self, images: Items) -> EncodedBatch:
        items = require_experts(images, self.experts)
        v = normalize(self._expert_states(items).float(), dim=-1)
        if self.spec.keep_missing:
            return EncodedBatch(v.flatten(1))
        present = torch.stack([items[f"{name}.length"] > 0 for name in self.experts], 1).to(v.dtype)
        return EncodedBatch((v * present[..., None]).flatten(1), extra={"present": present})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        text = self.txt_bert(input_ids=ids, attention_mask=present.long()).last_hidden_state[:, 0]
        t = torch.stack([unit(text) for unit in self.text_GU.values()], 1).float()
        dropped = self.dropout(text)
        w = torch.cat([weigh(dropped) for weigh in self.moe_fc_txt.values()], 1).float().softmax(1)
        return EncodedBatch((w[..., None] * t).flatten(1), extra={} if self.spec.keep_missing else {"weights": w})

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if self.spec.keep_missing:
            return images.vectors @ texts.vectors.T
        return score_present_experts(images, texts)

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"bert": list(self.txt_bert.parameters())}

    def _expert_states(self, items: Mapping[str, Tensor]) -> Tensor:
        """Return (n, M, dim), the states at the experts' own tokens.

        The transformer reads a token for the whole video, then for each expert its own and those of its frames.
        """
        first = items[self.experts[0]]
        n, device = len(first), first.device
        features = [first.new_zeros(n, 1, self.spec.dim)]
        positions = [torch.zeros(n, 1, dtype=torch.long, device=device)]
        masks = [torch.ones(n, 1, dtype=torch.bool, device=device)]
        types, slots = [0], []
        for name, kind, reduce in zip(self.experts, self.types, self.video_dim_reduce.values(), strict=True):
            present, times = frame_mask(items, name), items[f"{name}.time"]
            maximum = items.get(f"{name}.max", _max_over_frames(items[name], present))
            features.append(reduce(torch.cat([maximum[:, None], items[name]], 1)))
            codes = time_codes(times.masked_fill(~present, torch.nan), self.spec.window, self.spec.positions)
            positions += [torch.zeros_like(codes[:, :1]), codes]
            masks += [present.any(1, keepdim=True), present]
            slots.append(len(types))
            types += [kind] * (1 + present.shape[1])
        return self.vid_bert(  # type: ignore[no-any-return]
            torch.cat(features, 1),
            torch.cat(positions, 1),
            torch.tensor(types, device=device),
            torch.cat(masks, 1),
            torch.tensor(slots, device=device),
        )


def _max_over_frames(features: Tensor, present: Tensor) -> Tensor:
    """(n, T, d) -> (n, d): the maximum over the present frames, 0 where there is none."""
    maximum = features.masked_fill(~present[..., None], -torch.inf).amax(1)
    return maximum.masked_fill(~present.any(1, keepdim=True), 0)
