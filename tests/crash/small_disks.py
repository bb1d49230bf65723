"""Make a disk too small for what a command writes: a tmpfs, where this process may mount one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from .processes import Setting


@contextlib.contextmanager
def small_disk(setting: Setting, share: float) -> Iterator[None]:
    """Make `out` a disk with room for a share of what the command writes; the rest of it comes at the end."""
    out = setting.folder / "out"
    kept = setting.folder / "kept"
    out.rename(kept)
    out.mkdir()
    inputs = sum(path.stat().st_blocks * 512 + 4096 for path in kept.rglob("*"))
    size = inputs + int(share * setting.bytes_written) + 8192
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(out)], check=True)
    try:
        shutil.copytree(kept, out, dirs_exist_ok=True)
        yield
        shutil.rmtree(kept)
        shutil.copytree(out, kept)
    finally:
        subprocess.run(["umount", "--lazy", str(out)], check=True)
    out.rmdir()
    kept.rename(out)


def can_mount() -> bool:
    """May this process make a small disk?"""
    return os.geteuid() == 0 and shutil.which("mount") is not None and _mounts()


def _mounts() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return done.returncode == 0
