"""One file per data set: reads its splits, images and captions."""
