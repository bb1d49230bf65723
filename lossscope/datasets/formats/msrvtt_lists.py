"""MSR-VTT's captions and official lists: which video is in which split, with which of its captions."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import expect, member, read_json, shorten
from lossscope.io.reading import reading

from .feature_rows import read_lines
from .mult_h5 import MultH5

Lists = Literal["1k-a", "1k-b", "full"]
CaptionPairs = tuple[tuple[str, str], ...]  # (caption id, caption)
_FILES = {"1k-a": "jsfusion", "1k-b": "miech", "full": "full"}
_SPLITS = {"train": "train", "validate": "val", "val": "val", "test": "test"}
_CSV, _TEST_CAPTIONS = "MSRVTT_JSFUSION_test.csv", "jsfusion_val_caption_idx.json"


@dataclass(frozen=True)
class Annotations:
    """The captions of all videos, and the split of a video where the files state it."""

    captions: Mapping[str, CaptionPairs]  # video -> (id, caption) pairs, ids `VIDEO#K`
    splits: Mapping[str, str]  # video -> train, val or test; empty where not stated

    @classmethod
    def read(cls, root: Path, pattern: str) -> Annotations:
        """Read all files of root that match the pattern: Microsoft's videodatainfo, or converted raw captions.

        Raises InputError when there is none, and naming file and record when one is malformed.
        """
        files = sorted(root.glob(pattern))
        if not files:
            raise InputError(f"annotations must be files like {root / pattern}; got none: unpack them there")
        texts: dict[str, list[str]] = {}
        splits: dict[str, str] = {}
        for file in files:
            document = read_json(file)
            splits |= _read_splits(document, str(file))
            for row, record in enumerate(member(document, "sentences", list, str(file))):
                where = f"sentence {row} of {file}"
                text = member(record, "caption", str, where).strip()
                texts.setdefault(member(record, "video_id", str, where), []).append(text)
        return cls(_number_captions(texts), splits)

    @classmethod
    def from_h5(cls, files: MultH5) -> Annotations:
        """Read the captions in MMT's files, which do not state splits."""
        return cls(_number_captions(files.captions()), {})


