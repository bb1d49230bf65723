"""Files in which people judged which items of the two sides belong together: one file here a format."""
