"""`lossscope list`: what exists."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Annotated

import typer

from .app import Debug, Format, chosen, command

KINDS = ("objectives", "encoders", "datasets", "probes", "sources", "tables", "features", "presets")


@command("list")
def listing(
    kind: Annotated[str, typer.Argument(help=", ".join(KINDS), autocompletion=lambda: list(KINDS))],
    format: Format = "table",
    debug: Debug = False,
) -> None:
    """What exists of a kind, with its options and where it comes from.

    **Examples**

    `lossscope list objectives`

    Read from the files themselves without importing them.
    """
    chosen(kind, KINDS, "KIND")
    chosen(format, ("table", "json"), "--format")
    found = _presets() if kind == "presets" else [_described(path) for path in _files(kind)]
    if format == "json":
        typer.echo(json.dumps(found, indent=1))
        return
    for item in found:
        options = f":{item['options']}" if item["options"] else ""
        typer.secho(f"{item['name']}{options}", bold=True)
        typer.echo(f"    {item['what']}")
        if item["source"]:
            typer.echo(f"    Source: {item['source']}")


def _presets() -> list[dict[str, str]]:
    from lossscope.recipes import presets

    return [{"name": name, "what": what, "options": "", "source": ""} for name, what in presets().items()]


def _files(kind: str) -> list[Path]:
    import lossscope

    folder = Path(lossscope.__file__).parent / kind
    return sorted(path for path in folder.glob("*.py") if path.stem != "base" and not path.stem.startswith("_"))


def _described(path: Path) -> dict[str, str]:
    """Name, first sentence, options and source of one file, from its text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    text = (ast.get_docstring(classes[0]) if classes else None) or ast.get_docstring(tree) or ""
    what = (ast.get_docstring(tree) or "").splitlines()[0] if tree.body else ""
    _, _, source = text.partition("Source: ")
    return {
        "name": path.stem,
        "what": what,
        "options": _options(classes[0]) if classes else "",
        "source": " ".join(source.split("\n\n")[0].split()),
    }


def _options(node: ast.ClassDef) -> str:
    """`key=default,...` of the annotated fields that are not class variables."""
    fields = [
        item for item in node.body if isinstance(item, ast.AnnAssign) and "ClassVar" not in ast.unparse(item.annotation)
    ]
    values = [ast.literal_eval(item.value) if item.value else "..." for item in fields]
    return ",".join(f"{ast.unparse(item.target)}={value}" for item, value in zip(fields, values, strict=True))
