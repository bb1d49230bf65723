"""The released files of each family: their contents, and the model, objective and notices that they open as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import ANY_NUMBER
from tests.encoders.examples import CE_WIDTHS, TOWER
from tests.encoders.released.files import (
    Release,
    custom_text_names,
    mmt_towers,
    openai_names,
    pretrained_xvlm_towers,
    split,
    video_content,
    vse_content,
    vse_infty_towers,
    vsepp_towers,
    whole,
    xvlm_towers,
)

SMALL = "dim=8,words=4"
FEATURES = (36, 7)  # regions of the authors' files
ANY_REGIONS = (ANY_NUMBER, 7)  # of models that read any number of regions
NO_NORM = {"no_imgnorm": True, "no_txtnorm": True}
MARGIN = {"margin": 0.2, "max_violation": True}
TRIPLET = "triplet_sh:margin=0.2"
BFAN_OPTIONS = {**MARGIN, "focal_type": "prob", "lambda_softmax": 20}
SCAN_OPTIONS = {
    "cross_attn": "t2i", "agg_func": "Mean", "lambda_softmax": 9.0, "lambda_lse": 6.0, "bi_gru": True,
    "raw_feature_norm": "clipped_l2norm", "no_imgnorm": False, "no_txtnorm": False, **MARGIN,
}  # fmt: skip
CE_CONFIG: dict[str, Any] = {
    "experts": {"modalities": ["i3d.i3d.0", "face", "ocr", "audio"], "face_dim": 512},
    "arch": {
        "type": "CENet",
        "args": {
            "keep_missing_modalities": False, "use_ce": "pairwise", "use_mish": 1, "use_bn_reason": 1,
            "num_g_layers": 3, "num_h_layers": 0, "include_self": 1, "l2renorm": False, "randomise_feats": "",
            "vlad_clusters": {"ocr": 3, "text": 4, "audio": 2}, "ghost_clusters": {"text": 1, "ocr": 1},
        },
    },
    "data_loader": {"args": {"max_tokens": {"ocr": 6, "text": 8, "audio": 4, "speech": 3}}},
    "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.09381161988446174}},
}  # fmt: skip
MMT_WIDTHS = {"face": 5, "ocr": 3, "rgb": 4}
MMT_CONFIG: dict[str, Any] = {
    "experts": {"modalities": ["rgb", "face", "ocr"], "face_dim": 5},
    "arch": {
        "type": "CENet",
        "args": {
            "keep_missing_modalities": True, "txt_agg": "bertftn", "txt_wgh": "emb", "vid_wgh": "none",
            "vid_cont": "bert", "vid_inp": "both", "pos_enc": "tint", "out_tok": "mxp", "l2renorm": False,
            "txt_pro": "gbn",
            "vid_bert_params": {
                "num_attention_heads": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
                "max_position_embeddings": 6, "layer_norm_eps": 1e-12,
            },
        },
    },
    "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.05, "fix_norm": True}},
    "train_sets": [{"args": {"mix": [{"max_text_words": 30, "max_expert_tokens": 7, "temporal_encoding_window": 2}]}}],
}  # fmt: skip


def with_architecture(config: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    """Return a configuration of CE or MMT with other options of the architecture."""
    return {**config, "arch": {"args": {**config["arch"]["args"], **changed}}}


ASSUMED = "has no configuration: assumed are mean and deviation of pixels mean_std=openai"
CLIP_SPEC = "clip:width=16,depth=2,heads={heads},patch=8,dim=12,context=16"
ENDS = {"bos_token_id": 2, "eos_token_id": 3}
CLIP_CONFIG: dict[str, Any] = {
    "text_config": {**TOWER, **ENDS, "pad_token_id": 0, "vocab_size": 12, "max_position_embeddings": 16},
    "vision_config": {**TOWER, "image_size": 16, "patch_size": 8},
    "projection_dim": 12,
}
SIGLIP_CONFIG: dict[str, Any] = {
    "text_config": {**CLIP_CONFIG["text_config"], "pad_token_id": 1, "projection_size": 16},
    "vision_config": CLIP_CONFIG["vision_config"],
}


def inferred_config(activation: str, heads: int = 1, text_heads: int = 1) -> dict[str, Any]:
    """Return the configuration that follows from the shapes of CLIP_CONFIG's model and from what its user states."""
    vision, text = (
        {**CLIP_CONFIG[part], "num_attention_heads": number, "hidden_act": activation}
        for part, number in (("vision_config", heads), ("text_config", text_heads))
    )
    return {"text_config": {**text, "eos_token_id": 2}, "vision_config": vision, "projection_dim": 12}


