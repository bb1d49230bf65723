"""The small encoders of the tests: specs, items and captions, and what each family states about its gradients.

`EXAMPLES` has at least one spec of each family in lossscope/encoders. An encoder that is not in it is tested with its
default options and the first kind of items that its `build` accepts, so that a new file is tested as soon as it exists.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.types import TEXT_SHAPE
from lossscope.encoders.base import Encoder, EncoderSpec, encoder_spec
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import Items, ItemShape
from lossscope.errors import InputError
from lossscope.registry import folder, names
from lossscope.spec import Spec
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokeniser
from lossscope.text.vocabulary import Vocabulary
from tests.each import Test, each

Kind = Literal["pixels", "regions", "vectors", "videos", "texts"]

N = 5  # items and captions of a batch
LENGTHS = torch.tensor([5, 3, 6, 1, 4])  # of the captions
FRAMES = (3, 2, 0, 1)  # of an expert in each video, shifted by one from expert to expert; the last video has none
REGIONS, WIDTH = 5, 7  # regions of a picture, and numbers of a region
WORD_WIDTH = 6  # numbers of a word vector, where captions are word vectors and the spec does not say
SENTENCES = ["a red square", "two blue dots near a line", "green circle left of a small one", "a man talks"] * 4
INF = float("inf")

PROPERTIES = ("is_cosine", "is_dot_product", "pairwise", "needs_full_matrix")  # of a score, attributes of Encoder
COSINE = frozenset({"is_cosine", "is_dot_product"})
PRODUCT = frozenset({"is_dot_product"})
MEAN_OF_COSINES = frozenset({"is_cosine"})
PAIRS = frozenset({"pairwise"})
MEAN_OVER_PAIRS = PAIRS | {"is_cosine"}
RERANKED = PAIRS | {"needs_full_matrix"}


@dataclass(frozen=True)
class Example:
    """A small encoder, its inputs, and the facts that its family states of its score and training. None: unknown."""

    spec: str  # with {folder} where `files` writes
    kind: Kind | None = "regions"  # of items
    side: int = 16  # pixels of a side
    widths: Mapping[str, int] = field(default_factory=lambda: {"face": 5, "rgb": 4})  # of the experts of a video
    files: Callable[[Path], None] | None = None  # writes the files that the spec names
    score: frozenset[str] | None = COSINE  # which of PROPERTIES are true
    bounds: tuple[float, float] | None = (-1.0, 1.0)  # least and greatest possible score
    unit: bool = True  # is a cosine that of two unit vectors, not a mean of cosines of parts of the vectors?
    stochastic: bool | None = False  # is S random in training?
    quiet: tuple[str, ...] = ()  # options that switch off randomness in training other than nn.Dropout
    frozen: str | None = ""  # pattern of names of the parameters that do not train
    silent: str | None = ""  # pattern of names of the trained parameters whose gradient is zero
    unused: str = ""  # pattern of names of the trained parameters that have no gradient
    groups: Mapping[str, str] | None = field(default_factory=dict)  # parameter group -> pattern of its names
    slow: bool = False  # does it take seconds?

    @property
    def name(self) -> str:
        """The encoder's name in the registry."""
        return self.spec.partition(":")[0]

    def options(self, path: Path | None = None, changes: tuple[str, ...] = ()) -> EncoderSpec:
        """Return the spec as an object.

        Args:
            path: folder of its files, written if it does not exist.
            changes: options that replace those of the spec, `key=value`.
        """
        spec = str(Spec.parse(self.spec).with_values(changes))
        if self.files is None or path is None:
            return encoder_spec(spec)
        if not path.exists():
            path.mkdir()
            self.files(path)
        return encoder_spec(spec.format(folder=path))

    def shape(self, spec: EncoderSpec) -> ItemShape:
        """Return the shape of an item; where the example states none, of the first kind that the encoder accepts."""
        return SHAPES[self.kind_of(spec)](self)

    def kind_of(self, spec: EncoderSpec) -> Kind:
        """Return the kind of items.

        Raises InputError with the message about each kind when the encoder accepts none.
        """
        if self.kind is not None:
            return self.kind
        messages = []
        for kind in get_args(Kind):
            try:
                with torch.device("meta"):
                    spec.build(SHAPES[kind](self), 12)
            except InputError as error:
                messages.append(str(error))
            else:
                return kind  # type: ignore[no-any-return]
        raise InputError("; ".join(messages))

    def items(self, spec: EncoderSpec, longer: int = 0) -> Items:
        """Return N items; `longer` adds frames to videos that are padding, filled with arbitrary numbers."""
        return items_of(self.shape(spec), longer)

    def build(self, spec: EncoderSpec) -> Encoder:
        """Return the encoder in eval mode; its parameters and statistics differ from those of a new model.

        A new model has zeros, and ones, that hide a mix-up and stop gradients.
        """
        torch.manual_seed(0)
        return perturb(spec.build(self.shape(spec), len(tokeniser(spec)))).eval()


