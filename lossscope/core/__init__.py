"""The basis of all packages: masks, similarities, weights and counts of one batch, batches, and processes."""
