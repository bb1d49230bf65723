"""Margins that no unit vectors reach: of dumps and of logs."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, curve, healthy_dump, log


def of_cosines(size: Size, folder: Path) -> Case:
    return healthy_dump(size, folder, objective="triplet:margin=2.5")


def of_distances(size: Size, folder: Path) -> Case:
    return healthy_dump(size, folder, objective="contrastive:margin=5")


def of_a_log(size: Size, folder: Path) -> Case:
    path = log(folder, loss=curve(size, 4.9, 3.6))
    return Case((), {"log": path, "objective": "triplet-sh:margin=5", "batch_size": size.batch})


SICK = (of_cosines, of_distances, of_a_log)


def healthy(size: Size, folder: Path) -> Case:
    """The same dump with a margin of 0.2."""
    return healthy_dump(size, folder, objective="triplet:margin=0.2")
