"""Files that lossscope itself writes and reads: whole writes, JSON, frames, run folders, versions."""
