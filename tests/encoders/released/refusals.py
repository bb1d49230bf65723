"""Files that lossscope refuses with a message, and files without any option or tensor that shows their family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.encoders.types import ReleasedFile
from tests.encoders.released.releases import (
    BFAN_OPTIONS,
    CE_CONFIG,
    MARGIN,
    MMT_CONFIG,
    SCAN_OPTIONS,
    release_of,
    with_architecture,
)


@dataclass(frozen=True)
class Refusal:
    """A change with which a released file does not open."""

    release: str  # start of the release's spec
    message: str = ""  # pattern of the error's; without one, the file counts as another family's
    options: Mapping[str, Any] | None = None  # of the file, in place of its own
    drop: str = ""  # pattern of the names that the tower lacks
    add: Mapping[str, Tensor] = field(default_factory=dict)  # tensors that replace or join the tower's
    tower: int = 0

    def file(self) -> ReleasedFile:
        """Return the file with the change."""
        file = release_of(self.release).file()
        towers = [dict(tower) for tower in file.towers]
        kept = {k: v for k, v in towers[self.tower].items() if not (self.drop and re.search(self.drop, k))}
        towers[self.tower] = {**kept, **self.add}
        options = file.options if self.options is None else self.options
        return replace(file, towers=tuple(towers), options=options)


REFUSALS: list[Refusal] = [
    *(
        Refusal("bfan", message, {**BFAN_OPTIONS, **options})
        for options, message in (
            ({"focal_type": "none"}, "option focal_type of the file must be one of equal, prob; got 'none'"),
            ({"no_imgnorm": 1}, "option no_imgnorm of the file must be true or false; got 1"),
            ({"precomp_enc_type": "weight_norm"}, "precomp_enc_type of the file must be 'basic', as its tensors are"),
        )
    ),
    *(
        Refusal("ce", message, options)
        for options, message in (
            (with_architecture(CE_CONFIG, use_mish=0), "option arch.args.use_mish of .* must be 1 or True; got 0"),
            (
                {**CE_CONFIG, "experts": {**CE_CONFIG["experts"], "ce_shared_dim": 77}},
                "option ce_shared_dim of the file must be .*, as its tensors are; got 77",
            ),
            (with_architecture(CE_CONFIG, vlad_clusters={"ocr": 77}), "option ocr of the file must be 3, as its"),
            (with_architecture(CE_CONFIG, include_self=0), "option arch.args.include_self of .* must be 1 or True"),
            (
                with_architecture(CE_CONFIG, keep_missing_modalities="no"),
                "keep_missing_modalities of the file must be true or false; got 'no'",
            ),
            ({**CE_CONFIG, "experts": {"modalities": ["face"]}}, "must name 4 experts, each once"),
            ({**CE_CONFIG, "experts": {"modalities": ["face", 1, 2, 3]}}, "must name 4 experts, each once"),
            ({**CE_CONFIG, "experts": {}}, "must name 4 experts, each once"),
            (
                {**CE_CONFIG, "data_loader": {"args": {"max_tokens": {"ocr": 2.5}}}},
                "option ocr of the file must be a whole",
            ),
            ({**CE_CONFIG, "loss": {"args": {"margin": "0.2"}}}, "option margin of the file must be a finite number"),
        )
    ),
    Refusal("ce", r"left over \['ce.h_reason.0.weight'\]", add={"ce.h_reason.0.weight": torch.zeros(6)}),
    Refusal("ce", "pooled experts must be among .*; got wind", add={"pooling.wind.clusters2": torch.zeros(1, 3, 2)}),
    Refusal("ce", r"must have plain names; got 'a\+b'", add={"pooling.a+b.clusters2": torch.zeros(1, 3, 2)}),
    *(
        Refusal("mmt", message, options)
        for options, message in (
            (with_architecture(MMT_CONFIG, out_tok="mnp"), "option arch.args.out_tok of .* must be 'mxp'; got 'mnp'"),
            (
                with_architecture(MMT_CONFIG, txt_agg="bertftnmxp"),
                "option txt_agg of the file must be a BERT's first state",
            ),
            (with_architecture(MMT_CONFIG, vid_bert_params={"num_attention_heads": 3}), "dim a multiple of heads"),
            (with_architecture(MMT_CONFIG, same_dim=9), "option same_dim of the file must be 8, as its"),
            (
                {**MMT_CONFIG, "experts": {"modalities": ["rgb", "face"]}},
                r"experts.modalities of the file must be \['face', 'ocr', 'rgb'\], as its tensors are",
            ),
            (
                with_architecture(MMT_CONFIG, vid_bert_params={"num_attention_heads": "4"}),
                "num_attention_heads of the file must be a whole number",
            ),
            (
                with_architecture(MMT_CONFIG, vid_bert_params=[4]),
                "option vid_bert_params of the file must hold further options",
            ),
            (
                with_architecture(MMT_CONFIG, keep_missing_modalities=1),
                "keep_missing_modalities of the file must be true or false; got 1",
            ),
            (
                {**MMT_CONFIG, "loss": {"args": {"margin": -1}}},
                "margin of the file must be a finite number >= 0; got -1",
            ),
        )
    ),
    Refusal("mmt", "a multiple of 64; got 65", add={"txt_bert.embeddings.word_embeddings.weight": torch.zeros(10, 65)}),
    Refusal(
        "mmt",
        "experts of the file must be among .*; got scent",
        add={"video_dim_reduce.scent.fc.weight": torch.zeros(8, 9)},
    ),
    *(
        Refusal("scan", message, {**SCAN_OPTIONS, **options})
        for options, message in (
            ({"cross_attn": "both"}, "option cross_attn of the file must be one of t2i, i2t; got 'both'"),
            ({"agg_func": ["Mean"]}, "option agg_func of the file must be text"),
            ({"lambda_softmax": float("nan")}, "option lambda_softmax of the file must be a finite number"),
            ({"lambda_softmax": 0}, "lambda_softmax must be > 0 and finite; got 0.0"),
            ({"raw_feature_norm": "l1norm"}, "raw_feature_norm of the file must be one of .*no_norm; got 'l1norm'"),
            ({"bi_gru": False}, "option bi_gru of the file must be True, as its tensors are; got False"),
            ({"num_layers": 2}, "option num_layers of the file must be 1, as its tensors are; got 2"),
            ({"embed_size": 1024}, "option embed_size of the file must be 8, as its tensors are; got 1024"),
            ({"no_txtnorm": None}, "option no_txtnorm of the file must be true or false"),
            ({"max_violation": 1}, "option max_violation of the file must be true or false; got 1"),
        )
    ),
    Refusal("scan", "image.fc.weight of the file must not be empty; got 0 x 4", add={"fc.weight": torch.zeros(0, 4)}),
    Refusal("scan", r"missing \['text.rnn.bias_hh_l1'", add={"rnn.weight_ih_l1": torch.zeros(2, 2)}, tower=1),
    Refusal("scan", r"left over \['text.rnn.weight_ih_l2'\]", add={"rnn.weight_ih_l2": torch.zeros(2, 2)}, tower=1),
    *(
        Refusal("sgraf", message, {**release_of("sgraf").options, **options})
        for options, message in (
            ({"module_name": "SAF"}, "option module_name of the file must be 'SGR', as its tensors are; got 'SAF'"),
            ({"sgr_step": 2}, "option sgr_step of the file must be 3, as its tensors are; got 2"),
            ({"sim_dim": 256}, "option sim_dim of the file must be 6, as its tensors are; got 256"),
        )
    ),
    Refusal(
        "sgraf",
        r"left over \['similarity.SGR_module.7.graph_key_w.bias'",
        MARGIN,
        add={"SGR_module.7.graph_key_w.bias": torch.zeros(6)},
        tower=2,
    ),
    Refusal(
        "sgraf",
        r"left over \['similarity.SAF_module.bn.weight'\]",
        add={"SAF_module.bn.weight": torch.zeros(1)},
        tower=2,
    ),
    *(
        Refusal("vse_infty", message, options)
        for options, message in (
            ({"no_imgnorm": "no"}, "option no_imgnorm of the file must be true or false"),
            ({"precomp_enc_type": "backbone"}, "precomp_enc_type of the file must be 'basic', as its tensors are"),
            ({"word_dim": 300}, "option word_dim of the file must be 4, as its tensors are; got 300"),
            ({"input_scale_factor": "2"}, "option input_scale_factor of the file must be a finite number"),
        )
    ),
    Refusal(
        "vse_infty:bert", r"missing \['text.bert.pooler.dense.bias'\]", drop=r"^bert\.pooler\.dense\.bias$", tower=1
    ),
    *(
        Refusal("vsepp:image=resnet18", message, options)
        for options, message in (
            ({"measure": "dot"}, "measure of the file must be cosine or order"),
            ({"finetune": "yes"}, "finetune of the file must be true or false"),
            ({"use_abs": None}, "use_abs of the file must be true or false"),
            ({"cnn_type": "resnet152"}, "cnn_type of the file must be resnet18, as its tensors are; got 'resnet152'"),
            ({"data_name": "f30k_precomp"}, "must name pictures, and not end in _precomp, .*; got 'f30k_precomp'"),
            ({"embed_size": 1024}, "embed_size of the file must be 8, as its tensors are; got 1024"),
            ({"num_layers": 2}, "num_layers of the file must be 1, as its tensors are; got 2"),
            ({"criterion": "infonce"}, "criterion of the file must be triplet, ntxent or ranking; got 'infonce'"),
            ({"criterion": "ntxent", "measure": "order"}, "criterion=ntxent must be cosine; got 'order'"),
        )
    ),
    *(
        Refusal("vsepp:image=linear", message, options)
        for options, message in (
            ({"data_name": "f30k"}, "must name features, and end in _precomp, .*; got 'f30k'"),
            ({"img_dim": 4096}, "img_dim of the file must be 7, as its tensors are; got 4096"),
            ({"vocab_size": 8481}, "vocab_size of the file must be 12, as its tensors are; got 8481"),
        )
    ),
    Refusal(
        "vsepp:image=resnet18",
        r"missing \['image.cnn.layer2.0.bn2.bias'\]",
        drop=r"^cnn\.module\.layer2\.0\.bn2\.bias$",
    ),
    Refusal(
        "vsepp:image=resnet18",
        r"image.cnn.conv1.weight must be \(64, 3, 7, 7\); got \(64, 1, 7, 7\)",
        add={"cnn.module.conv1.weight": torch.zeros(64, 1, 7, 7)},
    ),
    Refusal(
        "vsepp:image=resnet18",
        r"must be one of resnet18, .*; got \(2, 2, 1, 2\) blocks of 2 convolutions",
        drop=r"\.layer3\.1\.",
    ),
    *(
        Refusal("vsrn", message, options)
        for options, message in (
            ({}, "option data_name of the file must be text; got None"),
            ({"data_name": "f30k_precomp", "margin": "0.2"}, "option margin of the file must be a finite number"),
            (
                {"data_name": "f30k_precomp", "max_violation": 1},
                "option max_violation of the file must be true or false",
            ),
            ({"data_name": "f30k_precomp", "margin": -1.0}, "option margin of the file must be >= 0"),
            ({"data_name": "f30k"}, "data_name of the file must end in _precomp, .*; got 'f30k'"),
            ({"data_name": "f30k_precomp", "measure": "l2"}, "measure of the file must be cosine or order; got 'l2'"),
            ({"data_name": "f30k_precomp", "word_dim": 300}, "word_dim of the file must be 4, as its tensors are"),
        )
    ),
    Refusal("xvlm", "option k_test of the file must be a whole number of at least 1; got 'many'", {"k_test": "many"}),
    Refusal("xvlm", "option use_swin of .* must be True; got False", {"max_tokens": 12, "use_swin": False}),
    Refusal(
        "xvlm", "option embed_dim of the file must be 8, as its tensors are; got 9", {"max_tokens": 12, "embed_dim": 9}
    ),
    Refusal("xvlm", "must be a Swin", drop="relative_position_bias_table"),
    Refusal("xvlm", "temp of the file must be > 0; got -1.0", add={"temp": torch.tensor(-1.0)}),
    Refusal(
        "xvlm",
        r"a bias table must have \(2 w - 1\)² rows for windows of w; got 50",
        add={"vision_encoder.layers.0.blocks.0.attn.relative_position_bias_table": torch.zeros(50, 1)},
    ),
    *(
        Refusal("xvlm", rf"left over \['{name}'\]", add={name: torch.zeros(3)})
        for name in ("vision_encoder.head.weight", "text_encoder.pooler.dense.bias")
    ),
]

FOREIGN: list[Refusal] = [
    Refusal("bfan", options=SCAN_OPTIONS),
    *(Refusal("scan", options=options) for options in ({}, {**SCAN_OPTIONS, "focal_type": "equal"}, MARGIN)),
    Refusal("scan", add={"cnn.conv1.weight": torch.zeros(1)}),
    Refusal("sgraf", drop=r"^cap_rnn\.", add={"rnn.weight_ih_l0": torch.zeros(1)}, tower=1),
    Refusal("vse_infty", drop="gpool"),
    Refusal("vsepp", options={"cross_attn": "t2i"}),
    Refusal("vsepp", add={"rnn.bias_hh_l0_reverse": torch.zeros(24)}, tower=1),
    Refusal("vsepp", add={"gpool.linear.weight": torch.zeros(8, 7)}),
    Refusal("vsrn", drop="Rs_GCN"),
    Refusal("xvlm", drop="crossattention"),
]