@dataclass
class Case:
    """An example with its files and its model, made once for all tests."""

    example: Example

    @property
    def name(self) -> str:
        """Return the name of the case in a failure."""
        return self.example.spec

    @property
    def slow(self) -> bool:
        """Is the model large?"""
        return self.example.slow

    @cached_property
    def files(self) -> Path:
        """Return the folder of the files that the spec names."""
        return Path(_folder().name) / str(id(self))

    @cached_property
    def spec(self) -> EncoderSpec:
        """Return the options; skip a plug-in that needs files, which a test cannot know."""
        options = self.example.options(self.files)
        try:
            self.example.kind_of(options)
        except InputError as error:
            if is_built_in(self.example.name):
                pytest.fail(f"{self.name} takes no items: state an example in tests/encoders/examples.py; {error}")
            pytest.skip(f"{self.name} cannot be built without options: {error}")
        return options

    @cached_property
    def model(self) -> Encoder:
        """Return the encoder. Do not change it."""
        return self.example.build(self.spec)

    @property
    def encoder(self) -> Encoder:
        """Return a copy of the model, which a test may change."""
        return copy.deepcopy(self.model)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="examples-")


def each_but_large(name: str, values: Iterable[Any]) -> Callable[[Test], Test]:
    """Return a decorator that runs a test on each value, and on `slow` values in a separate thorough test."""
    quick, slow = ([value for value in values if value.slow is wanted] for wanted in (False, True))

    def decorate(test: Test) -> Test:
        if slow:
            test.__globals__[f"{test.__name__}_of_large_ones"] = pytest.mark.thorough(each(name, slow)(test))
        return each(name, quick)(test)

    return decorate


SHAPES: dict[Kind, Callable[[Example], ItemShape]] = {
    "pixels": lambda example: (3, example.side, example.side),
    "regions": lambda example: (REGIONS, WIDTH),
    "vectors": lambda example: (WIDTH,),
    "videos": lambda example: item_shape_of(example.widths, max(FRAMES)),
    "texts": lambda example: TEXT_SHAPE,
}


def items_of(shape: ItemShape, longer: int = 0) -> Items:
    """Return N items of a shape: pictures as pixels, features as normal numbers."""
    if isinstance(shape, Mapping):
        return videos({name: shape[name][1] for name in shape if f"{name}.length" in shape}, longer)
    if shape == TEXT_SHAPE:
        return texts(longer)
    generator = torch.Generator().manual_seed(1)
    if len(shape) == 3:
        return torch.randint(0, 256, (N, *shape), dtype=torch.uint8, generator=generator)
    return torch.randn(N, *shape, generator=generator)


def texts(longer: int = 0) -> dict[str, Tensor]:
    """Return N texts of the first side as padded ids and lengths; `longer` adds padding of arbitrary ids."""
    lengths = torch.tensor([2, 6, 1, 4, 3])
    ids = torch.randint(5, 12, (N, 6), generator=torch.Generator().manual_seed(3))
    ids[torch.arange(6) >= lengths[:, None]] = 7 if longer else 0
    return {"ids": torch.nn.functional.pad(ids, (0, longer), value=7), "lengths": lengths}


