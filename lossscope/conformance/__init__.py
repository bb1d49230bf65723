"""Does a trainer compute what one process would: its gradient on many processes, in chunks, in half precision."""
