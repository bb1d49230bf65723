"""COCO's images have numbers, which data sets write as they are or as names of files: one is found by the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lossscope.core.sides import plural
from lossscope.errors import InputError

_NUMBER = re.compile(r"[0-9]{1,12}|(?:COCO_(?:train|val|test)20[0-9]{2}_)?[0-9]{12}\.jpg")
_DIGITS = re.compile(r"([0-9]{1,12})(?:\.jpg)?$")


def coco_number(name: str) -> str | None:
    """Return the number of an image, None for what is no name of one.

    >>> coco_number("COCO_val2014_000000391895.jpg"), coco_number("val2017/000000000042.jpg"), coco_number("a.jpg")
    ('391895', '42', None)
    """
    file = name.rpartition("/")[2]
    digits = _DIGITS.search(file) if _NUMBER.fullmatch(file) else None
    return None if digits is None else str(int(digits[1]))


def name_as_split(numbers: Sequence[str], image_ids: Sequence[str], where: str) -> list[str]:
    """Return the ids that a split gives images of some numbers; a number stays where no id of the split is of it.

    Args:
        numbers: of images.
        image_ids: of the split.
        where: the file that has the numbers, for messages.

    Raises:
        InputError: two images of the split have one of the numbers.
    """
    wanted, known = set(numbers), dict[str, str]()
    for image in image_ids:
        number = coco_number(image)
        if number in wanted and known.setdefault(number, image) != image:
            raise InputError(
                f"image {number} of {where} must be one image of this split; it may be {known[number]!r} or {image!r}"
            )
    return [known.get(number, number) for number in numbers]


def require_ids(ids: Sequence[str], name: str, where: str) -> None:
    """Raise InputError where the ids of a side are the numbers of its rows: its data set gives none of COCO's.

    Args:
        ids: of one side of a split.
        name: of the side: image.
        where: the file that names COCO's ids, for the message.
    """
    if all(value == str(row) for row, value in enumerate(ids)):
        raise InputError(
            f"{where} names {plural(name)} by COCO's numbers; this split has no ids of COCO. Take data with "
            "them (karpathy, coco), or give the dump ids"
        )
