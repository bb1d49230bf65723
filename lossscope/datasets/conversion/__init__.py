"""Convert and generate files that the data sets read."""
