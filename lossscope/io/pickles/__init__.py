"""The one restricted reader of foreign pickles: plain data comes out, nothing in the file runs."""
