"""One file a library: how its loss is called as a step."""
