"""One file per table: a frame in, cells with marks and footnotes out."""