def videos(widths: Mapping[str, int], longer: int = 0) -> dict[str, Tensor]:
    """Return N videos: the last lacks all experts, others lack one; the times of every other expert are unknown."""
    generator = torch.Generator().manual_seed(1)
    items: dict[str, Tensor] = {}
    for index, (name, width) in enumerate(sorted(widths.items())):
        lengths = torch.tensor([*(FRAMES[(index + row) % len(FRAMES)] for row in range(N - 1)), 0])
        absent = torch.arange(max(FRAMES)) >= lengths[:, None]
        features = torch.randn(N, max(FRAMES), width, generator=generator).masked_fill(absent[..., None], 0)
        times = 6 * torch.rand(N, max(FRAMES), generator=generator).masked_fill(absent, torch.nan)
        if index % 2:
            times[:] = torch.nan
        if longer:
            features[absent], times[absent] = 50.0, 50.0
            features = torch.nn.functional.pad(features, (0, 0, 0, longer), value=50.0)
            times = torch.nn.functional.pad(times, (0, longer), value=50.0)
        items |= {name: features, f"{name}.length": lengths, f"{name}.time": times}
    return items


def captions(spec: EncoderSpec, longer: int = 0) -> tuple[Tensor, Tensor]:
    """Return N captions, ids or word vectors, and their lengths; `longer` adds padding of arbitrary ids or numbers."""
    generator = torch.Generator().manual_seed(2)
    present = torch.arange(int(LENGTHS.max())) < LENGTHS[:, None]
    if spec.reads_word_vectors:
        vectors = torch.randn(*present.shape, getattr(spec, "word_dim", WORD_WIDTH), generator=generator)
        vectors[~present] = 50.0 if longer else 0.0
        return torch.nn.functional.pad(vectors, (0, 0, 0, longer), value=50.0), LENGTHS
    ids = torch.randint(5, 12, present.shape, generator=generator)
    ids[:, 0] = 2
    ids[torch.arange(N), LENGTHS - 1] = 3
    ids[~present] = 7 if longer else 0
    return torch.nn.functional.pad(ids, (0, longer), value=7), LENGTHS


def select(items: Items, rows: Any) -> Items:
    """Return the items of a slice."""
    return items[rows] if isinstance(items, Tensor) else {name: tensor[rows] for name, tensor in items.items()}


@cache
def tokeniser(spec: EncoderSpec) -> Tokeniser:
    """Return the encoder's tokeniser learnt from the sentences, or that of a folder where the encoder learns none."""
    if spec.reads_word_vectors:
        return Vocabulary.build([], 1)
    with suppress(InputError):
        return spec.build_tokeniser(SENTENCES, 1)
    return spec.prepare(subwords())


@cache
def subwords() -> Subwords:
    """Return a tokeniser learnt from the sentences."""
    return Subwords.train(SENTENCES, 80, max_length=16)


KEPT = re.compile(r"\.cnn\.|logit_")  # deep networks, whose numbers would grow from layer to layer, and logarithms


def perturb(encoder: Encoder) -> Encoder:
    """Change vectors, matrices and statistics from their initial values; scalars and convolutions stay."""
    with torch.no_grad():
        for name, tensor in encoder.state_dict().items():
            if "running_var" in name:
                tensor.uniform_(0.5, 2)
            elif tensor.is_floating_point() and tensor.ndim in (1, 2) and not KEPT.search(name):
                tensor.add_(0.15 * torch.randn_like(tensor))
    return encoder


def without_dropout(encoder: Encoder) -> Encoder:
    """Set the share that each nn.Dropout drops to zero."""
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return encoder


