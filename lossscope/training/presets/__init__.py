"""The recipes of the papers as TOML, a file each."""
