"""Tiny files of judgements in every format, of three images with two captions each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

IMAGES = [f"COCO_val2014_{number:012d}.jpg" for number in (42, 73, 391895)]
CAPTIONS = ["901", "17", "30", "4", "25", "66"]  # two of each image, in its order

EXPERTS = (
    f"{IMAGES[0]}\t{IMAGES[1]}#1\t3\t3\t3\n{IMAGES[0]}\t{IMAGES[2]}#0\t2\t3\t3\n{IMAGES[2]}\t{IMAGES[2]}#1\t4\t4\t4\n"
)
CROWD = f"{IMAGES[1]}\t{IMAGES[0]}#0\t0.666666666666667\t2\t1\n{IMAGES[1]}\t{IMAGES[2]}#1\t0\t0\t3\n"
CXC = (
    "caption,image,agg_score,sampling_method\n"
    f"COCO_val2014:sentid:4,{IMAGES[0]},3.0,c2i_intrasim\n"
    f"COCO_val2014:sentid:25,{IMAGES[0]},2.99,c2i_intrasim\n"
    f"COCO_val2014:sentid:901,{IMAGES[0]},1.5,c2i_original\n"
)
IMAGE_TO_CAPTION = '{"42": [901, 4], "391895": [25, 66, 17]}'
CAPTION_TO_IMAGE = '{"30": [73, 391895]}'
PAIRS = f"image,caption,positive,who\n{IMAGES[0]},4,yes,me\n{IMAGES[2]},901,0,me\n"

FILES: Mapping[str, str] = {
    "ExpertAnnotations.txt": EXPERTS,
    "CrowdFlowerAnnotations.txt": CROWD,
    "sits_test.csv": CXC,
    "eccv_image_to_caption.json": IMAGE_TO_CAPTION,
    "eccv_caption_to_image.json": CAPTION_TO_IMAGE,
    "pairs.csv": PAIRS,
}


def write(folder: Path) -> None:
    """Write one file of each format."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
