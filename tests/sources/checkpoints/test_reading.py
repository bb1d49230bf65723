"""How does lossscope read pictures for a released model: what does it fill in, and what does it name?"""

from __future__ import annotations

from lossscope.registry import build
from lossscope.sources.checkpoints.reading import complete_data
from lossscope.spec import Spec
from tests.each import each

CLIP = {"fit": "short-side", "resample": "bicubic", "size": "336"}
NAMED = "pictures are read with {}, as the model's authors read them"
WARNING = "WARNING: pictures are read with {}, as the data set says; the model's authors read them with {}"


@each("data, filled, notices", [
    ("karpathy:root=a,name=b", CLIP, [NAMED.format("fit=short-side, resample=bicubic, size=336")]),
    ("coco:root=a,resample=bicubic", {"fit": "short-side", "size": "336"}, [
        NAMED.format("fit=short-side, size=336")
    ]),
    ("xvlm:root=a,name=b,size=336", {"fit": "short-side"}, [NAMED.format("fit=short-side")]),
    ("webdataset:shards=a,fit=short-side,resample=bicubic,size=336", {}, []),
    ("webdataset:shards=a,fit=short_side,resample=bicubic,size=336", {}, []),
    ("karpathy:root=a,name=b,fit=squeeze,resample=bilinear,size=336", {}, [
        WARNING.format("fit=squeeze, resample=bilinear", "fit=short-side, resample=bicubic")
    ]),
    ("karpathy:root=a,name=b,crop=false,resample=bicubic,size=224", {}, [
        WARNING.format("fit=squeeze", "fit=short-side")
    ]),
    ("scenes", {"size": "336"}, [NAMED.format("size=336")]),
    ("precomp:root=a", {}, []),
    ("", {}, []),
])  # fmt: skip
def test_only_what_is_unsaid_is_filled_in(data: str, filled: dict[str, str], notices: list[str]) -> None:
    completed, got = complete_data(data, CLIP)
    assert list(got) == notices
    if data:
        assert Spec.parse(completed).values == {**Spec.parse(data).values, **filled}


def test_when_pictures_become_rgb_is_filled_in() -> None:
    for name, needed in (("karpathy", "root=a,name=b"), ("coco", "root=a"), ("webdataset", "shards=a")):
        completed, _ = complete_data(f"{name}:{needed}", {"rgb": "last"})
        assert completed == f"{name}:{needed},rgb=last"
        assert complete_data(f"{name}:{needed}", {"rgb": "first"}) == (f"{name}:{needed}", ())
    assert complete_data("coco:root=a,rgb=first", {"rgb": "last"})[1] == (WARNING.format("rgb=first", "rgb=last"),)


def test_a_model_that_says_nothing_changes_nothing() -> None:
    assert complete_data("karpathy:root=a,name=b", {}) == ("karpathy:root=a,name=b", ())


def test_a_default_that_is_right_is_not_said() -> None:
    reading = {"fit": "squeeze", "resample": "bicubic", "size": "384"}
    assert complete_data("xvlm:root=a,name=b", reading) == ("xvlm:root=a,name=b", ())


def test_specs_of_earlier_checkpoints_keep_their_meaning() -> None:
    for name in ("karpathy", "coco", "webdataset"):
        needed = {"karpathy": "root=a,name=b", "coco": "root=a", "webdataset": "shards=a"}[name]
        assert build("datasets", f"{name}:{needed},size=224,crop=true,on_error=raise,resample=bilinear").fit is None
