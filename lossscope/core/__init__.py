"""What every part stands on: masks, similarities, weights and counts of one batch, batches, and processes."""
