"""One file a check; its id is the name of the file, with `-`."""
