"""figures/doctor.svg: the terminal of README, from a real run: a training with a learning rate of 1, and its doctor.

Run it after the doctor's wording changes; it takes a minute. The picture needs no network and no font of its own.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "figures" / "doctor.svg"
LINES = (
    "lossscope train --data passages --encoder biencoder --objective triplet-sh --lr 1 --epochs 2 --out sick --quiet",
    "lossscope doctor sick --quiet",
)
"""What is typed; --quiet is not shown."""
WIDTH = 106  # columns
CODE = "import sys; sys.argv[0] = 'lossscope'; from lossscope_cli import main; main()"


def terminal(folder: Path) -> Text:
    """Return what a terminal shows: each line after its prompt, and what it prints."""
    shown = Text()
    for line in LINES:
        shown.append("$ ", style="bold green").append(line.removesuffix(" --quiet") + "\n", style="bold")
        command = [sys.executable, "-P", "-c", CODE, *shlex.split(line)[1:]]
        environment = {"COLUMNS": str(WIDTH), "OMP_NUM_THREADS": "1", "PATH": "", "HOME": str(folder)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{line}: {done.stderr}")
        printed = Text(done.stdout)
        printed.highlight_regex(r"(?m)^error  ", "bold red")
        printed.highlight_regex(r"(?m)^warning", "yellow")
        printed.highlight_regex(r"(?m)(?<=^error    )[\w-]+(?=:)", "bold")
        printed.highlight_regex(r"(?m)^ +do:", "green")
        shown.append_text(printed)
    return shown


def svg(text: Text) -> str:
    """Return the text as a picture; the reader's monospaced font is stretched to the columns."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(text, soft_wrap=True)
    drawn = console.export_svg(title="lossscope", unique_id="lossscope")
    drawn = re.sub(r"\s*<!-- Generated.*?-->", "", drawn, flags=re.S)
    drawn = re.sub(r"\s*@font-face \{.*?\}\n", "\n", drawn, flags=re.S)
    drawn = drawn.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def main() -> None:
    """Run the lines in a new folder and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(svg(terminal(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
