"""The tables of a run, as --resume continues them."""

from __future__ import annotations

from tests.fuzz.resuming import copy_stopped, resume_and_read

FILES = {"run/*.csv": "csv"}
CHECKSUMMED = ()
SHARE = 0.4  # of the cases of other kinds: each trains

make, read = copy_stopped, resume_and_read
