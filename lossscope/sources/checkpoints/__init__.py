"""Checkpoint files, and a model that is run over a split: embeddings, pair scores, layer gradients."""
