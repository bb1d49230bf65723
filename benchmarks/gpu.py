"""How well is a GPU used: by large batches, the paper's sweep, and `watch` beside a step of CLIP-B/32?

counts and mass: both directions of one batch of B pairs; their rate (2 B² d flop over the time) as a share of the bare
product on tensor cores, in TF32 and in bfloat16. ours: in float32, and with TF32 products; differ: the number of counts
that then differ from float32, since undecided entries are not computed again. sweep: all batches of 128, five
objectives, cheap probes, numbers written to a file. watch: a call beside a step of a CLIP of random weights with AdamW,
autocast to bfloat16. Last, the profile of a batch by torch.profiler. Wall times, medians.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial

import paper_sweep
import tiles
import torch
from measuring import machine, medians, source, synchronize, table
from plain import FIVE
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.live.monitor import LossScope

SPECS = ("ntxent:tau=0.05", "triplet", "triplet-sh")
SHARE, SWEEP, WATCH = 0.6, 2.0, 0.03  # goals: of the product's rate, seconds, of a step
PANEL = 4096  # rows of S in one bare product


class Goals:
    """The goals on a GPU, and whether they were reached."""

    def __init__(self, device: str) -> None:
        self.device, self.rows = device, [("goal", "limit", "measured", "")]

    def add(self, name: str, limit: str, measured: str, reached: bool) -> None:
        """Add a line; a CPU has no goals."""
        answer = ("reached" if reached else "not reached") if self.device != "cpu" else "no goal of a CPU"
        self.rows.append((name, limit, measured, answer))


@contextlib.contextmanager
def tf32(on: bool) -> Iterator[None]:
    """Compute products of float32 in TF32 inside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if on else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def product(images: Tensor, captions: Tensor, on: bool) -> None:
    """Multiply in panels and keep nothing."""
    with tf32(on):
        for rows in torch.split(images, PANEL):
            torch.mm(rows, captions.T)


def counts(case: tiles.Case, on: bool) -> list[Tensor]:
    """Return the counts above 0.01 of all queries in both directions; masses are computed with them."""
    with tf32(on):
        return case.counts()


def large_batch(size: int, width: int, repeats: int, device: str, goals: Goals) -> list[tuple[str, ...]]:
    """Return rows of rates, and add the goal: our best rate beside the slower tensor-core product."""
    embedded = source(size, 1, width, noise=2.0, device=device)
    images, captions = embedded.images, embedded.captions
    assert images is not None and captions is not None
    flop = 2.0 * size * size * width
    halves = images.bfloat16(), captions.bfloat16()
    names = ("product, float32", "product, TF32", "product, bfloat16")
    bare: list[Callable[[], object]] = [
        partial(product, images, captions, False),
        partial(product, images, captions, True),
        partial(product, *halves, False),
    ]
    rows: list[tuple[str, ...]] = []
    for spec in SPECS:
        case = tiles.Case(embedded, spec)
        differ = sum(int((a != b).sum()) for a, b in zip(counts(case, True), counts(case, False), strict=True))
        ours = [partial(counts, case, False), partial(counts, case, True)]
        *products, exact, rounded = medians([*bare, *ours], repeats, device)
        for name, seconds in zip(names, products, strict=True) if spec == SPECS[0] else ():
            rows.append((name, f"{seconds:.4f}", f"{flop / seconds / 1e12:.2f}", "", ""))
        for name, seconds, other in (("float32", exact, ""), ("TF32", rounded, str(differ))):
            share = f"{products[1] / seconds:.2f} / {products[2] / seconds:.2f}"
            rows.append((f"{spec}, {name}", f"{seconds:.4f}", f"{flop / seconds / 1e12:.2f}", share, other))
        shares = [products[1] / exact, products[2] / exact]
        goals.add(
            f"counts and mass, {spec}, of TF32 and bfloat16", f">= {SHARE:.0%}",
            f"{shares[0]:.0%}, {shares[1]:.0%}", min(shares) >= SHARE,
        )  # fmt: skip
    return rows


def paper(pairs: int, width: int, repeats: int, device: str, goals: Goals) -> None:
    """Time the paper's sweep."""
    case = paper_sweep.Case(pairs, width, device)
    (seconds,) = medians([lambda: case.ours(FIVE, paper_sweep.CHEAP)], repeats, device)
    goals.add(f"sweep of {pairs} pairs, d = {width}", f"< {SWEEP:g} s", f"{seconds:.2f} s", seconds < SWEEP)


