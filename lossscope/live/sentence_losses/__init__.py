"""Read what losses of sentence-transformers see in a batch: similarities, masks, weights; without importing it."""
