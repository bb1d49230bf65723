"""Names by which somebody else's file may try to steer a terminal, a page or a table that shows them."""

from __future__ import annotations

HOSTILE = (
    "<script>window.stolen=1</script>",
    "\"><img src=x onerror='window.stolen=1'>",
    "<b>bold</b><a href='https://example.com/x'>link</a>",
    "&lt;i&gt;%{y}<extra></extra>{{7*7}}",
    "</title></table><iframe src='https://example.com/y'></iframe>",
    "\x1b[31mred\x1b]0;title\x07\x1b[0m",
    "over\rwritten\x08\x7f\x9b2J",
    "\u202egnp.exe\u2066\u2028",
    "half\ud800 and byte\udcff",
    "nul\x00nul",
    '=HYPERLINK("https://example.com";"x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    r"\input{/etc/passwd} \immediate\write18{touch x} ^^5cend % }",
    r"$\frac$ and $x_{$ \$ costs",
    "_hidden | a | b `code` [link](https://example.com) **bold**",
    "+1 -1 'quoted",
    'a\tb\nc, "d"',
)
CONTROLS = "".join(map(chr, (*range(9), *range(11, 32), *range(127, 160)))) + "\u202e\u2066\u2028\ud800\udcff"
"""Characters that no terminal and no page may get, whatever a name holds."""
IN_FRAMES = tuple(name for name in HOSTILE if "\ud800" not in name)
"""Names that a column can hold; names of files and folders are escaped before that."""