class Towers(nn.Module):
    """Two transformers of the sizes of CLIP-B/32 (49 patches, 77 words), for machines without transformers."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.image, self.text = (
            nn.TransformerEncoder(
                nn.TransformerEncoderLayer(w, w // 64, 4 * w, 0.0, batch_first=True, norm_first=True),
                layers,
                enable_nested_tensor=False,
            )
            for w in (768, 512)
        )
        self.patches, self.words = nn.Conv2d(3, 768, 32, 32), nn.Embedding(49408, 512)
        self.image_out, self.text_out = nn.Linear(768, 512), nn.Linear(512, 512)

    def forward(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        image = self.image(self.patches(pixels).flatten(2).transpose(1, 2))
        return self.image_out(image[:, 0]), self.text_out(self.text(self.words(ids))[:, -1])


class Clip(nn.Module):
    """CLIP-B/32 of transformers, with random weights."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        from transformers import CLIPConfig, CLIPModel

        depth = {"num_hidden_layers": layers}
        self.model = CLIPModel(CLIPConfig(text_config=depth, vision_config=depth))

    def forward(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        out = self.model(input_ids=ids, pixel_values=pixels)
        return out.image_embeds, out.text_embeds


def clip(layers: int) -> nn.Module:
    """Return the towers of transformers, or those of plain torch if it is not installed."""
    torch.manual_seed(0)
    try:
        return Clip(layers)
    except ImportError:
        return Towers(layers)


def watching(batch: int, layers: int, repeats: int, device: str, goals: Goals) -> None:
    """Time `watch` beside a training step."""
    model = clip(layers).to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-5)
    pixels, ids = torch.randn(batch, 3, 224, 224, device=device), torch.randint(1, 49000, (batch, 77), device=device)
    ids[:, -1] = 49407  # the end of a text
    target, scope = torch.arange(batch, device=device), LossScope("ntxent:tau=0.05", ("cocos", "similarity"))
    with torch.autocast(torch.device(device).type, torch.bfloat16):
        first, second = (normalise(x.detach().float()) for x in model(pixels, ids))

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            images, texts = model(pixels, ids)
        S = normalise(images.float()) @ normalise(texts.float()).T / 0.05
        (nn.functional.cross_entropy(S, target) + nn.functional.cross_entropy(S.T, target)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    of_step, of_watch = medians([step, lambda: scope.watch(images=first, captions=second)], repeats, device)
    parameters = sum(p.numel() for p in model.parameters()) / 1e6
    goals.add(
        f"watch, {batch} pairs, beside {type(model).__name__} of {parameters:.0f} M parameters", f"<= {WATCH:.0%}",
        f"{1000 * of_watch:.2f} of {1000 * of_step:.1f} ms, {of_watch / of_step:.1%}", of_watch <= WATCH * of_step,
    )  # fmt: skip


def profile(size: int, width: int, device: str) -> str:
    """Return the profile of counting a batch."""
    case = tiles.Case(source(size, 1, width, noise=2.0, device=device), SPECS[0])
    counts(case, False)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        counts(case, False)
        synchronize(device)
    by = "self_cpu_time_total" if device == "cpu" else "self_device_time_total"
    text: str = profiler.key_averages().table(sort_by=by, row_limit=12, max_name_column_width=40)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=65_536, help="pairs of the large batch")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--pairs", type=int, default=145_000, help="of the sweep, a multiple of 5")
    parser.add_argument("--sweep-width", type=int, default=1024)
    parser.add_argument("--clip-batch", type=int, default=256)
    parser.add_argument("--clip-layers", type=int, default=12, help="of each tower")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device != "cpu" and not torch.cuda.is_available():
        sys.exit(
            "benchmarks/gpu.py must have a GPU; torch sees none. --device cpu, with small sizes, shows that it runs"
        )
    torch.set_num_threads(1)
    device, repeats, goals = options.device, options.repeats, Goals(options.device)
    rows = large_batch(options.size, options.width, repeats, device, goals)
    paper(options.pairs, options.sweep_width, repeats, device, goals)
    watching(options.clip_batch, options.clip_layers, repeats, device, goals)
    print(f"B = {options.size}, d = {options.width}, medians of {repeats}, {machine(device)}\n")
    print(table(("counts and mass", "s", "Tflop/s", "of TF32 / bf16", "differ"), rows))
    print(f"\n{table(goals.rows[0], goals.rows[1:])}\n")
    print(profile(options.size, options.width, device))


if __name__ == "__main__":
    main()
