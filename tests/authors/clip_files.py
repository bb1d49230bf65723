"""Pictures, captions and byte pairs for the known answers of CLIP and open_clip, as their files hold them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.authors.rule import Floats, write_pictures

SIDES = [(90, 64), (64, 101), (77, 131), (133, 70), (64, 64), (97, 65), (65, 94), (201, 83)]
"""Width and height of each picture; the offset of the middle is a whole number, a half up and a half down."""
PER_PICTURE = 3
CAPTIONS = [
    "A man's dog isn't running; it's RESTING, they'll say!",
    "Two t-shirts & a well-known \"sign\" (1,234 km).",
    "caf\u00e9 na\u00efve \u201cquoted\u201d \u2014 d\u2019\u00e9t\u00e9",
    "fish &amp; chips &lt;b&gt;here&lt;/b&gt; &amp;amp; &EACUTE;",
    "mojibake: caf\u00c3\u00a9 and it\u00e2\u20ac\u2122s broken",
    "\u732b \u3068 \u72ac \U0001f436\U0001f600 in Z\u00fcrich\u2026",
    "  tabs\tand\n new lines \u00a0 and\u3000wide spaces  ",
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u0130stanbul \u2168 \u00bd \ufb01sh",
    "don't 've 'RE 'll 'D o'clock 's 12:30 p.m. #tag @you",
    "a dog the dog the man the dog the man the dog the man the dog the man the dog the man the dog",
    "a red car", "red cars!!!", "the man", "a", "...", "3 dogs", "the-dog", "the_dog", "running dogs", "the man ran",
    "a man and a dog", "the car", "dog", "man, dog, car",
]  # fmt: skip
MERGES = [
    "a n", "m an</w>", "d o", "do g</w>", "t h", "th e</w>", "r e", "re d</w>", "c a", "ca r</w>", "a n</w>",
    "r u", "ru n", "n i", "ni n", "n g</w>", "i n", "in g</w>", "' s</w>", "m an", "! !", "!! !</w>", ". .",
    "Ã ©", "Ã ©</w>", "â Ģ", "1 2", "e r</w>", "s t", "st an",
]  # fmt: skip
VOCABULARY = 2 * 256 + len(MERGES) + 2


ODD_SIDE = 24  # of pictures of other modes, after they are resized
SPECIAL = [
    "a <|endoftext|> dog", "wow!<|endoftext|> the <|startoftext|>dog", "<|ENDOFTEXT|><|endoftext|>", "red<|endoftext|>",
    "a <end_of_text> dog", "the!<end_of_text>", "<start_of_text> man <end_of_text><end_of_text>", "'<|endoftext|>",
    "a dog <|endoftext|> the dog the man the dog the man the dog the man the dog the man the dog the man",
]  # fmt: skip
"""Captions that hold the special words of OpenAI's tokeniser or of open_clip's."""


def write_odd_pictures(folder: Path) -> list[Path]:
    """Write pictures in modes other than RGB, which the authors resize in their own mode."""
    random = np.random.RandomState(7)
    pixels = random.randint(0, 256, (81, 117, 4)).astype(np.uint8)
    palette = Image.fromarray(pixels[..., 0] % 16)
    palette.putpalette(random.randint(0, 256, 48).tolist())
    transparent = palette.copy()
    transparent.info["transparency"] = 3
    pictures = {
        "palette.png": palette, "transparent.png": transparent, "bit.png": Image.fromarray(pixels[..., 0] > 128),
        "grey.png": Image.fromarray(pixels[..., 0]), "alpha.png": Image.fromarray(pixels),
        "grey_alpha.png": Image.frombytes("LA", (117, 81), pixels[..., :2].tobytes()),
        "ink.tif": Image.frombytes("CMYK", (117, 81), pixels.tobytes()),
    }  # fmt: skip
    for name, picture in pictures.items():
        picture.save(folder / name)
    return [folder / name for name in pictures]


def write_merges(path: Path) -> Path:
    """Write the byte pairs as the authors pack theirs."""
    path.write_bytes(gzip.compress("\n".join(["#version", *MERGES]).encode()))
    return path


def write_data(folder: Path) -> str:
    """Write pictures and captions in the layout of Karpathy's splits, and return the spec that says nothing else."""
    folder.mkdir(exist_ok=True)
    (folder / "images").mkdir()
    files = write_pictures(folder / "images", SIDES)
    rows = [CAPTIONS[PER_PICTURE * k : PER_PICTURE * (k + 1)] for k in range(len(files))]
    images = [
        {"filename": file.name, "split": "test", "sentences": [{"raw": text} for text in texts]}
        for file, texts in zip(files, rows, strict=True)
    ]
    (folder / "dataset_tiny.json").write_text(json.dumps({"images": images}), encoding="utf-8")
    return f"karpathy:root={folder},name=tiny"


def sorted_recalls(images: Floats, captions: Floats) -> dict[str, float]:
    """Return R@1 and R@5 in percent in both directions, by sorting each row of S."""
    S = images @ captions.T
    picture = np.arange(len(captions)) // PER_PICTURE
    found = {
        "i2t": [picture[np.argsort(-row, kind="stable")] == k for k, row in enumerate(S)],
        "t2i": [np.argsort(-row, kind="stable") == picture[j] for j, row in enumerate(S.T)],
    }
    return {
        f"{direction} R@{k}": 100 * float(np.mean([row[:k].any() for row in rows]))
        for direction, rows in found.items()
        for k in (1, 5)
    }
