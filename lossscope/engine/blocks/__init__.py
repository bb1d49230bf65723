"""S in blocks: where they come from."""
