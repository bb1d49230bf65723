"""One file per way to start the runs of a study: local processes, torchrun, Slurm."""
