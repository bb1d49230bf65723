"""Which pairs are looked at: the most similar of each item, found block by block."""
