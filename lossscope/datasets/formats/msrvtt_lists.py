"""MSR-VTT's captions and official lists: which video belongs where, with which of its captions."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import expect, member, read_json

from .feature_rows import read_lines
from .mult_h5 import MultH5

Lists = Literal["1k-a", "1k-b", "full"]
Told = tuple[tuple[str, str], ...]
_FILES = {"1k-a": "jsfusion", "1k-b": "miech", "full": "full"}
_PARTS = {"train": "train", "validate": "val", "val": "val", "test": "test"}
_CSV, _CHOSEN = "MSRVTT_JSFUSION_test.csv", "jsfusion_val_caption_idx.json"


@dataclass(frozen=True)
class Annotations:
    """told: video -> (id, caption) pairs, ids `VIDEO#K`. parts: video -> train, val or test, where stated."""

    told: Mapping[str, Told]
    parts: Mapping[str, str]

    @classmethod
    def read(cls, root: Path, pattern: str) -> Annotations:
        """All files of root that fit the pattern, Microsoft's videodatainfo or lists converted from raw captions.

        Raises InputError when there is none, or naming file and record of what is malformed.
        """
        files = sorted(root.glob(pattern))
        if not files:
            raise InputError(f"annotations must be files like {root / pattern}; got none: unpack them there")
        texts: dict[str, list[str]] = {}
        parts: dict[str, str] = {}
        for file in files:
            document = read_json(file)
            parts |= _parts(document, str(file))
            for row, record in enumerate(member(document, "sentences", list, str(file))):
                where = f"sentence {row} of {file}"
                text = member(record, "caption", str, where).strip()
                texts.setdefault(member(record, "video_id", str, where), []).append(text)
        return cls(_numbered(texts), parts)

    @classmethod
    def of_h5(cls, tree: MultH5) -> Annotations:
        """The captions inside MMT's own files, which state no parts."""
        return cls(_numbered(tree.captions()), {})


@dataclass(frozen=True)
class Official:
    """The lists of a root. held: training videos put aside as val of 1k-a and 1k-b, which have none; 0: test is val.

    full: `{part}_list_full.txt`, or the parts that the annotations state. 1k-a: MSRVTT_JSFUSION_test.csv with its own
    captions, or `val_list_jsfusion.txt` with `jsfusion_val_caption_idx.json`; train is `train_list_jsfusion.txt`, or
    every other video. 1k-b: `train_list_miech.txt` and `val_list_miech.txt`, the first caption of each.
    """

    root: Path
    lists: Lists
    held: int
    annotations: Annotations

    def members(self, part: str) -> dict[str, Told]:
        """Video -> captions of a part. Raises InputError when a list is missing or names videos without captions."""
        if self.lists == "full":
            return self._told(self._full(part))
        if part == "test" or (part == "val" and not self.held):
            return self._tested()
        train = self._train()
        if self.held >= len(train):
            raise InputError(f"msrvtt:held must leave training videos; got {self.held} of {len(train)}")
        aside = set(sorted(train, key=fingerprint_of)[: self.held])
        return self._told([video for video in train if (video in aside) == (part == "val")])

    def _full(self, part: str) -> list[str]:
        file = self._list(part)
        if file.is_file():
            return _ids(file)
        if not self.annotations.parts:
            raise InputError(f"list of {part} must be {file}, as the annotations state no parts; got no such file")
        return [video for video, stated in self.annotations.parts.items() if stated == part]

    def _train(self) -> list[str]:
        file = self._list("train")
        if self.lists == "1k-b" or file.is_file():
            return _ids(file)
        tested = self._tested()
        return [video for video in self.annotations.told if video not in tested]

    def _tested(self) -> dict[str, Told]:
        if self.lists == "1k-b":
            return {video: told[:1] for video, told in self._told(_ids(self._list("val"))).items()}
        if (self.root / _CSV).is_file():
            return _from_csv(self.root / _CSV, self.annotations.told)
        told = self._told(_ids(self._list("val")))
        chosen = read_json(self.root / _CHOSEN)
        places = {video: member(chosen, video, int, str(self.root / _CHOSEN)) for video in told}
        wrong = next((video for video, k in places.items() if not 0 <= k < len(told[video])), None)
        if wrong is not None:
            got = f"{places[wrong]} of {wrong}, which has {len(told[wrong])}"
            raise InputError(f"captions of {_CHOSEN} must be among those of the video; got {got}")
        return {video: (told[video][k],) for video, k in places.items()}

    def _list(self, part: str) -> Path:
        return self.root / f"{part}_list_{_FILES[self.lists]}.txt"

    def _told(self, videos: Sequence[str]) -> dict[str, Told]:
        bare = [video for video in videos if video not in self.annotations.told]
        if bare:
            raise InputError(f"videos of a list must have captions; got none for {bare[0]!r} ({len(bare)} of them)")
        return {video: self.annotations.told[video] for video in videos}


def _parts(document: Mapping[str, object], file: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for row, record in enumerate(expect(document.get("videos", []), list, f"'videos' of {file}")):
        where = f"video {row} of {file}"
        part = member(record, "split", str, where)
        if part not in _PARTS:
            raise InputError(f"'split' of {where} must be one of {', '.join(_PARTS)}; got {part!r}")
        parts[member(record, "video_id", str, where)] = _PARTS[part]
    return parts


def _numbered(texts: Mapping[str, Sequence[str]]) -> dict[str, Told]:
    return {video: tuple((f"{video}#{k}", text) for k, text in enumerate(said)) for video, said in texts.items()}


def _ids(file: Path) -> list[str]:
    ids = [line for line in read_lines(file) if line]
    if not ids or len(set(ids)) < len(ids):
        raise InputError(f"{file} must list videos, each once; got {len(ids)}, {len(ids) - len(set(ids))} repeated")
    return ids


def _from_csv(file: Path, told: Mapping[str, Told]) -> dict[str, Told]:
    """Video -> its one caption; with the id of the same text among the annotations, else `VIDEO#csv`."""
    found: dict[str, Told] = {}
    rows = csv.DictReader(io.StringIO("\n".join(read_lines(file)).removeprefix("\ufeff")), delimiter=";")
    for row, record in enumerate(rows, 2):
        video, text = record.get("video_id"), record.get("sentence")
        if not video or not text or video in found:
            wanted = "key;vid_key;video_id;sentence, of a new video"
            raise InputError(f"line {row} of {file} must be {wanted}; got {list(record.values())}")
        same = next((id for id, other in told.get(video, ()) if other == text), f"{video}#csv")
        found[video] = ((same, text),)
    if not found:
        raise InputError(f"{file} must list videos; got none")
    return found
