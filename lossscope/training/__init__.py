"""The trainer: recipe, step, epoch, checkpoints to resume from."""
