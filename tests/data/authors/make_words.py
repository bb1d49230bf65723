"""Write words.json: captions as nltk's word_tokenize cuts them, whose punkt_tab must be installed.

All families that read released vocabularies call it on the lower-cased caption.
"""

from __future__ import annotations

import json
from pathlib import Path

import nltk

CAPTIONS = (
    "A man doesn't wear a t-shirt.",
    "Two dogs run. They're wet; it's 3,000 m away!",
    "The sign reads \"STOP\", the other one 'go'.",
    "He's at Mr. Smith's 24-hour café -- isn't he?",
    "A girl (in red) can't reach the U.S. flag...",
    "Men, women & children at 5:30 p.m. pay $2.50 or 10%.",
    "rock 'n' roll at the o'clock-tower's top",
    "a dog_house, a bird/cat and an e-mail to a@b.com",
    "they gonna shouldn't've gotta cannot",
    "Ein Straßencafé in Zürich, « très bien » “quoted” ‘too’ …",
    "  spaces   everywhere .  ",
    "No full stop at the end",
)


def main() -> None:
    rows = [{"caption": text, "tokens": nltk.word_tokenize(text.lower())} for text in CAPTIONS]
    file = Path(__file__).with_name("words.json")
    file.write_text(json.dumps({"nltk": nltk.__version__, "rows": rows}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
