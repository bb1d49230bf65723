"""The last.pt of a run, as --resume reads it."""

from __future__ import annotations

from tests.fuzz.resuming import copy_stopped, resume_and_read

FILES = {"run/checkpoints/last.pt": "torch_zip"}
CHECKSUMMED = ("run/checkpoints/last.pt",)
SHARE = 0.4  # of the cases of other kinds: each trains

make, read = copy_stopped, resume_and_read
