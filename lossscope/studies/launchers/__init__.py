"""Start the runs of a study: as local processes, by torchrun, or on Slurm. One file per way."""
