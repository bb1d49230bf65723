"""How long does a command take that has little to do? A new process of each, against a process that imports torch.

CPU time of the whole process on one thread, start and end of Python included; embeddings are in the cache, modules
compiled. Medians, in turns with `import torch`, whose ratio is 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

from measuring import machine, table

COMMANDS = ("cocos tiny", "probe tiny", "eval tiny", "doctor tiny", "check ntxent", "list probes", "--help")
TORCH, PANDAS = "import torch", "import torch, pandas"


def main() -> None:
    """Print the times and their ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=11)
    turns = parser.parse_args().turns
    lines = {imports: [sys.executable, "-c", imports] for imports in (TORCH, PANDAS)}
    for typed in COMMANDS:
        lines[f"lossscope {typed}"] = [sys.executable, "-P", "-m", "lossscope_cli", *typed.split()]
    times: dict[str, list[float]] = {name: [] for name in lines}
    for turn in range(turns + 1):
        for name, words in lines.items():
            seconds = cpu_seconds(words)
            if turn:  # the first turn compiles modules and fills the cache of embeddings
                times[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    rows = [[name, f"{median:.2f} s", f"{median / medians[TORCH]:.2f}"] for name, median in medians.items()]
    print(f"{machine()}\n\n{table(['process', 'CPU time', 'to import torch'], rows)}")


def cpu_seconds(words: list[str]) -> float:
    """Return the CPU time of a process and its children."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment["OMP_NUM_THREADS"] = "1"  # waiting threads spin, which costs CPU time
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