XVLM_SPEC = (
    "xvlm:embed=32,depths=2/1,window=4,patch=2,width=64,layers=2,fused=1,positions=16,max_tokens=12,dim=8,"
    "itm_loss=true,sep=false,k_test=256"
)
VSE = Release("", FEATURES, TRIPLET, split("image.", "text."), MARGIN, vse_content, epoch=3)
BFAN = replace(
    VSE,
    open_shape=ANY_REGIONS,
    notices=("trained on files of word ids, and it is not known whether they hold <start> and <end>",),
    implied={r"^fc\.weight_v$": "fc.weight"},
)
ONE_WAY = {r"rnn\.weight_ih_l0_reverse$": "rnn.bias_hh_l0_reverse"}
SCAN = replace(
    VSE,
    open_shape=ANY_REGIONS,
    options=SCAN_OPTIONS,
    implied={
        r"^rnn\.weight_ih_l0_reverse$": "option bi_gru of the file must be False",
        r"^fc\.weight_v$": "precomp_enc_type of the file must be 'basic'",
    },
    sizes=r"fc\.weight|embed",
)
SGRAF = replace(
    VSE,
    shape=(5, 7),
    towers=split("image.", "text.", "similarity."),
    options={**MARGIN, "module_name": "SGR", "sgr_step": 3, "sim_dim": 6},
    implied=ONE_WAY,
    sizes=r"^fc\.weight|embed\.weight|sim_tranloc_w\.weight|embedding_local\.1\.running_mean",
)
VSE_INFTY = replace(
    VSE,
    open_shape=ANY_REGIONS,
    towers=vse_infty_towers,
    options={**MARGIN, "precomp_enc_type": "basic", "backbone_source": "detector"},
    sizes=r"^fc\.weight|embed.*\.weight",
)
VSEPP = replace(VSE, shape=(7,), towers=vsepp_towers, family=r"^rnn\.weight_ih_l0$")
TWO_LAYERS = {r"^rnn\.weight_ih_l1$": "rnn.weight_hh_l1"}
VSEPP_SPEC = f"vsepp:image=linear,word_init=0.1,{SMALL}"
VSRN = replace(
    VSE,
    options={**MARGIN, "data_name": "f30k_precomp"},
    open_shape=ANY_REGIONS,
    notices=("do not hold the caption branch",),
    implied={r"^bn\.weight$": "bn.bias"},
)
VSRN_SPEC = "vsrn:dim=8,words=4,blocks=2,region_norm_axis=regions"
CE_RELEASE = Release(
    "ce:dim=6,clusters=audio=2+ocr=3,text_clusters=4,word_dim=7,length=8,rows=audio=4+ocr=6,padded=true",
    item_shape_of(CE_WIDTHS, 6),
    "triplet:margin=0.0938116",
    whole,
    CE_CONFIG,
    video_content,
    vocabulary_size=0,
    epoch=3,
    notices=(r"^data: videos of frames=6, captions as vectors of words \(msrvtt:words=STEM\)$",),
    family=r"^ce\.moe_fc\.weight$",
    sizes=r"clusters|moe_fc|g_reason_1\.weight|dim_reduce\.\d\.fc\.weight",
    implied={r"^pooling\.(\w+)\.clusters2$": r"pooling.\1.batch_norm.bias"},
)
MMT_RELEASE = Release(
    "mmt:dim=8,layers=1,heads=2,ffn=12,positions=6,bert=1x64,window=2,lower=true",
    item_shape_of(MMT_WIDTHS, 7),
    "triplet:margin=0.05",
    mmt_towers,
    MMT_CONFIG,
    video_content,
    epoch=3,
    context_length=30,
    ignored="position_ids",
    sizes=r"_embeddings\.weight|intermediate\.dense\.weight|dim_reduce",
    implied={r"^video_dim_reduce\.(\w+)\.fc\.weight$": r"moe_fc_txt.\1.bias"},
)
CLIP = Release(
    CLIP_SPEC.format(heads=2),
    (3, 16, 16),
    "infonce:tau=0.070004206,learn=false",
    whole,
    CLIP_CONFIG,
    config=CLIP_CONFIG,
    context_length=16,
    family=r"^logit_scale$|vision_model\.embeddings\.class_embedding",
    sizes="logit|class_embedding",  # its sizes are those of config.json
)
XVLM = Release(
    XVLM_SPEC,
    (3, 16, 16),
    "infonce:tau=0.0700000003,learn=false",
    xvlm_towers,
    {"max_tokens": 12, "k_test": 256},
    lambda towers, options: {"model": towers[0], "config": dict(options)},
    context_length=12,
    notices=("score=itm re-ranks the best",),
    buffers=True,
    ignored="position_ids|relative_position_index|attn_mask|bbox_head|cls",
    family=r"crossattention\.self\.key\.weight$",
    sizes=r"patch_embed\.proj\.weight|text_proj\.weight|embeddings\.(word|position)|0\.blocks\.0\.attn\.relative|^temp$",
)