@dataclass(frozen=True)
class OfficialLists:
    """The official lists in a folder.

    - full: `{split}_list_full.txt` (CE) or `{split}_list.txt` (MMT), or the splits that the annotations state.
    - 1k-a: MSRVTT_JSFUSION_test.csv with its own captions, or `val_list_jsfusion.txt` with
      `jsfusion_val_caption_idx.json`; train is `train_list_jsfusion.txt`, or every other video.
    - 1k-b: `train_list_miech.txt` and `val_list_miech.txt` (CE) or `test_list_miech.txt` (MMT), the latter with the
      first caption of each video.
    """

    root: Path  # the folder
    lists: Lists
    n_val: int  # training videos taken as val of 1k-a and 1k-b, which have none; 0: val is the test list
    annotations: Annotations

    def members(self, split: str) -> dict[str, CaptionPairs]:
        """Return video -> captions of a split.

        Raises InputError when a list is missing, or has videos without captions.
        """
        if self.lists == "full":
            return self._with_captions(self._full(split))
        if split == "test" or (split == "val" and not self.n_val):
            return self._test()
        train = self._train()
        if self.n_val >= len(train):
            raise InputError(f"msrvtt:held must leave training videos; got {self.n_val} of {len(train)}")
        val = set(sorted(train, key=fingerprint_of)[: self.n_val])
        return self._with_captions([video for video in train if (video in val) == (split == "val")])

    def _full(self, split: str) -> list[str]:
        file = self._list(split)
        if file.is_file():
            return _read_ids(file)
        if not self.annotations.splits:
            raise InputError(f"list of {split} must be {file}, as the annotations state no splits; got no such file")
        return [video for video, stated in self.annotations.splits.items() if stated == split]

    def _train(self) -> list[str]:
        file = self._list("train")
        if self.lists == "1k-b" or file.is_file():
            return _read_ids(file)
        test = self._test()
        return [video for video in self.annotations.captions if video not in test]

    def _test(self) -> dict[str, CaptionPairs]:
        if self.lists == "1k-b":
            return {video: pairs[:1] for video, pairs in self._with_captions(_read_ids(self._list("val"))).items()}
        if (self.root / _CSV).is_file():
            return _read_csv(self.root / _CSV, self.annotations.captions)
        captions = self._with_captions(_read_ids(self._list("val")))
        document = read_json(self.root / _TEST_CAPTIONS)
        numbers = {video: member(document, video, int, str(self.root / _TEST_CAPTIONS)) for video in captions}
        wrong = next((video for video, k in numbers.items() if not 0 <= k < len(captions[video])), None)
        if wrong is not None:
            got = f"{numbers[wrong]} of {wrong}, which has {len(captions[wrong])}"
            raise InputError(f"captions of {_TEST_CAPTIONS} must be among those of the video; got {got}")
        return {video: (captions[video][k],) for video, k in numbers.items()}

    def _list(self, split: str) -> Path:
        """Return the list of a split under CE's name, or under MMT's where only that exists."""
        file = self.root / f"{split}_list_{_FILES[self.lists]}.txt"
        by_mmt = {"full": f"{split}_list.txt", "1k-b": "test_list_miech.txt" if split == "val" else file.name}
        other = self.root / by_mmt.get(self.lists, file.name)
        return other if other.is_file() and not file.is_file() else file

    def _with_captions(self, videos: Sequence[str]) -> dict[str, CaptionPairs]:
        missing = [video for video in videos if video not in self.annotations.captions]
        if missing:
            got = f"none for {missing[0]!r} ({len(missing)} of them)"
            raise InputError(f"videos of a list must have captions; got {got}")
        return {video: self.annotations.captions[video] for video in videos}


def _read_splits(document: Mapping[str, object], file: str) -> dict[str, str]:
    """Return video -> train, val or test from the list `videos` of a file, where it has one."""
    splits: dict[str, str] = {}
    for row, record in enumerate(expect(document.get("videos", []), list, f"'videos' of {file}")):
        where = f"video {row} of {file}"
        split = member(record, "split", str, where)
        if split not in _SPLITS:
            raise InputError(f"'split' of {where} must be one of {', '.join(_SPLITS)}; got {split!r}")
        splits[member(record, "video_id", str, where)] = _SPLITS[split]
    return splits


def _number_captions(texts: Mapping[str, Sequence[str]]) -> dict[str, CaptionPairs]:
    return {video: tuple((f"{video}#{k}", text) for k, text in enumerate(rows)) for video, rows in texts.items()}


def _read_ids(file: Path) -> list[str]:
    ids = [line for line in read_lines(file) if line]
    if not ids or len(set(ids)) < len(ids):
        raise InputError(f"{file} must list videos, each once; got {len(ids)}, {len(ids) - len(set(ids))} repeated")
    return ids


def _read_csv(file: Path, captions: Mapping[str, CaptionPairs]) -> dict[str, CaptionPairs]:
    """Read video -> its one caption, with the id of the same text among the annotations, else `VIDEO#csv`."""
    test: dict[str, CaptionPairs] = {}
    text_of_file = "\n".join(read_lines(file))
    with reading(file, "a table of semicolons"):
        records = list(csv.DictReader(io.StringIO(text_of_file), delimiter=";"))
    for row, record in enumerate(records, 2):
        video, text = record.get("video_id"), record.get("sentence")
        if not video or not text or video in test or None in record:
            form = "key;vid_key;video_id;sentence, of a new video"
            raise InputError(f"line {row} of {file} must be {form}; got {shorten(list(record.values()))}")
        same = next((id for id, other in captions.get(video, ()) if other == text), f"{video}#csv")
        test[video] = ((same, text),)
    if not test:
        raise InputError(f"{file} must list videos; got none")
    return test
