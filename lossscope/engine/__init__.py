"""From a source, objectives and probes to a frame: the sweep over batches and what is drawn from single batches."""
