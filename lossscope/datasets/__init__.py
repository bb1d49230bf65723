"""One file per data set: where its splits, images and captions come from."""