RELEASES: list[Release] = [
    *(
        replace(BFAN, spec=f"bfan:focal={focal},{SMALL}", options={**BFAN_OPTIONS, "focal_type": focal})
        for focal in ("equal", "prob")
    ),
    replace(
        BFAN,
        spec=f"bfan:focal=prob,layers=2,weight_norm=true,no_imgnorm=true,no_txtnorm=true,{SMALL}",
        options={**BFAN_OPTIONS, "num_layers": 2, "precomp_enc_type": "weight_norm", **NO_NORM},
    ),
    *(
        replace(
            CE_RELEASE,
            spec=f"{CE_RELEASE.spec},keep_missing={keep}",
            options=with_architecture(CE_CONFIG, keep_missing_modalities=keep == "true"),
        )
        for keep in ("false", "true")
    ),
    CLIP,
    replace(
        CLIP,
        spec=CLIP_SPEC.format(heads=1),
        options={},
        notices=(ASSUMED,),
        choices={"activation": "gelu", "heads": "1", "text_heads": "1"},
        config=inferred_config("gelu"),
        sizes=r"projection|logit|embedding|\.0\.mlp\.fc1\.weight",
    ),
    replace(
        CLIP,
        spec=CLIP_SPEC.format(heads=1),
        towers=lambda state: (openai_names(state),),
        options={},
        content=lambda towers, options: towers[0],
        config=inferred_config("quick_gelu"),
        ignored="input_resolution|context_length|vocab_size",
        renames=None,
        notices=("the weights are of single precision and used so; OpenAI's clip.load rounds",),
    ),
    replace(
        CLIP,
        spec=CLIP_SPEC.format(heads=4) + ",text_heads=2",
        towers=lambda state: (custom_text_names(state),),
        options={},
        choices={"activation": "quick-gelu", "heads": "4", "text_heads": "2"},
        content=lambda towers, options: {"epoch": 5, "name": "run", "state_dict": towers[0]},
        config=inferred_config("quick_gelu", heads=4, text_heads=2),
        renames=None,
        notices=(ASSUMED,),
        epoch=5,
    ),
    *(
        replace(
            MMT_RELEASE,
            spec=f"{MMT_RELEASE.spec},keep_missing={keep}",
            options=with_architecture(MMT_CONFIG, keep_missing_modalities=keep == "true"),
        )
        for keep in ("false", "true")
    ),
    *(
        replace(SCAN, spec=f"scan:{spec},{SMALL}", options={**SCAN_OPTIONS, **changes}, objective=objective)
        for spec, objective, changes in (
            ("direction=t2i,lambda_softmax=9", TRIPLET, {}),
            (
                "direction=i2t,lambda_softmax=4,pool=lse,lambda_lse=20",
                TRIPLET,
                {"cross_attn": "i2t", "lambda_softmax": 4, "agg_func": "LogSumExp", "lambda_lse": 20},
            ),
            (
                "direction=t2i,lambda_softmax=9,norm=softmax,pool=max,bi_gru=false",
                TRIPLET,
                {"raw_feature_norm": "softmax", "agg_func": "Max", "bi_gru": False},
            ),
            (
                "direction=t2i,lambda_softmax=9,pool=sum,weight_norm=true",
                "triplet:margin=0.1",
                {"agg_func": "Sum", "max_violation": False, "margin": 0.1, "precomp_enc_type": "weight_norm"},
            ),
            (
                "direction=t2i,lambda_softmax=9,layers=2,no_imgnorm=true,no_txtnorm=true",
                TRIPLET,
                {"num_layers": 2, **NO_NORM},
            ),
        )
    ),
    *(
        replace(SGRAF, spec=f"sgraf:{spec},sim_dim=6,{SMALL}", options={**SGRAF.options, **changes})
        for spec, changes in (
            ("module=sgr", {}),
            ("module=saf", {"module_name": "SAF"}),
            ("module=sgr,steps=2", {"sgr_step": 2}),
            ("module=saf,bi_gru=false", {"module_name": "SAF", "bi_gru": False}),
            ("module=sgr,layers=2,no_imgnorm=true,no_txtnorm=true", {"num_layers": 2, **NO_NORM}),
        )
    ),
    Release(
        "siglip",
        (3, 16, 16),
        "siglip:scale=1,bias=0,learn=false",
        whole,
        {**SIGLIP_CONFIG, "tokenizer_config": {"pad_token_id": 1}},
        config=SIGLIP_CONFIG,
        context_length=16,
        family=r"^logit_bias$|^vision_model\.head\.probe$",
        sizes="logit|probe",
    ),
    replace(VSE_INFTY, spec="vse_infty:text=bigru,words=4,bn_ignore_padding=false,dim=8"),
    replace(
        VSE_INFTY,
        spec="vse_infty:text=bigru,words=4,bn_ignore_padding=false,dim=8,layers=2,no_imgnorm=true,no_txtnorm=true",
        options={**VSE_INFTY.options, "num_layers": 2, **NO_NORM},
    ),
    replace(VSE_INFTY, spec="vse_infty:bert=1x64,bn_ignore_padding=false,dim=8", ignored="position_ids"),
    replace(VSEPP, spec=VSEPP_SPEC),
    replace(
        VSEPP, spec=f"{VSEPP_SPEC},measure=order,use_abs=true", options={**MARGIN, "measure": "order", "use_abs": True}
    ),
    replace(VSEPP, spec=f"{VSEPP_SPEC},no_imgnorm=true", options={**MARGIN, "no_imgnorm": True}),
    replace(
        VSEPP,
        spec=f"{VSEPP_SPEC},layers=2",
        options={"data_name": "f30k_precomp", "num_layers": 2, "criterion": "ntxent", "tau": 0.1, **MARGIN},
        objective="ntxent:tau=0.1",
        implied=TWO_LAYERS,
    ),
    replace(
        VSEPP,
        spec=f"vsepp:image=resnet18,word_init=0.1,crop=224,finetune=true,bn_mode=original,{SMALL}",
        shape=(3, 256, 256),
        options={**MARGIN, "finetune": True, "cnn_type": "resnet18"},
        notices=("short side resized to 256; the middle 224 x 224 is read",),
        renames=("cnn.module.", "cnn."),
        slow=True,
    ),
    replace(
        VSEPP,
        spec=f"vsepp:image=resnet18,word_init=0.1,crop=224,bn_mode=ecir,{SMALL}",
        shape=(3, 256, 256),
        options={**MARGIN, "reset_train": True, "data_name": "coco"},
        notices=("short side resized to 256; the middle 224 x 224 is read",),
        renames=("cnn.module.", "cnn."),
        slow=True,
    ),
    *(
        replace(
            VSRN,
            spec=f"{VSRN_SPEC},fc_norm={fc_norm},final_bn={final_bn}",
            options={**VSRN.options, "data_name": data, **more},
            implied={} if data == "f30k_precomp" else VSRN.implied,
        )
        for data, fc_norm, final_bn, more in (
            ("f30k_precomp", "false", "true", {}),
            ("coco_precomp", "true", "true", {"criterion": "triplet"}),
            ("coco_precomp", "true", "false", {}),
        )
    ),
    replace(
        VSRN,
        spec=f"{VSRN_SPEC},measure=order,use_abs=true,no_imgnorm=true,layers=2",
        options={**VSRN.options, "measure": "order", "use_abs": True, "no_imgnorm": True, "num_layers": 2},
        implied=TWO_LAYERS,
    ),
    replace(
        VSRN,
        spec=VSRN_SPEC,
        options={**VSRN.options, "criterion": "ranking", "tau": 0.01, "n_sp": 5},
        objective="smoothap:tau=0.01",
        implied={},
    ),
    *(
        replace(
            XVLM,
            shape=(3, side, side),
            towers=towers,
            options={**XVLM.options, "image_res": side},
            renames=("text_encoder.bert.", "text_encoder.") if towers is pretrained_xvlm_towers else ("", ""),
        )
        for side, towers in product((16, 32), (xvlm_towers, pretrained_xvlm_towers))
    ),
]


def release_of(start: str) -> Release:
    """Return the first release whose spec begins with a text."""
    return next(release for release in RELEASES if release.spec.startswith(start))
