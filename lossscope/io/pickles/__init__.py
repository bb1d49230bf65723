"""The one restricted reader of foreign pickles: plain data comes out, and nothing in the file is run."""
