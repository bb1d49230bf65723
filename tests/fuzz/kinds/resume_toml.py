"""config.toml and probes.toml of a run, as --resume reads them."""

from __future__ import annotations

from tests.fuzz.resuming import copy_stopped, resume_and_read

FILES = {"run/config.toml": "toml", "run/probes.toml": "toml"}
CHECKSUMMED = ()
SHARE = 0.4  # of the cases of other kinds: each trains

make, read = copy_stopped, resume_and_read
