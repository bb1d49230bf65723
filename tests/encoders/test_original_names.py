"""Do the tensors of each family have the names and shapes of its authors' files, at the sizes that were published?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from lossscope.encoders.base import EncoderSpec
from lossscope.encoders.bfan import BFAN
from lossscope.encoders.ce import CE
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.layers.gpo import GPO
from lossscope.encoders.mmt import MMT
from lossscope.encoders.scan import SCAN
from lossscope.encoders.sgraf import SGRAF
from lossscope.encoders.vse_infty import VSEInfty
from lossscope.encoders.vsepp import VSEPP
from lossscope.encoders.vsrn import VSRN
from lossscope.encoders.xvlm import XVLM
from tests.each import each
from tests.encoders.shapes import (
    Shapes,
    batch_norm,
    below,
    bert_layer,
    bert_tables,
    gru,
    linear,
    norm,
    shapes_of,
)

REGIONS = (36, 2048)
POOLING = {**below("gpool", gru("gru", 32, 32)), "gpool.linear.weight": (1, 32)}


def attention_over_words(rnn: str = "rnn", both_ways: bool = True) -> Shapes:
    """Return the towers of SCAN and of what descends from it."""
    words: Shapes = {"text.embed.weight": (8481, 300)}
    return {**linear("image.fc", 1024, 2048), **words, **gru(f"text.{rnn}", 1024, 300, both_ways)}


def sgraf(module: str) -> Shapes:
    similarity: Shapes = {}
    for side, first in (("v", batch_norm("embedding_local.1", 36)), ("t", {})):
        maps = (
            linear(f"embedding_{kind}.0", n, 1024) for kind, n in (("local", 1024), ("global", 1024), ("common", 1))
        )
        similarity |= below(f"{side}_global_w", first, *maps)
    similarity |= batch_norm("v_global_w.embedding_global.1", 1024) | linear("sim_eval_w", 1, 256)
    similarity |= linear("sim_tranloc_w", 256, 1024) | linear("sim_tranglo_w", 256, 1024)
    if module == "saf":
        similarity |= linear("SAF_module.attn_sim_w", 1, 256) | batch_norm("SAF_module.bn", 1)
    for step in range(3) if module == "sgr" else ():
        maps = (linear(f"{part}_w", 256, 256) for part in ("graph_query", "graph_key", "sim_graph"))
        similarity |= below(f"SGR_module.{step}", *maps)
    return attention_over_words("cap_rnn") | below("similarity", similarity)


def vsrn() -> Shapes:
    block: Shapes = batch_norm("W.1", 2048)
    for part in ("g", "theta", "phi", "W.0"):
        block |= {f"{part}.weight": (2048, 2048, 1), f"{part}.bias": (2048,)}
    image = [linear("fc", 2048, 2048), gru("img_rnn", 2048, 2048, False), batch_norm("bn", 2048)]
    image += [below(f"Rs_GCN_{k}", block) for k in (1, 2, 3, 4)]
    return below("image", *image) | below("text", {"embed.weight": (8481, 300)}, gru("rnn", 2048, 300, False))


def vse_infty() -> Shapes:
    perceptron = [linear("layers.0", 512, 2048), linear("layers.1", 1024, 512)]
    perceptron += [batch_norm("bns.0", 512), batch_norm("bns.1", 1024)]
    image = below("image", linear("fc", 1024, 2048), below("mlp", *perceptron), POOLING)
    return image | below("text", {"embed.weight": (8482, 300)}, gru("rnn", 1024, 300), POOLING)


def vse_infty_of_bert() -> Shapes:
    bert = bert_tables(768, 30522, 512, 2) | linear("pooler.dense", 768, 768)
    for layer in range(12):
        bert |= bert_layer(f"encoder.layer.{layer}", 768, 3072)
    return below("bert", bert) | linear("linear", 1024, 768) | POOLING


MMT_WIDTHS = {"face": 512, "ocr": 300, "rgb": 2048, "s3d": 1024, "scene": 2208, "speech": 300, "vggish": 128}


def mmt() -> Shapes:
    video = bert_tables(512, 0, 32, 19, "layer_norm") | linear("pooler.dense", 512, 512)
    words = bert_tables(768, 28996, 512, 2) | linear("pooler.dense", 768, 768)
    for layer in range(4):
        video |= bert_layer(f"encoder.layer.{layer}", 512, 3072, "layer_norm")
    for layer in range(12):
        words |= bert_layer(f"encoder.layer.{layer}", 768, 3072)
    expected = below("vid_bert", video) | below("txt_bert", words)
    for name, width in MMT_WIDTHS.items():
        expected |= linear(f"video_dim_reduce.{name}.fc", 512, width) | linear(f"moe_fc_txt.{name}", 1, 768)
        gate = (linear("fc", 512, 768), linear("cg.fc", 512, 512), batch_norm("cg.batch_norm", 512))
        expected |= below(f"text_GU.{name}", *gate)
    return expected


CE_WIDTHS = {
    "audio": 128, "face": 512, "i3d.i3d.0": 1024, "imagenet.resnext101_32x48d.0": 2048, "imagenet.senet154.0": 2048,
    "ocr": 300, "r2p1d.r2p1d-ig65m.0": 512, "scene.densenet161.0": 2208, "speech": 300,
}  # fmt: skip


def ce() -> Shapes:
    expected = batch_norm("text_pooling.batch_norm", 29)
    expected |= {"text_pooling.clusters": (768, 29), "text_pooling.clusters2": (1, 768, 28)}
    shared = [batch_norm(str(k), 768) for k in (0, 3)] + [linear(str(k), 768, 768) for k in (2, 5)]
    expected |= below("ce", linear("moe_fc", 9, 21504), linear("g_reason_1", 768, 1536))
    expected |= below("ce.g_reason_shared", *shared)
    for name, width, k in (("ocr", 300, 43), ("audio", 128, 8), ("speech", 300, 19)):
        expected |= {f"pooling.{name}.clusters": (width, k), f"pooling.{name}.clusters2": (1, width, k)}
        expected |= batch_norm(f"pooling.{name}.batch_norm", k)
    for m, width in enumerate((1024, 512, 1024, 2048, 2048, 12900, 512, 2208, 5700)):
        gate = linear("cg.fc", 768, 768) | batch_norm("cg.batch_norm", 768)
        expected |= below("ce", linear(f"video_dim_reduce.{m}.fc", 768, width), linear(f"text_GU.{m}.fc", 768, 21504))
        expected |= below(f"ce.video_GU.{m}", gate, batch_norm("cg.batch_norm2", 768)) | below(f"ce.text_GU.{m}", gate)
    return expected


def swin() -> Shapes:
    """Return the 362 tensors of Swin-B at 384 pixels, buffers included."""
    expected: Shapes = {"patch_embed.proj.weight": (128, 3, 4, 4), "patch_embed.proj.bias": (128,)}
    expected |= norm("patch_embed.norm", 128) | norm("norm", 1024)
    for stage, (depth, windows) in enumerate(zip((2, 2, 18, 2), (64, 16, 4, 1), strict=True)):
        width, heads = 128 << stage, 4 << stage
        for block in range(depth):
            name = f"layers.{stage}.blocks.{block}"
            maps = linear("attn.qkv", 3 * width, width) | linear("attn.proj", width, width)
            maps |= linear("mlp.fc1", 4 * width, width) | linear("mlp.fc2", width, 4 * width)
            expected |= below(name, maps, norm("norm1", width), norm("norm2", width))
            expected[f"{name}.attn.relative_position_bias_table"] = (529, heads)
            expected[f"{name}.attn.relative_position_index"] = (144, 144)
            if block % 2 and stage < 3:
                expected[f"{name}.attn_mask"] = (windows, 144, 144)
        if stage < 3:
            expected[f"layers.{stage}.downsample.reduction.weight"] = (2 * width, 4 * width)
            expected |= norm(f"layers.{stage}.downsample.norm", 4 * width)
    return expected


def xvlm() -> Shapes:
    words = bert_tables(768, 30522, 512, 2)
    for layer in range(12):
        words |= bert_layer(f"encoder.layer.{layer}", 768, 3072, context=1024 if layer >= 6 else 0)
    heads = linear("itm_head.0", 1536, 768) | norm("itm_head.1", 1536) | linear("itm_head.3", 2, 1536)
    heads |= linear("vision_proj", 256, 1024) | linear("text_proj", 256, 768) | {"temp": ()}
    return below("vision_encoder", swin()) | below("text_encoder", words) | heads


# spec, shape of an item, size of the vocabulary, expected shapes; tower -> number of tensors, and of millions
Family = tuple[EncoderSpec, Any, int, Callable[[], Shapes], Mapping[str, tuple[int, float]]]
FAMILIES: dict[str, Family] = {
    "scan": (SCAN(), REGIONS, 8481, attention_over_words, {"text.": (9, 10.69)}),
    "scan one way": (SCAN(bi_gru=False), REGIONS, 8481, lambda: attention_over_words(both_ways=False), {}),
    "bfan": (BFAN(), REGIONS, 8481, attention_over_words, {}),
    "sgr": (SGRAF(module="sgr"), REGIONS, 8481, lambda: sgraf("sgr"), {"similarity.": (46, 5.32)}),
    "saf": (SGRAF(module="saf"), REGIONS, 8481, lambda: sgraf("saf"), {"similarity.": (35, 4.73)}),
    "vsrn": (VSRN(), REGIONS, 8481, vsrn, {"image.": (63, 96.56), "text.": (5, 16.98)}),
    "vse_infty": (VSEInfty(text="bigru"), REGIONS, 8482, vse_infty, {"image.": (25, 3.69), "text.": (18, 10.7)}),
    "mmt": (MMT(), item_shape_of(MMT_WIDTHS, 30), 28996, mmt, {"": (360, 133.36)}),
    "ce": (CE(), item_shape_of(CE_WIDTHS, 49), 0, ce, {"": (253, 183.49)}),
    "xvlm": (XVLM(), (3, 384, 384), 30522, xvlm, {"vision_encoder.": (362, 89.78), "text_encoder.": (257, 125.43)}),
}  # fmt: skip


@each("family", FAMILIES)
def test_names_and_shapes_are_the_originals(family: str) -> None:
    spec, item_shape, words, expected, counts = FAMILIES[family]
    found = shapes_of(spec, item_shape, words, buffers=family == "xvlm")
    assert found == expected()
    for tower, (tensors, millions) in counts.items():
        shapes = [shape for name, shape in found.items() if name.startswith(tower)]
        assert (len(shapes), round(sum(map(prod, shapes)) / 1e6, 2)) == (tensors, millions), tower


def test_those_of_parts_and_variants_are_the_originals() -> None:
    norm_of_weights = shapes_of(SCAN(weight_norm=True), REGIONS, 8481, "image.")
    assert norm_of_weights == {"fc.bias": (1024,), "fc.weight_g": (), "fc.weight_v": (1024, 2048)}
    assert {name: tuple(tensor.shape) for name, tensor in GPO().state_dict().items()} == {
        **gru("gru", 32, 32), "linear.weight": (1, 32)
    }  # fmt: skip
    bare = shapes_of(VSRN(final_bn=False), REGIONS, 8481, "image.")
    assert (len(bare), round(sum(map(prod, bare.values())) / 1e6, 2)) == (58, 96.55)
    bert = shapes_of(VSEInfty(), REGIONS, 30522, "text.")
    assert bert == vse_infty_of_bert()
    assert (len(bert), round(sum(map(prod, bert.values())) / 1e6, 1)) == (210, 110.3)
    assert shapes_of(VSEPP(image="linear", dim=1024, words=300), (4096,), 10, "image.") == linear("fc", 1024, 4096)


def test_those_of_grids_are_the_originals_each_once() -> None:
    image = shapes_of(VSEInfty(image="grid", text="bigru", backbone="resnext101"), (3, 512, 512), 10, "image.")
    head = below("image_encoder", linear("fc", 1024, 2048), POOLING)
    assert {name: shape for name, shape in image.items() if not name.startswith("backbone.resnet.")} == head
    assert image["backbone.resnet.layer4.0.conv2.weight"] == (2048, 64, 3, 3)
    assert 2 * (len(image) - len(head)) + 2 + len(head) == 1261  # the file holds the backbone twice, and an fc


@each("network, tensors", [("resnet50", 320), ("resnet152", 932)])
def test_those_of_networks_of_pictures_are_the_originals(network: Any, tensors: int) -> None:
    found = shapes_of(VSEPP(image=network, dim=1024, words=300), (3, 256, 256), 8481)
    text = {name: shape for name, shape in found.items() if name.startswith("text.")}
    assert text == {"text.embed.weight": (8481, 300), **gru("text.rnn", 1024, 300, False)}
    assert len(found) - len(text) == tensors
    assert found["image.cnn.conv1.weight"] == (64, 3, 7, 7)
    assert found["image.cnn.layer1.0.downsample.1.running_var"] == (256,)
    assert found["image.cnn.layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert (found["image.fc.weight"], found["image.fc.bias"]) == ((1024, 2048), (1024,))
