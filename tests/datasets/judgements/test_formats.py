"""Are files of judgements read in every format, and is a fault refused by its line?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.datasets.judgements.any_format import read_judgements
from lossscope.datasets.judgements.base import Judgements
from lossscope.datasets.judgements.coco_ids import name_as_split, require_ids
from lossscope.errors import InputError
from tests.each import each

from . import judged_files as files
from .judged_files import CAPTIONS, IMAGES

Triple = tuple[str, str, bool]


def read(folder: Path, name: str, text: str, sides: Sides | None = None) -> Judgements:
    (folder / name).write_bytes(text.encode())
    return read_judgements(folder / name, sides or Sides())


def triples(judged: Judgements) -> list[Triple]:
    return list(zip(judged.first, judged.second, judged.positive, strict=True))


def test_experts_agree_where_their_mean_is_at_least_three(tmp_path: Path) -> None:
    judged = read(tmp_path, "ExpertAnnotations.txt", files.EXPERTS)
    assert triples(judged) == [
        (IMAGES[0], f"{IMAGES[1]}#1", True),
        (IMAGES[0], f"{IMAGES[2]}#0", False),  # 8 / 3
        (IMAGES[2], f"{IMAGES[2]}#1", True),
    ]
    assert judged.lines == [1, 2, 3]
    assert judged.queries == "both"


def test_a_crowd_agrees_by_majority_and_not_in_a_tie(tmp_path: Path) -> None:
    text = files.CROWD + f"{IMAGES[0]}\t{IMAGES[1]}#0\t0.5\t2\t2\r\n\n{IMAGES[0]}\t{IMAGES[0]}#0\t1\t3\t0\n"
    judged = read(tmp_path, "crowd.tsv", text)
    assert list(judged.positive) == [True, False, False, True]
    assert judged.lines == [1, 2, 3, 5]


def test_a_crowd_that_begins_with_whole_numbers_is_no_file_of_experts(tmp_path: Path) -> None:
    assert list(read(tmp_path, "a.txt", f"{IMAGES[0]}\t{IMAGES[0]}#0\t1\t3\t0\n").positive) == [True]


def test_cxc_counts_a_score_of_three(tmp_path: Path) -> None:
    judged = read(tmp_path, "sits_test.csv", files.CXC)
    assert triples(judged) == [("42", "4", True), ("42", "25", False), ("42", "901", False)]
    assert judged.is_coco
    assert judged.lines == [2, 3, 4]


def test_eccv_caption_lists_positives_of_the_side_that_its_name_says(tmp_path: Path) -> None:
    judged = read(tmp_path, "eccv_image_to_caption.json", files.IMAGE_TO_CAPTION)
    assert triples(judged)[0] == ("42", "901", True)
    assert (len(judged.first), judged.queries) == (5, "first")
    judged = read(tmp_path, "eccv_caption_to_image.json", files.CAPTION_TO_IMAGE)
    assert triples(judged) == [("73", "30", True), ("391895", "30", True)]
    assert judged.queries == "second"


def test_a_csv_file_of_your_own_names_the_sides(tmp_path: Path) -> None:
    judged = read(tmp_path, "mine.csv", files.PAIRS)
    assert triples(judged) == [(IMAGES[0], "4", True), (IMAGES[2], "901", False)]
    assert "'who' are not read" in judged.notices[0]
    judged = read(tmp_path, "mine.csv", "document_id, query_row\nd7,3\n", QUERY_DOCUMENT)
    assert triples(judged) == [("3", "d7", True)]
    assert judged.kinds == ("row", "id")
    assert "no column `positive`" in judged.rule


@each(
    "name, text, says",
    [
        ("a.txt", "a.jpg\tb.jpg\t1\t1\t1\n", r"line 1 of .*a.txt must be an image, a caption's FILE#k and three"),
        ("a.txt", "a.jpg\tb.jpg#1\t1\t1\n", "line 1 of"),
        ("a.txt", files.EXPERTS + "a.jpg\tb.jpg#1\t1\t5\t1\n", r"line 4 of .*three scores of 1\.\.4; got '1 5 1'"),
        ("a.txt", files.CROWD + "a.jpg\tb.jpg#1\t0.9\t1\t2\n", "line 3 of .*share of yes.*got '0.9 1 2'"),
        ("a.txt", "a.jpg\tb.jpg#1\t0\t0\t0\n", "line 1 of .*share of yes"),
        ("a.txt", "a.jpg\tb.jpg#1\tnan\t1\t1\n", "line 1 of .*share of yes"),
        ("a.txt", "", "must have at least one judged pair"),
        ("a.txt", files.EXPERTS + f"{IMAGES[0]}\t{IMAGES[1]}#1\t1\t1\t1\n", "positive in line 1 and none in line 4"),
        ("s.csv", "caption1,caption2,agg_score,m\na,b,1,c\n", "must have the columns caption, image, agg_score; of"),
        ("s.csv", files.CXC.replace("2.99", "5.1"), r"agg_score in line 3 of .*0\.\.5; got '5.1'"),
        ("s.csv", files.CXC.replace("2.99", "nan"), "agg_score in line 3 of"),
        ("s.csv", files.CXC.replace("sentid:25", "25"), "caption in line 3 of"),
        ("s.csv", files.CXC.replace(IMAGES[0], "a.jpg", 1), "image in line 2 of .*a file of COCO.*'a.jpg'"),
        ("positives.json", files.IMAGE_TO_CAPTION, "must have image_to_caption or caption_to_image in its name"),
        ("x_image_to_caption.json", '{"42": 901}', "'42' of .*must be a list; got 901"),
        ("x_image_to_caption.json", '{"42": [true]}', "values at '42' of .*numbers of COCO.*got True"),
        ("x_image_to_caption.json", '{"4²": [1]}', "keys of .*numbers of COCO"),
        ("x_image_to_caption.json", "{}", "must have at least one judged pair"),
        ("m.csv", "image,caption\n", "must have a header and at least one pair"),
        ("m.csv", "picture,caption\na,b\n", "one column that names the image: image, image_id or image_row; got 'pict"),
        ("m.csv", "image,image_row,caption\na,1,b\n", "got image and image_row"),
        ("m.csv", "image,caption, caption\na,1,b\n", "must have different names"),
        ("m.csv", "image,caption,positive\na,b,1\na,c,perhaps\n", "positive in line 3 of .*got 'perhaps'"),
        ("m.csv", "image,caption,positive\na,b,1\na,b,0\n", "positive in line 2 and none in line 3"),
    ],
)
def test_what_is_no_judgement_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, name, text)


def test_one_set_has_no_pairs_of_two_sides(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pairs must be of two sides"):
        read(tmp_path, "m.csv", "item,caption\n1,2\n", Sides("item", None))


def test_images_of_coco_are_found_by_their_numbers() -> None:
    numbers = ["391895", "42", "5"]
    assert name_as_split(numbers, IMAGES, "f.json") == [IMAGES[2], IMAGES[0], "5"]
    assert name_as_split(numbers, ["42", "391895"], "f.json") == ["391895", "42", "5"]
    with pytest.raises(InputError, match=r"image 42 of f.json must be one image"):
        name_as_split(["42"], ["42", "000000000042.jpg"], "f.json")
    with pytest.raises(InputError, match="this split has no ids of COCO"):
        require_ids(["0", "1", "2"], "image", "f.json")
    require_ids(CAPTIONS, "caption", "f.json")