@contextmanager
def double_precision() -> Iterator[None]:
    """Let all floating numbers be float64, also those that encoders make float32, so that rounding shows nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "float", Tensor.double)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)


def bert_folder(path: Path) -> None:
    """Write the Hugging Face folder of a small BERT under a masked language model, with its tokeniser."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(3)
    sizes: dict[str, Any] = {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    BertForMaskedLM(BertConfig(vocab_size=len(subwords()), **sizes)).save_pretrained(path)
    (path / "tokenizer.json").write_text(subwords().content, encoding="utf-8")


TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def clip_folder(path: Path, words: Subwords | None = None, context: int = 16) -> None:
    """Write the Hugging Face folder of a small CLIP, with its tokeniser."""
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(2)
    words, ends = words or subwords(), {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    text = {**TOWER, **ends, "vocab_size": len(words), "max_position_embeddings": context}
    vision = {**TOWER, "image_size": 16, "patch_size": 8}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)).save_pretrained(path)
    (path / "tokenizer.json").write_text(words.content, encoding="utf-8")


def siglip_folder(path: Path, words: Subwords | None = None, context: int = 16, filled_by: str = "[PAD]") -> None:
    """Write the Hugging Face folder of a small SigLIP, with its tokeniser."""
    from transformers import SiglipConfig, SiglipModel

    torch.manual_seed(2)
    words, ends = words or subwords(), {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 1}
    text = {**TOWER, **ends, "vocab_size": len(words), "max_position_embeddings": context, "projection_size": 16}
    vision = {**TOWER, "image_size": 16, "patch_size": 8}
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
    torch.nn.init.constant_(model.logit_scale, 2.0)
    torch.nn.init.constant_(model.logit_bias, -3.0)
    model.save_pretrained(path)
    (path / "tokenizer.json").write_text(words.content, encoding="utf-8")
    (path / "tokenizer_config.json").write_text(f'{{"pad_token": "{filled_by}"}}', encoding="utf-8")


def resnet_file(path: Path) -> None:
    """Write the weights of a ResNet-18 under torchvision's names."""
    from lossscope.encoders.layers.pooled_resnet import DEPTHS, Resnet

    torch.manual_seed(4)
    torch.save(Resnet(DEPTHS["resnet18"]).state_dict(), path / "net.pth")


def xvlm_file(path: Path) -> None:
    """Write the weights of a small X-VLM as its authors do."""
    torch.manual_seed(5)
    spec = encoder_spec(XVLM.spec)
    encoder = spec.build((3, 16, 16), len(tokeniser(spec)))
    torch.save({"model": encoder.state_dict()}, path / "xvlm.pth")


# Parameters that train and have a gradient of zero: they add the same to all that a softmax compares, or the batch
# norm behind them subtracts it.
KEY = r"(key|k_proj)\.bias$"
SMALL = "dim=8,words=4"
CE_SPEC = "ce:dim=6,clusters=audio=2+ocr=3,text_clusters=4,word_dim=7,length=8"
CE_WIDTHS = {"audio": 4, "face": 5, "i3d.i3d.0": 6, "ocr": 3}
CE = Example(
    CE_SPEC,
    "videos",
    widths=CE_WIDTHS,
    score=MEAN_OF_COSINES,
    silent=r"^ce\.(g_reason_1|g_reason_shared\.2|(video|text)_GU\.\d\.cg\.fc)\.bias$",
)
CLIP = Example(
    "clip:width=16,depth=1,heads=2,dim=8",
    "pixels",
    frozen=r"^logit_scale$",
    silent=KEY,
    groups={"clip": r"^(?!head\.)"},
)
MMT = Example(
    "mmt:dim=8,layers=1,heads=2,ffn=12,positions=6,window=2,pieces=80",
    "videos",
    unit=False,
    stochastic=True,
    quiet=("dropout=0",),
    frozen=r"pooler",
    silent=rf"{KEY}|^text_GU\.\w+\.cg\.fc\.bias$",
    groups={"bert": r"^txt_bert\."},
)
SGRAF_SILENT = r"embedding_common\.0\.bias$|v_global_w\.embedding_global\.0\.bias$|graph_key_w\.bias$|attn_sim_w\.bias$"
UNUSED_NORM = r"^image\.mlp\.bns\.1\."  # of VSE-infinity: there for its name
XVLM = Example(
    "xvlm:embed=32,depths=1/1,window=4,patch=2,width=64,layers=2,fused=1,positions=16,max_tokens=8,dim=8,init=0.08,"
    "pieces=80",
    "pixels",
    stochastic=True,
    quiet=("dropout=0", "drop_path=0"),
    frozen=r"^temp$",
    silent=KEY,
    groups={"backbone": r"^vision_encoder\.", "bert": r"^text_encoder\."},
)
XVLM_MATCHING = replace(XVLM, spec=f"{XVLM.spec},score=itm", score=RERANKED, bounds=(-INF, INF))
XVLM_FUSED = r"^temp$|^itm_head\.|^text_encoder\.encoder\.layer\.1\."  # what no loss reaches with score=itc alone
BACKBONE = {"backbone": r"^image\.cnn\."}

