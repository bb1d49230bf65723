"""Statistics of a running training loop, lossscope's or any other."""
