"""events.jsonl of a run and the other files of its folder, as --resume finds them."""

from __future__ import annotations

from tests.fuzz.resuming import copy_stopped, resume_and_read

FILES = {"run/events.jsonl": "jsonl", "run": "folder"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: each trains

make, read = copy_stopped, resume_and_read