EXAMPLES: dict[str, list[Example]] = {
    "bfan": [Example(f"bfan:{focal}{SMALL}", score=PAIRS, bounds=(-2.0, 2.0)) for focal in ("", "focal=prob,")],
    "biencoder": [
        Example("biencoder:dim=8,words=4,layers=2", "texts"),
        Example("biencoder:dim=8,words=4,share=false", "texts"),
        Example("biencoder:tower=transformer,dim=8,words=8,heads=2,layers=2", "texts"),
    ],
    "ce": [
        replace(CE, spec=CE_SPEC),
        replace(CE, spec=f"{CE_SPEC},rows=audio=4+ocr=6,padded=true,words=embedding"),
        replace(  # all experts count equally, so the score ignores the caption's weights w
            CE,
            spec=f"{CE_SPEC},rows=audio=4+ocr=6,padded=true,gating=simultaneous,keep_missing=true",
            score=PRODUCT,
            bounds=(-4.0, 4.0),
            unused=r"^ce\.moe_fc\.",
        ),
    ],
    "clip": [
        CLIP,
        replace(CLIP, spec=f"{CLIP.spec},layer=xavier"),
        replace(CLIP, spec="clip:path={folder},layer=identity", files=clip_folder),
    ],
    "mmt": [
        replace(MMT, spec=f"{MMT.spec},bert=1x64"),
        replace(MMT, spec=f"{MMT.spec},bert=1x64,keep_missing=false", score=MEAN_OF_COSINES),
        replace(MMT, spec=f"{MMT.spec},bert={{folder}}", files=bert_folder),
    ],
    "scan": [
        Example(f"scan:{options},{SMALL}", score=score, bounds=(-1.0, most))
        for options, score, most in (
            ("direction=t2i", MEAN_OVER_PAIRS, 1.0),
            ("direction=i2t", MEAN_OVER_PAIRS, 1.0),
            ("direction=t2i,pool=max", MEAN_OVER_PAIRS, 1.0),
            ("direction=t2i,pool=lse,weight_norm=true", PAIRS, INF),
            ("direction=i2t,pool=lse,lambda_lse=5,norm=softmax,bi_gru=false", PAIRS, 1.3218876),  # 1 + ln(5) / 5
        )
    ]
    + [Example(f"scan:direction=i2t,pool=sum,{SMALL}", score=PAIRS, bounds=(-5.0, 5.0))],
    "sgraf": [
        Example(
            f"sgraf:module={module},steps=2,sim_dim=6,word_init=1,{SMALL}",
            stochastic=True,
            quiet=("dropout=0",),
            silent=SGRAF_SILENT,
            score=PAIRS,
            bounds=(0.0, 1.0),
        )
        for module in ("sgr", "saf")
    ],
    "siglip": [
        Example(
            "siglip:path={folder}",
            "pixels",
            files=siglip_folder,
            frozen=r"^logit_(scale|bias)$",
            silent=KEY,
            groups={"siglip": ""},
        )
    ],
    "vse_infty": [
        Example(
            f"vse_infty:text=bigru,{SMALL}",
            stochastic=True,
            quiet=("drop=0",),
            frozen=UNUSED_NORM,
            silent=r"^image\.mlp\.layers\.0\.bias$",
        ),
        *(
            Example(
                spec,
                files=files,
                stochastic=True,
                quiet=("drop=0",),
                frozen=rf"{UNUSED_NORM}|pooler",
                silent=rf"{KEY}|^image\.mlp\.layers\.0\.bias$",
                groups={"bert": r"^text\.bert\."},
            )
            for spec, files in (
                ("vse_infty:bert=1x64,drop=0,dim=8", None),  # a size without a tokeniser cannot drop words
                ("vse_infty:bert={folder},dim=8", bert_folder),
            )
        ),
    ],
    "vsepp": [
        Example(f"vsepp:{SMALL},width=4", "pixels", silent=r"^image\.fc\.bias$"),
        Example(f"vsepp:{SMALL},width=4,centre=false,crop=16", "pixels", 24, stochastic=True, quiet=("crop=0",)),
        Example(f"vsepp:image=linear,unit_input=true,{SMALL}", "vectors"),
        Example(f"vsepp:image=linear,measure=order,use_abs=true,{SMALL}", score=PAIRS, bounds=(-2.0, 0.0)),
        Example(f"vsepp:image=linear,no_imgnorm=true,pool=mean,{SMALL}", score=PRODUCT, bounds=(-INF, INF)),
        Example(f"vsepp:image=linear,layers=2,{SMALL}"),
        Example(f"vsepp:image=resnet18,finetune=true,{SMALL}", "pixels", 48, groups=BACKBONE, slow=True),
        Example(
            f"vsepp:image=resnet18,bn_mode=original,weights={{folder}}/net.pth,{SMALL}",
            "pixels",
            48,
            files=resnet_file,
            frozen=BACKBONE["backbone"],
            groups=BACKBONE,
            slow=True,
        ),
        Example(f"vsepp:image=vit-small,finetune=true,{SMALL}", "pixels", groups=BACKBONE, slow=True),
    ],
    "vsrn": [
        Example(f"vsrn:{SMALL}{options}", silent=r"^image\.Rs_GCN_\d\.W\.0\.bias$")
        for options in ("", ",region_norm_axis=regions,fc_norm=true,final_bn=false", ",captions=true", ",layers=2")
    ]
    + [
        Example(f"vsrn:{SMALL}{options}", silent=r"^image\.Rs_GCN_\d\.W\.0\.bias$", score=score, bounds=bounds)
        for options, score, bounds in (
            (",measure=order,use_abs=true", PAIRS, (-2.0, 0.0)),
            (",measure=order,no_imgnorm=true", PAIRS, (-INF, 0.0)),
            (",no_imgnorm=true,use_abs=true", PRODUCT, (-INF, INF)),
        )
    ],
    "xvlm": [
        replace(XVLM, frozen=XVLM_FUSED),
        replace(XVLM, spec=f"{XVLM.spec},weights={{folder}}/xvlm.pth", files=xvlm_file, frozen=XVLM_FUSED),
        replace(XVLM, spec=f"{XVLM.spec},itm_loss=true,augment=true", quiet=(*XVLM.quiet, "augment=false")),
        replace(XVLM_MATCHING, spec=f"{XVLM_MATCHING.spec},k_test=2"),
        replace(XVLM_MATCHING, spec=f"{XVLM_MATCHING.spec},itc_loss=false", frozen=r"^temp$|^(vision|text)_proj\."),
        replace(XVLM_MATCHING, spec=f"{XVLM_MATCHING.spec},itm_loss=true"),
    ],
}


def examples() -> list[Example]:
    """Return the examples of all encoders of the registry; of one without any, its default options."""
    return [example for name in names("encoders") for example in EXAMPLES.get(name) or [default_example(name)]]


def default_example(name: str) -> Example:
    """Return an example of an unknown encoder, with its defaults."""
    return Example(name, None, score=None, bounds=None, stochastic=None, frozen=None, silent=None, groups=None)


def is_built_in(name: str) -> bool:
    """Is an encoder a file of lossscope, not of an installed plug-in?"""
    return (folder("encoders") / f"{name}.py").is_file()
