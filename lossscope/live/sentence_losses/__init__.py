"""What the losses of sentence-transformers see in a batch: similarities, masks, weights; nothing is imported of it."""
