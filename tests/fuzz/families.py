"""The mutators of each family of files; the mutators of bytes damage every file too, but no folder."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol, cast

from numpy.random import Generator

BYTES = ("flip_bits", "insert_bytes", "delete_bytes", "overwrite_block", "swap_blocks", "truncate", "append_bytes")
"""Mutators that know no format; a checksum must notice their damage."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "arrow": (),
    "csv": ("csv_cells", "csv_rows", "text_lines", "text_encoding"),
    "folder": ("folder_entries",),
    "hdf5": ("hdf5_datasets",),
    "json": ("json_values", "json_keys", "plugin_specs", "text_encoding"),
    "jsonl": ("text_lines", "json_lines", "text_encoding"),
    "npy": ("npy_header", "npy_content"),
    "npz": ("zip_members", "npz_arrays"),
    "parquet": ("parquet_columns",),
    "picture": (),
    "pickle": ("pickle_opcodes", "pickle_content"),
    "records": (),
    "safetensors": ("safetensors_header", "safetensors_content"),
    "tar": ("tar_members",),
    "text": ("text_lines", "text_encoding"),
    "toml": ("toml_values", "toml_keys", "plugin_specs", "text_encoding"),
    "torch_zip": ("zip_members", "torch_content", "torch_pickle", "torch_plugins"),
    "torch_legacy": ("pickle_opcodes", "torch_content"),
    "torchscript": ("zip_members", "torch_pickle"),
}


class Mutator(Protocol):
    """A module of tests/fuzz/mutators."""

    def mutate(self, path: Path, rng: Generator) -> str:
        """Damage the file or folder in place and return what was done; raises Inapplicable where it cannot."""
        ...


class Inapplicable(Exception):
    """A mutator cannot read what it should damage."""


def load_mutator(name: str) -> Mutator:
    """Return a mutator by the name of its file."""
    return cast("Mutator", importlib.import_module(f"tests.fuzz.mutators.{name}"))


def mutators_of(family: str) -> tuple[str, ...]:
    """Return the names of a family's mutators: four times each of the family's, and each mutator of bytes once."""
    mutators = FAMILIES[family]
    return mutators if family == "folder" else (*BYTES, *mutators * (4 if mutators else 1))
