"""Looking into a running training loop, lossscope's or anybody's."""
