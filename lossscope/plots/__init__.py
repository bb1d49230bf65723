"""One file per picture: a frame in, matplotlib axes and a description in words out."""
