"""What the notebook needs around a training: environments, seeds, files and states."""
