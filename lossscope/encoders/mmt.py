"""MMT: a transformer over the features of all experts of a video, and for each expert a view of the caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lossscope.errors import InputError
from lossscope.text.sentence_case import as_sentence, phrased
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokens

from .base import Encoder, EncoderSpec
from .layers.bert import configuration, empty, kept_configuration, size_of
from .layers.expert_inputs import experts_of, keys_of, over_present, present, videos
from .layers.gated_units import GatedUnit, Reduced
from .layers.video_transformer import VideoPlan, VideoTransformer, time_codes
from .released.bert_folder import load_folder
from .released.mmt import opened_mmt, types_of
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape


@dataclass(frozen=True)
class MMT(EncoderSpec):
    """S = Σ_m w_m(t) ⟨t_m, v_m⟩ over experts m: the product of [w_m t_m] and [v_m]. w: softmax from the caption.

    v_m: state at the expert's own token, whose feature is the maximum over its frames, after `layers` layers of
    `heads` heads and `ffn` inside over these and all frames; t_m: gated unit of BERT's first state; all unit vectors.
    A frame's position is ⌊second / window⌋ + 2, at most positions − 1; types: experts that have an embedding.
    bert, tokeniser, pieces: as in vse_infty (the original is bert-base-cased). length: parts of a caption at most.
    dropout: of both transformers and before w; a BERT begun at random learns only without (0). sentence: a full stop
    behind captions and a capital before. lower: in small letters, although the vocabulary is cased; the original does.
    keep_missing: experts without a frame count too, as in the original; else their weights go to the others. The
    maximum is over `EXPERT.max` where items have it, else over the frames given; the original's is over all frames of
    the video. A name with dots has _ in the names of weights.
    Source: Gabeur et al. 2020.
    """

    dim: int = 512
    layers: int = 4
    heads: int = 4
    ffn: int = 3072
    positions: int = 32
    types: int = 19
    window: float = 1.0
    dropout: float = 0.1
    bert: str = "base"
    tokeniser: Path | None = None
    pieces: int = 8000
    length: int = 30
    sentence: bool = True
    lower: bool = False
    keep_missing: bool = True

    def __post_init__(self) -> None:
        if min(self.dim, self.layers, self.heads, self.ffn, self.pieces) < 1 or self.dim % self.heads:
            raise InputError("dim, layers, heads, ffn and pieces of mmt must be at least 1, dim a multiple of heads")
        if self.positions < 2 or self.length < 3 or not self.window > 0:
            got = f"{self.positions}, {self.length} and {self.window}"
            raise InputError(f"positions must be at least 2, length at least 3, window > 0; got {got}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1); got {self.dropout}")
        size_of(self.bert)

    def tokens(self, captions: Sequence[str], min_count: int) -> Tokens:
        """The tokeniser of a folder, or one learnt for bert=small. Raises InputError when no folder is named."""
        folder = self.tokeniser or (None if size_of(self.bert) else Path(self.bert))
        if folder is not None:
            return self.prepare(Subwords.from_folder(folder))
        if self.bert != "small":
            raise InputError(f"bert={self.bert} must come with its tokeniser: tokeniser=FOLDER; or take bert=small")
        told = (as_sentence(caption) if self.sentence else caption for caption in captions)
        return self.prepare(Subwords.train(told, self.pieces))

    def prepare(self, words: Tokens) -> Tokens:
        """A tokeniser of parts of words as this model reads captions with it. Raises InputError for a vocabulary."""
        if not isinstance(words, Subwords):
            raise InputError("mmt must be given the tokeniser of its BERT; got a vocabulary of words")
        most = min(words.max_length or self.length, self.length)
        return phrased(Subwords(words.content, most), self.sentence, self.lower)

    def kept(self) -> Mapping[str, str]:
        configured = kept_configuration(self.bert)
        return {"bert": configured} if configured else {}

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model, with the BERT that its folder holds. Raises InputError for items that are no videos."""
        model = self.rebuild(item_shape, vocabulary_size, self.kept())
        if size_of(self.bert) is None:
            load_folder(model.get_submodule("txt_bert"), Path(self.bert).expanduser())
        return model

    def rebuild(self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str]) -> Encoder:
        known = {
            **configuration(self.bert, vocabulary_size, kept.get("bert")),
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
        }
        return _Mmt(self, experts_of(item_shape, "mmt"), empty(known), int(known["hidden_size"]))

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of one state dict with a `vid_bert`."""
        return opened_mmt(cls, original)


class _Mmt(Encoder):
    def __init__(self, spec: MMT, experts: Mapping[str, int], bert: nn.Module, width: int) -> None:
        super().__init__()
        self.spec, self.experts = spec, tuple(experts)
        keys = keys_of(experts)
        sizes = (spec.dim, spec.layers, spec.heads, spec.ffn, spec.positions, spec.types)
        self.types = types_of(self.experts, spec.types)
        self.video_dim_reduce = nn.ModuleDict({keys[name]: Reduced(d, spec.dim) for name, d in experts.items()})
        self.vid_bert = VideoTransformer(VideoPlan(*sizes, spec.dropout))
        self.txt_bert = bert
        self.txt_bert.get_submodule("pooler").requires_grad_(False)
        self.text_GU = nn.ModuleDict({key: GatedUnit(width, spec.dim) for key in keys.values()})
        self.moe_fc_txt = nn.ModuleDict({key: nn.Linear(width, 1) for key in keys.values()})
        self.dropout = nn.Dropout(spec.dropout)

    @property
    def dot(self) -> bool:
        """Whether no expert is left out, so that S is a product of vectors."""
        return self.spec.keep_missing

    def encode_images(self, images: Items) -> EncodedBatch:
        items = videos(images, self.experts)
        v = normalize(self._states(items).float(), dim=-1)
        if self.spec.keep_missing:
            return EncodedBatch(v.flatten(1))
        there = torch.stack([items[f"{name}.length"] > 0 for name in self.experts], 1).to(v.dtype)
        return EncodedBatch((v * there[..., None]).flatten(1), extra={"present": there})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        there = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        text = self.txt_bert(input_ids=ids, attention_mask=there.long()).last_hidden_state[:, 0]
        t = torch.stack([unit(text) for unit in self.text_GU.values()], 1).float()
        dropped = self.dropout(text)
        w = torch.cat([weigh(dropped) for weigh in self.moe_fc_txt.values()], 1).float().softmax(1)
        return EncodedBatch((w[..., None] * t).flatten(1), extra={} if self.spec.keep_missing else {"weights": w})

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if self.spec.keep_missing:
            return images.vectors @ texts.vectors.T
        return over_present(images, texts)

    def groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"bert": list(self.txt_bert.parameters())}

    def _states(self, items: Mapping[str, Tensor]) -> Tensor:
        """(n, M, dim): one token for the whole video, then for each expert its own and those of its frames."""
        first = items[self.experts[0]]
        n, device = len(first), first.device
        features = [first.new_zeros(n, 1, self.spec.dim)]
        positions = [torch.zeros(n, 1, dtype=torch.long, device=device)]
        masks = [torch.ones(n, 1, dtype=torch.bool, device=device)]
        types, places = [0], []
        for name, kind, reduce in zip(self.experts, self.types, self.video_dim_reduce.values(), strict=True):
            there, times = present(items, name), items[f"{name}.time"]
            whole = items.get(f"{name}.max", _highest(items[name], there))
            features.append(reduce(torch.cat([whole[:, None], items[name]], 1)))
            codes = time_codes(times.masked_fill(~there, torch.nan), self.spec.window, self.spec.positions)
            positions += [torch.zeros_like(codes[:, :1]), codes]
            masks += [there.any(1, keepdim=True), there]
            places.append(len(types))
            types += [kind] * (1 + there.shape[1])
        return self.vid_bert(  # type: ignore[no-any-return]
            torch.cat(features, 1),
            torch.cat(positions, 1),
            torch.tensor(types, device=device),
            torch.cat(masks, 1),
            torch.tensor(places, device=device),
        )


def _highest(features: Tensor, there: Tensor) -> Tensor:
    """(n, T, d) -> (n, d): the maximum over the frames there are, 0 where there is none."""
    found = features.masked_fill(~there[..., None], -torch.inf).amax(1)
    return found.masked_fill(~there.any(1, keepdim=True), 0)
