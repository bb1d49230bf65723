"""The page, its LaTeX and CSV: built from the files that runs and studies wrote."""
