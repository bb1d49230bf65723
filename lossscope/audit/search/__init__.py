"""Find the pairs to score: the most similar ones of each item, block by block."""
