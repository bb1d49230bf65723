"""What rows of text data say without any model: one file a finding, over hashes of the rows."""
