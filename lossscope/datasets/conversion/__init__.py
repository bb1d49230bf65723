"""From the files that people have to the files that data sets read."""
