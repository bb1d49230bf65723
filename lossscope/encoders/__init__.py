"""One file per model family: what it computes, its options, its released files."""
